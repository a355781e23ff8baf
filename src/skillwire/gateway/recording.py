"""What was served, written down once for each content of each skill: the operator's log of a gateway.

Writing never makes a reader wait. What is noted waits here until ``run`` writes it; if there is too much of it,
the rest is noted when it is served again.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import anyio

from skillwire.errors import StoreError
from skillwire.skill.approval import fingerprint_of
from skillwire.store.contract import LogLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.skill import SkillEntry
    from skillwire.store.contract import Store

_MOST_WAITING = 10_000
_MOST_KNOWN = 100_000
_AT_ONCE = 100  # in one transaction: others have their turns in between
_ANSWER_FIRST = 0.2  # seconds to wait for more: writing takes turns with answering

log = logging.getLogger("skillwire.gateway")


class Recorder:
    """Writes into ``store`` what ``note`` was told, each content once, also over several runs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[str, str], SkillEntry] = {}  # by label and URI: the entry that was noted last
        self._waiting: dict[tuple[str, str], SkillEntry] = {}
        self._news = anyio.Event()
        self._writing = False

    @property
    def is_busy(self) -> bool:
        """Whether something that was noted is not written yet."""
        return bool(self._waiting) or self._writing

    def note(self, label: str, entry: SkillEntry) -> None:
        """A skill is being served."""
        key = (label, entry.uri)
        if self._known.get(key) is entry or len(self._waiting) >= _MOST_WAITING:
            return
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = self._waiting[key] = entry
        self._news.set()

    async def run(self) -> None:
        """Write down what was noted, until cancelled."""
        while True:
            await self._news.wait()
            await anyio.sleep(_ANSWER_FIRST)
            self._news = anyio.Event()
            while self._waiting:
                some = [self._waiting.popitem() for _ in range(min(len(self._waiting), _AT_ONCE))]
                self._writing = True
                try:
                    await self._store.log_news([_line(label, entry) for (label, _), entry in some])
                except Exception as error:  # whatever it is: a gateway without this log is a gateway
                    is_known = isinstance(error, StoreError)
                    log.warning("what was served is not in the log: %s", error, exc_info=not is_known)
                    self._forget(some)
                finally:
                    self._writing = False

    def _forget(self, unwritten: Sequence[tuple[tuple[str, str], SkillEntry]]) -> None:
        """To be noted when they are served again."""
        for key, entry in unwritten:
            if self._known.get(key) is entry:
                del self._known[key]


def _line(label: str, entry: SkillEntry) -> LogLine:
    facts = {"fingerprint": contents_name(entry), "files": len(entry.files)}
    return LogLine("served", label, entry.uri, "gateway", time.time(), facts)


def contents_name(entry: SkillEntry) -> str:
    """The fingerprint of what an entry promises; ``"dynamic"`` if it promises nothing."""
    return fingerprint_of(entry) or "dynamic"
