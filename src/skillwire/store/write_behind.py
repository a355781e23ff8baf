"""A queue of fetched files that are written to the content cache in batches.

Writing each file immediately would slow down readers. A file that is not written yet is read from the queue: it is
verified already. If the queue is full, further files are not cached; the next request fetches them again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from skillwire.limits import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.skill import Resource
    from skillwire.skill.verify import VerifiedFile
    from skillwire.store.content_cache import ContentCache

_BATCH_SECONDS = 0.1
_SHUTDOWN_SECONDS = 2.0
_MAX_WAITING_BYTES = 32 * MIB
_INLINE_BYTES = 256 * KIB  # smaller files are read in this thread: starting another costs more than the read

log = logging.getLogger("skillwire.cache")


class WriteBehind:
    """The files of one origin, in ``cache`` or in the queue. ``run`` writes the queue to the cache."""

    def __init__(self, label: str, cache: ContentCache) -> None:
        self._label = label
        self._cache = cache
        self._waiting: dict[tuple[str, str | None], VerifiedFile] = {}
        self._waiting_bytes = 0
        self._has_work = anyio.Event()

    @property
    def waiting(self) -> tuple[int, int]:
        """How many files wait to be written, and their bytes."""
        return len(self._waiting), self._waiting_bytes

    async def get(self, file: Resource) -> bytes | None:
        """The bytes of ``file`` if they are cached or waiting. Bytes from the disk are hashed again (C1)."""
        waiting = self._waiting.get((file.uri, file.digest))
        return await read_cached(self._cache, self._label, file) if waiting is None else waiting.data

    def put(self, file: VerifiedFile) -> None:
        """Add ``file`` to the queue."""
        key = (file.uri, file.digest)
        is_too_much = self._waiting and self._waiting_bytes + len(file.data) > _MAX_WAITING_BYTES
        if not is_too_much and key not in self._waiting:
            self._waiting[key] = file
            self._waiting_bytes += len(file.data)
            self._has_work.set()

    async def run(self) -> None:
        """Write until cancelled; then write the rest, for at most two seconds."""
        try:
            while True:
                await self._has_work.wait()
                await anyio.sleep(_BATCH_SECONDS)
                self._has_work = anyio.Event()
                await self._write()
        finally:
            with anyio.move_on_after(_SHUTDOWN_SECONDS, shield=True):
                await self._write()

    async def _write(self) -> None:
        batch = list(self._waiting.values())
        try:
            await to_thread.run_sync(self._put, batch, abandon_on_cancel=True)
        except Exception:
            log.exception("fetched files of %r cannot be cached", self._label)
        for file in batch:
            self._waiting_bytes -= len(self._waiting.pop((file.uri, file.digest)).data)

    def _put(self, files: Sequence[VerifiedFile]) -> None:
        for file in files:
            self._cache.put(self._label, file)


async def read_cached(cache: ContentCache, label: str, file: Resource) -> bytes | None:
    """The cached bytes of a file, hashed again (C1)."""
    if file.digest is None:
        return None
    if file.size is not None and file.size <= _INLINE_BYTES:
        return cache.get(label, file.uri, file.digest)
    return await to_thread.run_sync(cache.get, label, file.uri, file.digest)
