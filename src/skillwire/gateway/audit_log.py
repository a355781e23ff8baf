"""Records which content of which skill was served, once for each content.

A task writes the records, so that no request waits for the store. If too many wait, a skill is recorded when it is
served again.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import anyio

from skillwire.errors import StoreError
from skillwire.gateway.approval_queue import content_name
from skillwire.store.records import LogLine

if TYPE_CHECKING:
    from skillwire.skill import SkillEntry
    from skillwire.store.store import Store

_MAX_WAITING = 10_000
_MAX_KNOWN = 100_000
_BATCH = 100  # records in one transaction, so that other writers get their turn
_DELAY_SECONDS = 0.2  # to collect more records; responses come before records

log = logging.getLogger("skillwire.gateway")


class AuditLog:
    """Writes what ``record`` collects to the log of ``store``. The store ignores content that it has recorded."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[str, str], SkillEntry] = {}  # by label and URI: the entry that was recorded last
        self._waiting: dict[tuple[str, str], SkillEntry] = {}
        self._wake = anyio.Event()
        self._writing = anyio.Lock()

    def record(self, label: str, entry: SkillEntry) -> None:
        """Record that a skill is served."""
        key = (label, entry.uri)
        if self._known.get(key) is entry or len(self._waiting) >= _MAX_WAITING:
            return
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()  # repeated records are harmless: the store ignores them
        self._known[key] = self._waiting[key] = entry
        self._wake.set()

    async def run(self) -> None:
        """Write records until cancelled."""
        while True:
            await self._wake.wait()
            await anyio.sleep(_DELAY_SECONDS)
            self._wake = anyio.Event()
            await self.flush()

    async def flush(self) -> None:
        """Write all records that wait."""
        async with self._writing:
            while self._waiting:
                batch = [self._waiting.popitem() for _ in range(min(len(self._waiting), _BATCH))]
                try:
                    await self._store.log_news([_log_line(label, entry) for (label, _), entry in batch])
                except Exception as error:  # a gateway must not stop because its log cannot be written
                    is_expected = isinstance(error, StoreError)
                    log.warning("served skills could not be logged: %s", error, exc_info=not is_expected)
                    for key, entry in batch:  # record them when they are served again
                        if self._known.get(key) is entry:
                            del self._known[key]


def _log_line(label: str, entry: SkillEntry) -> LogLine:
    facts = {"fingerprint": content_name(entry), "files": len(entry.files)}
    return LogLine("served", label, entry.uri, "gateway", time.time(), facts)
