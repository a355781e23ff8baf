"""The review of a skill: everything that a user should know before an approval (A1-A5, B6, V5, V7).

The files are read and verified when the user opens the page, as with ``skillwire approvals show``. They are held
by content for a while, so that the next view of the same content sends no request. They enter the cache only when
the user approves the content; the next change can then be compared line by line. A timeout and a size limit keep
the page responsive, and the page reports files that were not read.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from skillwire.errors import LimitError, SkillwireError, UpstreamError, VerificationError
from skillwire.limits import MIB
from skillwire.skill.approval import EXECUTE, change_since, claimed_contents, file_digests, fingerprint_of
from skillwire.skill.approval import fingerprint as fingerprint_of_contents
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.review import review_files
from skillwire.skill.uri import SKILL_MD, path_in_skill
from skillwire.web.desk.decisions import is_unreachable, standing_of
from skillwire.web.desk.diff import FileChange, compare
from skillwire.web.desk.responses import skill_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillwire.host.host import SkillHost
    from skillwire.host.loader import Content
    from skillwire.host.origins import NamedEntry
    from skillwire.skill import SkillEntry
    from skillwire.skill.approval import Approval, ContentChange
    from skillwire.skill.frontmatter import Json
    from skillwire.skill.review import Review
    from skillwire.web.desk.decisions import Standing

_TIMEOUT_SECONDS = 12.0
_AT_ONCE = 4
_MAX_BYTES = 32 * MIB  # of one skill, by its entry
_HELD_BYTES = 128 * MIB
_HELD_SKILLS = 32
_MAX_COMPARED = 50
_MAX_OLD_FILES = 1000
_NOT_CACHED = "the approved version is not cached, so the lines cannot be compared; read the whole file"
_NOT_READ = "the file could not be read; the list of files has the reason"
_TOO_MANY = "not compared, because too many files changed; read the whole file"


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
    standing: Standing
    is_unreachable: bool
    previous: Approval | None
    fingerprint: str
    review: Review
    files: tuple[FileRow, ...]
    change: ContentChange | None
    changes: tuple[FileChange, ...]
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
        return fingerprint_of_contents(claimed_contents(self.entry))

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
    return field_texts(others)


def field_texts(values: Mapping[str, Json]) -> list[tuple[str, str]]:
    """Names and values as text. Values that are not strings are JSON."""
    return [
        (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in values.items()
    ]


async def make_sheet(host: SkillHost, reader: Reader, skill: NamedEntry) -> Sheet:
    """Read the files of a skill and create its review."""
    label, entry = skill.origin.label, skill.entry
    standing = await standing_of(host, skill)
    previous = None if skill.origin.is_own else await host.approvals.previous(label, entry)
    held = await reader.read_all(skill)
    review = await to_thread.run_sync(_scan_files, entry, held)
    change = change_since(previous, entry) or None
    before = await _approved_files(host, skill, previous, held) if previous and change else {}
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
        files=tuple(_file_rows(skill, review, held)),
        change=change,
        changes=await _changes(skill, change, held, before) if change else (),
        news=await to_thread.run_sync(_news, entry, review, change, before) if change else {},
        source=source,
        body=body,
        errors=dict(held.errors),
    )


def _scan_files(entry: SkillEntry, held: HeldFiles) -> Review:
    """The facts in every file. Runs in a thread, because a server chooses the amount."""
    return review_files(
        entry, ((path_in_skill(entry.uri, uri), content.data) for uri, content in sorted(held.files.items()))
    )


def _news(
    entry: SkillEntry, review: Review, change: ContentChange, before: Mapping[str, bytes]
) -> dict[str, list[str]]:
    """What the current content has and the approved one, in ``before`` by path, does not have."""
    old_entry = entry
    with suppress(SkillwireError, KeyError):
        old_entry = replace(entry, frontmatter=parse_skill_md(before[SKILL_MD]).frontmatter)
    old = review_files(old_entry, before.items())
    known = {(find.kind, find.text) for find in old.hidden}
    added = [path_in_skill(entry.uri, uri) for uri in change.added]
    news = {
        "hidden text": [str(find) for find in review.hidden if (find.kind, find.text) not in known],
        "tools": [tool for tool in review.tools if tool not in old.tools],
        "scripts": [path for path in review.scripts if path in added],
        "outside domains": [name for name in review.domains if name not in old.domains],
        "files": added,
    }
    return {what: items for what, items in news.items() if items}


def _text(held: HeldFiles, uri: str) -> str | None:
    content = held.files.get(uri)
    try:
        return None if content is None else content.data.decode()
    except UnicodeDecodeError:
        return None


def _file_rows(skill: NamedEntry, review: Review, held: HeldFiles) -> Iterator[FileRow]:
    label, entry, scripts = skill.origin.label, skill.entry, set(review.scripts)
    for file in entry.files:
        path = file.path or file.uri
        url, error = skill_url(label, entry.uri, "file", path=path), held.errors.get(file.uri)
        yield FileRow(path, file.size, file.digest, url, path in scripts, error)


async def _approved_files(
    host: SkillHost, skill: NamedEntry, previous: Approval, held: HeldFiles
) -> dict[str, bytes]:
    """The files of the approved content by path, as far as they did not change or are cached."""
    found: dict[str, bytes] = {}
    for uri, digest in sorted(file_digests(previous.contents).items()):
        resource, content = skill.entry.resource(uri), held.files.get(uri)
        if content is not None and resource is not None and resource.digest == digest:
            found[path_in_skill(skill.entry.uri, uri)] = content.data
        elif host.cache is not None and len(found) < _MAX_OLD_FILES:
            data = await to_thread.run_sync(host.cache.get, skill.origin.label, uri, digest)
            if data is not None:
                found[path_in_skill(skill.entry.uri, uri)] = data
    return found


async def _changes(
    skill: NamedEntry, change: ContentChange, held: HeldFiles, before: Mapping[str, bytes]
) -> tuple[FileChange, ...]:
    """Every added, removed or changed file, with a diff if both versions are available."""
    entry, found = skill.entry, list[FileChange]()
    for uri in sorted({*change.rotated, *change.added, *change.removed}, key=lambda uri: (uri != entry.uri, uri)):
        path, content = path_in_skill(entry.uri, uri), held.files.get(uri)
        kind = "added" if uri in change.added else "removed" if uri in change.removed else "changed"
        old = None if kind == "added" else before.get(path)
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


@dataclass
class HeldFiles:
    """Files of one content of one skill, and errors of files that could not be read, by URI."""

    files: dict[str, Content] = field(default_factory=dict["str", "Content"])
    errors: dict[str, SkillwireError] = field(default_factory=dict["str", SkillwireError])

    @property
    def size(self) -> int:
        """The number of bytes."""
        return sum(len(content.data) for content in self.files.values())


class Reader:
    """Reads files through the host, and holds the most recent ones."""

    def __init__(self, host: SkillHost) -> None:
        self._host = host
        self._held: OrderedDict[tuple[str, str, str], HeldFiles] = OrderedDict()

    async def read_all(self, skill: NamedEntry) -> HeldFiles:
        """Read every file within the time and size limits."""
        held = self._held_files(skill)
        uris, left = list[str](), _MAX_BYTES
        for file in skill.entry.files or (None,):
            uri = skill.entry.uri if file is None else file.uri
            left -= 0 if file is None else file.size or 0
            if left < 0:
                held.errors[uri] = LimitError(
                    "skill-too-large",
                    "the skill is too large to read all files",
                    "open the page of the file",
                    rule="B1",
                )
            elif uri not in held.files:
                uris.append(uri)
        await self._read_each(skill, held, uris)
        self._evict()
        return held

    async def review(self, skill: NamedEntry) -> Review:
        """The facts in every file."""
        return await to_thread.run_sync(_scan_files, skill.entry, await self.read_all(skill))

    async def read(self, skill: NamedEntry, uri: str) -> Content:
        """Read one file; errors are raised."""
        held = self._held_files(skill)
        known = held.files.get(uri)
        if known is not None:
            return known
        content = await self._host.read_for_review(skill, uri)
        held.files[uri] = content
        held.errors.pop(uri, None)
        self._evict()
        return content

    async def keep(self, skill: NamedEntry) -> None:
        """Cache the files of an approved skill."""
        cache = self._host.cache
        if cache is None or skill.origin.is_own:
            return
        for content in list(self._held_files(skill).files.values()):
            if content.file is not None:
                await to_thread.run_sync(cache.put, skill.origin.label, content.file)

    async def _read_each(self, skill: NamedEntry, held: HeldFiles, uris: list[str]) -> None:
        waiting = iter(uris)

        async def work() -> None:
            for uri in waiting:
                try:
                    held.files[uri] = await self._host.read_for_review(skill, uri)
                    held.errors.pop(uri, None)
                except SkillwireError as error:
                    held.errors[uri] = error

        with anyio.move_on_after(_TIMEOUT_SECONDS):
            async with anyio.create_task_group() as group:
                for _ in range(_AT_ONCE):
                    group.start_soon(work)
        for uri in uris:
            if uri not in held.files and uri not in held.errors:
                held.errors[uri] = UpstreamError(
                    "timed-out", "the server did not respond in time", "reload this page to read the rest"
                )

    def _held_files(self, skill: NamedEntry) -> HeldFiles:
        """The held files of exactly this content. Nothing is held for content without digests (V7)."""
        pairs = frozenset((file.uri, file.digest or "") for file in skill.entry.files)
        if not pairs or skill.entry.gaps & {"manifest", "digest"}:
            return HeldFiles()
        key = skill.origin.label, skill.entry.uri, fingerprint_of_contents(pairs)
        held = self._held.setdefault(key, HeldFiles())
        self._held.move_to_end(key)
        return held

    def _evict(self) -> None:
        total = sum(held.size for held in self._held.values())
        while len(self._held) > 1 and (total > _HELD_BYTES or len(self._held) > _HELD_SKILLS):
            _, oldest = self._held.popitem(last=False)
            total -= oldest.size
