"""Files of a skill for a person to look at: read when they open its page, verified, and held for a while.

What was read is held in memory, by the content it belongs to, so that the next look at the same skill asks nobody.
It enters the cache only when the person approves that content: then the next change can be shown line by line.
A server that is slow, or has very much, does not hold the page up for ever: what was not read is said.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from skillwire.errors import LimitError, SkillwireError, UpstreamError
from skillwire.limits import MIB
from skillwire.skill.approval import fingerprint

if TYPE_CHECKING:
    from skillwire.host.loading import Content
    from skillwire.host.names import NamedEntry
    from skillwire.host.runtime import Host

_PATIENCE_SECONDS = 12.0
_AT_ONCE = 4
_MOST_BYTES = 32 * MIB  # of one skill, as it claims
_HELD_BYTES = 128 * MIB
_HELD_SKILLS = 32


@dataclass
class Reading:
    """What was read of one content of one skill, and why the rest was not; by URI."""

    files: dict[str, Content] = field(default_factory=dict["str", "Content"])
    errors: dict[str, SkillwireError] = field(default_factory=dict["str", SkillwireError])

    @property
    def size(self) -> int:
        """Bytes held."""
        return sum(len(content.data) for content in self.files.values())


class Reader:
    """Reads files through the host, and remembers the latest."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._held: OrderedDict[tuple[str, str, str], Reading] = OrderedDict()

    async def read_all(self, skill: NamedEntry) -> Reading:
        """Every file, as far as there is time and room for it."""
        reading = self._reading(skill)
        uris, left = list[str](), _MOST_BYTES
        for file in skill.entry.files or (None,):
            uri = skill.entry.uri if file is None else file.uri
            left -= 0 if file is None else file.size or 0
            if left < 0:
                reading.errors[uri] = _too_much()
            elif uri not in reading.files:
                uris.append(uri)
        await self._read_each(skill, reading, uris)
        self._tidy()
        return reading

    async def read(self, skill: NamedEntry, uri: str) -> Content:
        """One file; raises what reading raises."""
        reading = self._reading(skill)
        known = reading.files.get(uri)
        if known is not None:
            return known
        content = await self._host.look_at(skill, uri)
        reading.files[uri] = content
        reading.errors.pop(uri, None)
        self._tidy()
        return content

    async def keep(self, skill: NamedEntry) -> None:
        """The person said yes to what was read: from now on it may be in the cache."""
        cache = self._host.cache
        if cache is None or skill.origin.is_local:
            return
        for content in list(self._reading(skill).files.values()):
            if content.file is not None:
                await to_thread.run_sync(cache.put, skill.origin.label, content.file)

    async def _read_each(self, skill: NamedEntry, reading: Reading, uris: list[str]) -> None:
        waiting = iter(uris)

        async def work() -> None:
            for uri in waiting:
                try:
                    reading.files[uri] = await self._host.look_at(skill, uri)
                    reading.errors.pop(uri, None)
                except SkillwireError as error:
                    reading.errors[uri] = error

        with anyio.move_on_after(_PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                for _ in range(_AT_ONCE):
                    group.start_soon(work)
        for uri in uris:
            if uri not in reading.files and uri not in reading.errors:
                reading.errors[uri] = _too_slow()

    def _reading(self, skill: NamedEntry) -> Reading:
        """What is held of exactly this content. Of one that promises no digests nothing is held (V7)."""
        pairs = frozenset((file.uri, file.digest or "") for file in skill.entry.files)
        if not pairs or skill.entry.gaps & {"manifest", "digest"}:
            return Reading()
        key = skill.origin.label, skill.entry.uri, fingerprint(pairs)
        reading = self._held.setdefault(key, Reading())
        self._held.move_to_end(key)
        return reading

    def _tidy(self) -> None:
        total = sum(reading.size for reading in self._held.values())
        while len(self._held) > 1 and (total > _HELD_BYTES or len(self._held) > _HELD_SKILLS):
            _, oldest = self._held.popitem(last=False)
            total -= oldest.size


def _too_slow() -> UpstreamError:
    return UpstreamError("timed-out", "its server took too long", "reload this page to go on reading")


def _too_much() -> LimitError:
    return LimitError(
        "skill-too-large", "the skill has more than this page reads at once", "open the file by itself", rule="B1"
    )
