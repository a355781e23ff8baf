"""The review of a skill: everything that a user should know before an approval (A1-A5, B6, V5, V7).

The files are read when the user opens the page, as with ``skillwire review``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from anyio import to_thread

from skillwire.errors import FormatError, SkillwireError, VerificationError
from skillwire.host.approvals import Approvals
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.approval import EXECUTE, claimed_contents, file_digests, fingerprint_of
from skillwire.skill.approval import fingerprint as fingerprint_of_contents
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.markdown import read_markdown
from skillwire.skill.model import estimate_tokens
from skillwire.skill.review import review_entry, with_text, with_unread
from skillwire.skill.uri import parse_uri, reference_kind, resolve_reference, skill_root
from skillwire.web.desk.decisions import completed_state, is_unreachable, state_token
from skillwire.web.desk.diff_view import FileChange, compare
from skillwire.web.desk.urls import file_url, path_in_skill

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillwire.host.host import Host
    from skillwire.host.names import NamedEntry
    from skillwire.skill import SkillEntry
    from skillwire.skill.approval import Approval, ContentChange
    from skillwire.skill.frontmatter import Json
    from skillwire.skill.model import TokenEstimate
    from skillwire.skill.review import Review
    from skillwire.store.contract import LogLine
    from skillwire.web.desk.decisions import State
    from skillwire.web.desk.diff_view import ChangeKind
    from skillwire.web.desk.reader import HeldFiles, Reader

LinkKind: TypeAlias = Literal["web", "machine", "outside"]

_MAX_COMPARED = 50
_NOT_CACHED = "the approved version is not cached, so the lines cannot be compared; read the whole file"
_NOT_READ = "the file could not be read; the list of files has the reason"
_TOO_MANY = "not compared, because too many files changed; read the whole file"
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`\\)\]}|]{1,500}", re.IGNORECASE)
_MAX_TARGETS = 200
_MAX_PLACES = 5
_MAX_TARGET = 500
_ORDER: dict[LinkKind, int] = {"machine": 0, "outside": 1, "web": 2}


@dataclass(frozen=True, slots=True)
class FileRow:
    """One file of the skill."""

    path: str
    size: int | None
    digest: str | None
    url: str
    is_script: bool
    error: SkillwireError | None


@dataclass(frozen=True, slots=True)
class Sheet:
    """The review of one skill."""

    skill: NamedEntry
    state: State
    is_unreachable: bool
    approval: Approval | None
    previous: Approval | None
    decision: LogLine | None
    fingerprint: str
    review: Review
    tokens: TokenEstimate
    files: tuple[FileRow, ...]
    external_links: tuple[ExternalLink, ...]
    change: ContentChange | None
    changes: tuple[FileChange, ...]
    source: str | None
    body: str | None
    errors: Mapping[str, SkillwireError]

    @property
    def entry(self) -> SkillEntry:
        """The entry of the skill."""
        return self.skill.entry

    @property
    def origin(self) -> str:
        """The label of the origin of the skill."""
        return self.skill.origin.label

    @property
    def broken(self) -> SkillwireError | None:
        """The error that prevents an approval: files do not match the entry, or the skill changed (V3)."""
        return next((error for error in self.errors.values() if _breaks(error)), None)

    @property
    def state_token(self) -> str:
        """The state when the page was made; its forms send it back."""
        return state_token(self.state, self.approval)

    @property
    def may_approve(self) -> bool:
        """Whether the content can be approved."""
        is_open = self.state != "approved" and not self.skill.origin.is_local
        return bool(self.fingerprint) and self.broken is None and is_open

    @property
    def claims(self) -> str:
        """The fingerprint that a decline is bound to; it also exists for unverifiable skills."""
        return fingerprint_of_contents(claimed_contents(self.entry))

    @property
    def offered(self) -> tuple[str, ...]:
        """The possible grants (A4, A5): requested tools, granted tools, and the execution of code."""
        granted = self.approval.grants if self.approval and self.state == "approved" else frozenset[str]()
        tools = dict.fromkeys([*self.review.tools, *sorted(granted)])
        return (*(grant for grant in tools if grant != EXECUTE), EXECUTE)


def _breaks(error: SkillwireError) -> bool:
    return isinstance(error, VerificationError) or error.reference == "skill-changed"


def other_requests(review: Review) -> list[tuple[str, str]]:
    """Requests in the frontmatter besides tools, such as hooks and permissions."""
    others = {key: value for key, value in review.widening.items() if key != "allowed-tools" or not review.tools}
    return field_texts(others)


def field_texts(values: Mapping[str, Json]) -> list[tuple[str, str]]:
    """Names and values as text. Values that are not strings are JSON."""
    return [
        (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in values.items()
    ]


async def make_sheet(host: Host, reader: Reader, skill: NamedEntry) -> Sheet:
    """Read the files of a skill and create its review."""
    label, entry = skill.origin.label, skill.entry
    approval = await host.store.approval(label, entry.uri)
    previous = None if skill.origin.is_local else await host.approvals.previous(label, entry)
    decision = await host.approvals.decided(label, entry.uri)
    state = completed_state(skill, approval, decision)
    held = await reader.read_all(skill)
    review, links = await to_thread.run_sync(_scan_texts, entry, held)
    change = Approvals.change(previous, entry) or None
    source = _text(held, entry.uri)
    return Sheet(
        skill=skill,
        state=state,
        is_unreachable=is_unreachable(skill.origin),
        approval=approval,
        previous=previous,
        decision=decision,
        fingerprint=fingerprint_of(entry),
        review=review,
        tokens=estimate_tokens(entry),
        files=_file_rows(skill, review, held),
        external_links=tuple(links),
        change=change,
        changes=await _changes(host, skill, previous, change, held) if previous and change else (),
        source=source,
        body=None if source is None else _body(source),
        errors=dict(held.errors),
    )


def _scan_texts(entry: SkillEntry, held: HeldFiles) -> tuple[Review, list[ExternalLink]]:
    """Find hidden text and links in every text file. Runs in a thread, because a server chooses the amount."""
    review = review_entry(entry)
    texts: list[tuple[str, str]] = []
    for uri, content in sorted(held.files.items()):
        path = path_in_skill(entry.uri, uri)
        if len(content.data) > DEFAULT_LIMITS.max_checked_text:
            review = with_unread(review, path)
            continue
        text = _text(held, uri)
        if text is not None:
            review = with_text(review, path, text)
            texts.append((path, text))
    return review, external_links(entry.uri, texts)


def _text(held: HeldFiles, uri: str) -> str | None:
    content = held.files.get(uri)
    try:
        return None if content is None else content.data.decode()
    except UnicodeDecodeError:
        return None


def _body(source: str) -> str:
    """The text below the frontmatter; the whole text if the frontmatter is invalid."""
    try:
        return parse_skill_md(source.encode(errors="surrogatepass")).body
    except SkillwireError:
        return source


def _file_rows(skill: NamedEntry, review: Review, held: HeldFiles) -> tuple[FileRow, ...]:
    label, entry, scripts = skill.origin.label, skill.entry, set(review.scripts)
    rows: list[FileRow] = []
    for file in entry.files:
        path = path_in_skill(entry.uri, file.uri)
        url, error = file_url(label, entry.uri, path), held.errors.get(file.uri)
        rows.append(FileRow(path, file.size, file.digest, url, path in scripts, error))
    return tuple(rows)


async def _changes(
    host: Host, skill: NamedEntry, previous: Approval, change: ContentChange, held: HeldFiles
) -> tuple[FileChange, ...]:
    """Every added, removed or changed file, with a diff if both versions are available."""
    before, entry, found = file_digests(previous.contents), skill.entry, list[FileChange]()
    for uri in sorted({*change.rotated, *change.added, *change.removed}, key=lambda uri: (uri != entry.uri, uri)):
        path, kind = path_in_skill(entry.uri, uri), _change_kind(change, uri)
        content = held.files.get(uri)
        old = None if kind == "added" else await _cached(host, skill.origin.label, uri, before[uri])
        if len(found) >= _MAX_COMPARED:
            found.append(FileChange(path, kind, note=_TOO_MANY))
        elif kind != "added" and old is None:
            found.append(FileChange(path, kind, note=_NOT_CACHED))
        elif kind != "removed" and content is None:
            found.append(FileChange(path, kind, note=_NOT_READ))
        else:
            new = None if content is None or kind == "removed" else content.data
            found.append(await to_thread.run_sync(compare, path, old, new))
    return tuple(found)


def _change_kind(change: ContentChange, uri: str) -> ChangeKind:
    return "added" if uri in change.added else "removed" if uri in change.removed else "changed"


async def _cached(host: Host, label: str, uri: str, digest: str) -> bytes | None:
    return None if host.cache is None else await to_thread.run_sync(host.cache.get, label, uri, digest)


@dataclass
class ExternalLink:
    """A link that leaves the skill: to the web, to a file of the machine, or out of its folder."""

    target: str
    kind: LinkKind
    places: list[str] = field(default_factory=list[str])
    count: int = 0


def external_links(skill: str, texts: Iterable[tuple[str, str]]) -> list[ExternalLink]:
    """The external links in ``texts`` (path and text) of the skill at ``skill``.

    In Markdown every link counts, in other text every URL.
    """
    found: dict[str, ExternalLink] = {}
    for path, text in texts:
        for target, kind, offset in _links(skill, path, text):
            if target not in found and len(found) >= _MAX_TARGETS:
                continue
            link = found.setdefault(target, ExternalLink(target, kind))
            link.count += 1
            if len(link.places) < _MAX_PLACES:
                link.places.append(f"{path}:{text.count(chr(10), 0, offset) + 1}")
    return sorted(found.values(), key=lambda link: (_ORDER[link.kind], link.target))


def _links(skill: str, path: str, text: str) -> Iterator[tuple[str, LinkKind, int]]:
    seen: set[str] = set()
    if path.lower().endswith((".md", ".markdown")):
        for link in read_markdown(text).links:
            kind = _link_kind(skill, link.target)
            if kind is not None:
                seen.add(link.target)
                yield link.target[:_MAX_TARGET], kind, link.offset
    own = f"{parse_uri(skill).scheme}:"
    for match in _URL.finditer(text):
        address = match.group().rstrip(".,;:!?*_")
        if address not in seen and not address.lower().startswith(own):
            yield address, "machine" if address.lower().startswith("file:") else "web", match.start()


def _link_kind(skill: str, target: str) -> LinkKind | None:
    kind = reference_kind(target)
    if kind == "machine":
        return "machine"
    if kind == "elsewhere":
        return None if not target.strip() or target.strip().startswith("#") else "web"
    uri = parse_uri(skill)
    try:
        resolve_reference(skill_root(uri), uri, target)
    except FormatError:
        return "outside"
    return None
