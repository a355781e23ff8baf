"""Skills that are listed short: what somebody said yes to is asked for in full, so that it can be compared (A1).

Some dialects list less than they promise, and a yes is to all of a skill. Only what has a yes is asked for (V5), a
few at a time, and whoever lists meanwhile does not wait for it.
"""

from __future__ import annotations

import logging
import time
from math import inf
from typing import TYPE_CHECKING

import anyio

from skillwire.errors import NotFoundError, SkillwireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.gateway.admission import Admission
    from skillwire.skill import SkillEntry

_AT_ONCE = 8  # readers have their turns in between

log = logging.getLogger("skillwire.gateway")


class Completion:
    """Full entries of ``catalog`` for those that ``admission`` cannot judge as they are listed.

    ``news`` is called when one came, and when one was asked for in vain.
    """

    def __init__(self, catalog: Catalog, admission: Admission, news: Callable[[], None]) -> None:
        self._catalog = catalog
        self._admission = admission
        self._news = news
        self._room = anyio.Semaphore(_AT_ONCE)
        self._in_vain: set[str] = set()
        self._full: dict[str, SkillEntry] = {}  # what stands for an entry that is listed short
        self._asked_at: dict[str, tuple[SkillEntry, float]] = {}

    async def known(self, listed: Sequence[SkillEntry]) -> Sequence[SkillEntry]:
        """What is listed, in full where that is known."""
        if not self._admission.is_strict:
            return listed
        self._full = {
            entry.uri: await self._catalog.peek_skill(entry.uri) or entry for entry in listed if entry.is_short
        }
        return [self._full.get(entry.uri, entry) for entry in listed]

    def seen_at(self, entry: SkillEntry) -> float:
        """When the upstream said so, if it was asked; it is not known if somebody else asked."""
        if self._full.get(entry.uri) is not entry:
            return inf  # as it is listed
        asked, at = self._asked_at.get(entry.uri, (None, 0.0))
        return at if asked is entry else 0.0

    def is_short(self, entry: SkillEntry) -> bool:
        """Whether a skill has a yes, and is listed too short to tell whether that is to what there is now."""
        return entry.is_short and self._admission.is_waiting(entry) and self._admission.has_yes(entry)

    def was_in_vain(self, entry: SkillEntry) -> bool:
        """Whether the skill was asked for, and is still short."""
        return entry.uri in self._in_vain

    async def admitted(self, entry: SkillEntry) -> SkillEntry | None:
        """The entry, in full if that takes asking, if it is admitted."""
        if await self._admission.admits_by_now(entry):
            return entry
        if not self.is_short(entry):
            return None
        try:
            full = await self._catalog.get_skill(entry.uri)
        except NotFoundError:
            return None
        return full if self._admission.admits(full) else None

    async def ask(self, entries: Iterable[SkillEntry]) -> None:
        """Ask for each of ``entries`` that is short; no failure is another's."""
        short = [entry for entry in entries if self.is_short(entry)]
        self._in_vain &= {entry.uri for entry in short}
        async with anyio.create_task_group() as group:
            for entry in short:
                group.start_soon(self._ask, entry)

    async def _ask(self, entry: SkillEntry) -> None:
        try:
            async with self._room:
                at = time.time()
                full = await self._catalog.get_skill(entry.uri)
            self._asked_at[entry.uri] = full, at
            is_full = full.is_complete
        except SkillwireError as error:
            log.info("%r of %r is not known in full: %s", entry.uri[:300], self._admission.label, error.message)
            is_full = False
        if is_full or entry.uri not in self._in_vain:
            self._news()
        if not is_full:
            self._in_vain.add(entry.uri)
