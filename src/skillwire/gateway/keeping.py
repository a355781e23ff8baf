"""What was fetched from an upstream, on its way into the cache: it waits a moment, and is written with others.

Writing every file by itself would take turns of the loop from those who read. What waits is found here (it was
verified a moment ago); if too much waits, the rest is not kept, and is fetched again when somebody asks for it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from skillwire.limits import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.host.cache import ContentCache
    from skillwire.skill import Resource
    from skillwire.skill.verify import VerifiedFile

_TOGETHER_SECONDS = 0.1
_GOODBYE_SECONDS = 2.0
_MOST_BYTES = 32 * MIB
_INLINE_BYTES = 256 * KIB  # smaller files are read where we are: a thread would cost more than the read

log = logging.getLogger("skillwire.gateway")


class Keeper:
    """The content of one upstream, in ``cache`` and on the way there. ``run`` writes."""

    def __init__(self, label: str, cache: ContentCache) -> None:
        self._label = label
        self._cache = cache
        self._waiting: dict[tuple[str, str | None], VerifiedFile] = {}
        self._size = 0
        self._news = anyio.Event()

    async def get(self, file: Resource) -> bytes | None:
        """What is kept of ``file``, or about to be; what comes from the disk is hashed again (C1)."""
        waiting = self._waiting.get((file.uri, file.digest))
        return await read_kept(self._cache, self._label, file) if waiting is None else waiting.data

    def put(self, file: VerifiedFile) -> None:
        """Keep ``file``, soon."""
        key = (file.uri, file.digest)
        is_too_much = self._waiting and self._size + len(file.data) > _MOST_BYTES
        if not is_too_much and key not in self._waiting:
            self._waiting[key] = file
            self._size += len(file.data)
            self._news.set()

    async def run(self) -> None:
        """Write what waits, until cancelled; then what is left, as far as that goes in a few seconds."""
        try:
            while True:
                await self._news.wait()
                await anyio.sleep(_TOGETHER_SECONDS)
                self._news = anyio.Event()
                await self._write()
        finally:
            with anyio.move_on_after(_GOODBYE_SECONDS, shield=True):
                await self._write()

    async def _write(self) -> None:
        some = list(self._waiting.values())
        try:
            await to_thread.run_sync(self._put, some, abandon_on_cancel=True)
        except Exception:
            log.exception("what was fetched could not be kept")
        for file in some:
            self._size -= len(self._waiting.pop((file.uri, file.digest)).data)

    def _put(self, files: Sequence[VerifiedFile]) -> None:
        for file in files:
            self._cache.put(self._label, file)


async def read_kept(cache: ContentCache, label: str, file: Resource) -> bytes | None:
    """What the cache has of a file, hashed again (C1)."""
    if file.digest is None:
        return None
    if file.size is not None and file.size <= _INLINE_BYTES:
        return cache.get(label, file.uri, file.digest)
    return await to_thread.run_sync(cache.get, label, file.uri, file.digest)
