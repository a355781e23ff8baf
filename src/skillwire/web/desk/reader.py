"""Reads the files of a skill for a review (V5).

The files are read and verified when the user opens the page, as with ``skillwire approvals show``. They are held
by content for a while, so that the next view of the same content sends no request. They enter the cache only when
the user approves the content; the next change can then be compared line by line. A timeout and a size limit keep
the page responsive, and the page reports files that were not read.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from skillwire.errors import LimitError, SkillwireError, UpstreamError
from skillwire.limits import MIB
from skillwire.skill.approval import claimed_contents, fingerprint, has_contents
from skillwire.skill.review import Review, review_entry, review_files
from skillwire.skill.uri import path_in_skill

if TYPE_CHECKING:
    from skillwire.host.host import SkillHost
    from skillwire.host.loader import Content
    from skillwire.host.origins import NamedEntry
    from skillwire.skill import SkillEntry
    from skillwire.skill.review import Risk

_TIMEOUT_SECONDS = 12.0
_AT_ONCE = 4
_MAX_BYTES = 32 * MIB  # of one skill, by its entry
_HELD_BYTES = 128 * MIB
_HELD_SKILLS = 32
_KNOWN_RISKS = 5000


@dataclass
class HeldFiles:
    """Files of one content of one skill, and errors of files that could not be read, by URI."""

    files: dict[str, Content] = field(default_factory=dict["str", "Content"])
    errors: dict[str, SkillwireError] = field(default_factory=dict["str", SkillwireError])

    @property
    def size(self) -> int:
        """The number of bytes."""
        return sum(len(content.data) for content in self.files.values())


class DeskReader:
    """Reads files through the host, and holds the most recent ones."""

    def __init__(self, host: SkillHost) -> None:
        self._host = host
        self._held: OrderedDict[tuple[str, str, str], HeldFiles] = OrderedDict()
        self._risks: OrderedDict[tuple[str, str], tuple[SkillEntry, Risk]] = OrderedDict()

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

    async def review(self, skill: NamedEntry) -> tuple[Review, HeldFiles]:
        """The facts in every file, and the files."""
        entry, held = skill.entry, await self.read_all(skill)
        files = ((path_in_skill(entry.uri, uri), content.data) for uri, content in sorted(held.files.items()))
        review = await to_thread.run_sync(review_files, entry, files)  # a server chooses the amount
        self._risks[skill.origin.label, entry.uri] = entry, review.risk
        if len(self._risks) > _KNOWN_RISKS:
            self._risks.popitem(last=False)
        return review, held

    def known_risk(self, label: str, entry: SkillEntry) -> Risk:
        """The risk of a skill, without a request: from all files if this content was reviewed, else its entry."""
        known = self._risks.get((label, entry.uri))
        # Content without digests can be another one with each read (V7).
        if known is not None and has_contents(entry) and claimed_contents(known[0]) == claimed_contents(entry):
            return known[1]
        return review_entry(entry).risk

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
        key = skill.origin.label, skill.entry.uri, fingerprint(pairs)
        held = self._held.setdefault(key, HeldFiles())
        self._held.move_to_end(key)
        return held

    def _evict(self) -> None:
        total = sum(held.size for held in self._held.values())
        while len(self._held) > 1 and (total > _HELD_BYTES or len(self._held) > _HELD_SKILLS):
            _, oldest = self._held.popitem(last=False)
            total -= oldest.size
