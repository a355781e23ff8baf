"""Everything a person should know before they say yes to a skill, as one sheet (A1–A5, B6, V5, V7).

Its files are read when the sheet is made: opening the page is a person's wish to look, as ``skillwire review`` is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from skillwire.errors import SkillwireError, VerificationError
from skillwire.host.approvals import Approvals
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.approval import EXECUTE, claimed_contents, file_digests, fingerprint_of
from skillwire.skill.approval import fingerprint as fingerprint_of_contents
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.model import estimate_tokens
from skillwire.skill.review import review_entry, with_text, with_unread
from skillwire.web.desk.diff_view import FileChange, compare
from skillwire.web.desk.external_links import leaving_links
from skillwire.web.desk.places import file_place, path_inside
from skillwire.web.desk.standings import is_away, mark_of, state_once_wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.host.names import NamedEntry
    from skillwire.host.runtime import Host
    from skillwire.skill import SkillEntry
    from skillwire.skill.approval import Approval, ContentChange
    from skillwire.skill.model import TokenEstimate
    from skillwire.skill.review import Review
    from skillwire.skill.values import Json
    from skillwire.store.contract import LogLine
    from skillwire.web.desk.diff_view import ChangeKind
    from skillwire.web.desk.external_links import Leaving
    from skillwire.web.desk.reading import Reader, Reading
    from skillwire.web.desk.standings import State

_MOST_COMPARED = 50
_NOT_KEPT = (
    "what was approved is not kept here any more, or was never read here, so that the lines cannot be compared;"
    " look at the whole file"
)
_NOT_READ = "it could not be read; the list of files says why"
_TOO_MANY = "not compared: too many files changed; look at the whole file"


@dataclass(frozen=True, slots=True)
class FileRow:
    """One file of the skill."""

    path: str
    size: int | None
    digest: str | None
    place: str
    is_script: bool
    error: SkillwireError | None


@dataclass(frozen=True, slots=True)
class Sheet:
    """What the page about one skill shows."""

    skill: NamedEntry
    state: State
    away: bool
    approval: Approval | None
    previous: Approval | None
    decision: LogLine | None
    fingerprint: str
    review: Review
    tokens: TokenEstimate
    files: tuple[FileRow, ...]
    leaving: tuple[Leaving, ...]
    change: ContentChange | None
    changes: tuple[FileChange, ...]
    source: str | None
    body: str | None
    errors: Mapping[str, SkillwireError]

    @property
    def entry(self) -> SkillEntry:
        """What its origin claims about it."""
        return self.skill.entry

    @property
    def origin(self) -> str:
        """The label of its origin."""
        return self.skill.origin.label

    @property
    def broken(self) -> SkillwireError | None:
        """Why nothing can be said yes to: its files are not what the entry says, or it changed meanwhile (V3)."""
        return next((error for error in self.errors.values() if _breaks(error)), None)

    @property
    def mark(self) -> str:
        """How others stood to it when the page was made, for its forms to send back."""
        return mark_of(self.state, self.approval)

    @property
    def may_approve(self) -> bool:
        """Whether there is a content to say yes to."""
        is_open = self.state != "approved" and not self.skill.origin.is_local
        return bool(self.fingerprint) and self.broken is None and is_open

    @property
    def claims(self) -> str:
        """What a no to it is bound to; also of a skill that cannot be verified."""
        return fingerprint_of_contents(claimed_contents(self.entry))

    @property
    def offered(self) -> tuple[str, ...]:
        """What can be granted, each on its own (A4, A5): what it asks for, what it has, and running code."""
        granted = self.approval.grants if self.approval and self.state == "approved" else frozenset[str]()
        tools = dict.fromkeys([*self.review.tools, *sorted(granted)])
        return (*(grant for grant in tools if grant != EXECUTE), EXECUTE)


def _breaks(error: SkillwireError) -> bool:
    return isinstance(error, VerificationError) or error.reference == "skill-changed"


def wishes_of(review: Review) -> list[tuple[str, str]]:
    """What it asks for beside tools: hooks, permissions and the like."""
    others = {key: value for key, value in review.widening.items() if key != "allowed-tools" or not review.tools}
    return fields_of(others)


def fields_of(values: Mapping[str, Json]) -> list[tuple[str, str]]:
    """Names and values as text: a value that is no text, as JSON."""
    return [
        (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in values.items()
    ]


async def make_sheet(host: Host, reader: Reader, skill: NamedEntry) -> Sheet:
    """Read what there is to read, and put it together."""
    label, entry = skill.origin.label, skill.entry
    approval = await host.store.approval(label, entry.uri)
    previous = None if skill.origin.is_local else await host.approvals.previous(label, entry)
    decision = await host.approvals.decided(label, entry.uri)
    state = state_once_wanted(skill, approval, decision)
    reading = await reader.read_all(skill)
    review, leaving = await to_thread.run_sync(_looked_through, entry, reading)
    change = Approvals.change(previous, entry) or None
    source = _text(reading, entry.uri)
    return Sheet(
        skill=skill,
        state=state,
        away=is_away(skill.origin),
        approval=approval,
        previous=previous,
        decision=decision,
        fingerprint=fingerprint_of(entry),
        review=review,
        tokens=estimate_tokens(entry),
        files=_file_rows(skill, review, reading),
        leaving=tuple(leaving),
        change=change,
        changes=await _changes(host, skill, previous, change, reading) if previous and change else (),
        source=source,
        body=None if source is None else _body(source),
        errors=dict(reading.errors),
    )


def _looked_through(entry: SkillEntry, reading: Reading) -> tuple[Review, list[Leaving]]:
    """Hidden text and links of every text file; in a thread, since a server chooses how much there is to do."""
    review = review_entry(entry)
    texts: list[tuple[str, str]] = []
    for uri, content in sorted(reading.files.items()):
        path = path_inside(entry.uri, uri)
        if len(content.data) > DEFAULT_LIMITS.max_checked_text:
            review = with_unread(review, path)
            continue
        text = _text(reading, uri)
        if text is not None:
            review = with_text(review, path, text)
            texts.append((path, text))
    return review, leaving_links(entry.uri, texts)


def _text(reading: Reading, uri: str) -> str | None:
    content = reading.files.get(uri)
    try:
        return None if content is None else content.data.decode()
    except UnicodeDecodeError:
        return None


def _body(source: str) -> str:
    """The instructions below the frontmatter; everything, if they cannot be told apart."""
    try:
        return parse_skill_md(source.encode(errors="surrogatepass")).body
    except SkillwireError:
        return source


def _file_rows(skill: NamedEntry, review: Review, reading: Reading) -> tuple[FileRow, ...]:
    label, entry, scripts = skill.origin.label, skill.entry, set(review.scripts)
    rows: list[FileRow] = []
    for file in entry.files:
        path = path_inside(entry.uri, file.uri)
        place, error = file_place(label, entry.uri, path), reading.errors.get(file.uri)
        rows.append(FileRow(path, file.size, file.digest, place, path in scripts, error))
    return tuple(rows)


async def _changes(
    host: Host, skill: NamedEntry, previous: Approval, change: ContentChange, reading: Reading
) -> tuple[FileChange, ...]:
    """Every file that came, went or changed, side by side as far as both sides are at hand."""
    before, entry, found = file_digests(previous.contents), skill.entry, list[FileChange]()
    for uri in sorted({*change.rotated, *change.added, *change.removed}, key=lambda uri: (uri != entry.uri, uri)):
        path, kind = path_inside(entry.uri, uri), _kind(change, uri)
        content = reading.files.get(uri)
        old = None if kind == "added" else await _kept(host, skill.origin.label, uri, before[uri])
        if len(found) >= _MOST_COMPARED:
            found.append(FileChange(path, kind, note=_TOO_MANY))
        elif kind != "added" and old is None:
            found.append(FileChange(path, kind, note=_NOT_KEPT))
        elif kind != "removed" and content is None:
            found.append(FileChange(path, kind, note=_NOT_READ))
        else:
            new = None if content is None or kind == "removed" else content.data
            found.append(await to_thread.run_sync(compare, path, old, new))
    return tuple(found)


def _kind(change: ContentChange, uri: str) -> ChangeKind:
    return "added" if uri in change.added else "removed" if uri in change.removed else "changed"


async def _kept(host: Host, label: str, uri: str, digest: str) -> bytes | None:
    return None if host.cache is None else await to_thread.run_sync(host.cache.get, label, uri, digest)
