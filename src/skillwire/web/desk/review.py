"""The review of a skill: everything that a user should know before an approval (A1-A5, B6, V5, V7)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anyio import to_thread

from skillwire.errors import SkillwireError, VerificationError
from skillwire.skill.approval import (
    EXECUTE,
    change_since,
    claimed_contents,
    file_digests,
    fingerprint,
    fingerprint_of,
)
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.review import review_files
from skillwire.skill.uri import SKILL_MD, path_in_skill
from skillwire.web.desk.decisions import is_unreachable, standing_of
from skillwire.web.desk.history import Comparison, compare_versions, read_version
from skillwire.web.theme import field_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.host.host import SkillHost
    from skillwire.host.origins import NamedEntry
    from skillwire.skill import SkillEntry
    from skillwire.skill.approval import Approval, Contents
    from skillwire.skill.review import Review
    from skillwire.web.desk.decisions import Standing
    from skillwire.web.desk.reader import DeskReader, HeldFiles


@dataclass(frozen=True, slots=True)
class Sheet:
    """The review of one skill."""

    skill: NamedEntry
    standing: Standing
    is_unreachable: bool
    previous: Approval | None
    fingerprint: str
    review: Review
    comparison: Comparison
    news: Mapping[str, list[str]]
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
        errors = self.errors.values()
        return next(
            (e for e in errors if isinstance(e, VerificationError) or e.reference == "skill-changed"), None
        )

    @property
    def may_approve(self) -> bool:
        """Whether the content can be approved."""
        is_open = self.standing.state != "approved" and not self.skill.origin.is_own
        return bool(self.fingerprint) and self.broken is None and is_open

    @property
    def claims(self) -> str:
        """The fingerprint that a decline is bound to; it also exists for unverifiable skills."""
        return fingerprint(claimed_contents(self.entry))

    @property
    def offered(self) -> tuple[str, ...]:
        """The possible grants (A4, A5): requested tools, granted tools, and the execution of code."""
        is_approved, approval = self.standing.state == "approved", self.standing.approval
        granted = approval.grants if approval and is_approved else frozenset[str]()
        tools = dict.fromkeys([*self.review.tools, *sorted(granted)])
        return (*(grant for grant in tools if grant != EXECUTE), EXECUTE)


def other_requests(review: Review) -> list[tuple[str, str]]:
    """Requests in the frontmatter besides tools, such as hooks and permissions."""
    others = {key: value for key, value in review.widening.items() if key != "allowed-tools" or not review.tools}
    return [(key, value) for key, value, _ in field_texts(others)]


async def make_sheet(host: SkillHost, reader: DeskReader, skill: NamedEntry) -> Sheet:
    """Read the files of a skill and create its review."""
    label, entry = skill.origin.label, skill.entry
    standing = await standing_of(host, skill)
    previous = None if skill.origin.is_own else await host.approvals.previous(label, entry)
    review, held = await reader.review(skill)
    comparison, news = Comparison(), dict[str, list[str]]()
    if previous is not None and change_since(previous, entry):
        place, contents = (label, entry.uri), claimed_contents(entry)
        before = await read_version(host, skill, place, previous.contents, held)
        after = {path_in_skill(entry.uri, uri): content.data for uri, content in held.files.items()}
        comparison = await to_thread.run_sync(
            compare_versions, entry.uri, previous.contents, contents, before, after
        )
        news = await to_thread.run_sync(_news, entry, review, previous.contents, before)
    source = body = _text(held, entry.uri)
    if source is not None:
        with suppress(SkillwireError):  # the whole text is shown if its frontmatter is invalid
            body = parse_skill_md(source.encode(errors="surrogatepass")).body
    return Sheet(
        skill=skill,
        standing=standing,
        is_unreachable=is_unreachable(skill.origin),
        previous=previous,
        fingerprint=fingerprint_of(entry),
        review=review,
        comparison=comparison,
        news=news,
        source=source,
        body=body,
        errors=dict(held.errors),
    )


def _news(
    entry: SkillEntry, review: Review, approved: Contents, before: Mapping[str, bytes]
) -> dict[str, list[str]]:
    """What the current content has and the approved one, in ``before`` by path, does not have."""
    files = file_digests(approved)
    resources = tuple(file._replace(digest=files[file.uri]) for file in entry.files if file.uri in files)
    fields = entry.frontmatter
    with suppress(SkillwireError, KeyError):
        fields = parse_skill_md(before[SKILL_MD]).frontmatter
    old = review_files(replace(entry, frontmatter=fields, resources=resources), before.items())
    known, escapes = {(find.kind, find.text) for find in old.hidden}, {link.target for link in old.escapes}
    requests = dict(other_requests(old))
    changed = {file.path for file in entry.files if file.uri in files and file.digest != files[file.uri]}
    news = {
        "hidden text": [str(find) for find in review.hidden if (find.kind, find.text) not in known],
        "links out of its folder": [link.target for link in review.escapes if link.target not in escapes],
        "tools": [tool for tool in review.tools if tool not in old.tools],
        "other requests": [key for key, value in other_requests(review) if requests.get(key) != value],
        "scripts": [path for path in review.scripts if path not in old.scripts],
        "changed scripts": [path for path in review.scripts if path in changed and path in old.scripts],
        "outside domains": [name for name in review.domains if name not in old.domains],
        "files": [file.path or file.uri for file in entry.files if file.uri not in files],
    }
    return {what: items for what, items in news.items() if items}


def _text(held: HeldFiles, uri: str) -> str | None:
    content = held.files.get(uri)
    try:
        return None if content is None else content.data.decode()
    except UnicodeDecodeError:
        return None
