"""Who said yes to what, as the store has it now: in memory, looked at again every second.

``skillwire approve`` and ``skillwire revoke`` write into the same store from other processes: a yes, or its end,
is noticed within that time. Before anything is refused for want of a yes, the store is asked at once.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from skillwire.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillwire.skill.approval import Approval
    from skillwire.store.contract import Store

LOOK_SECONDS = 1.0

log = logging.getLogger("skillwire.gateway")


class Standing:
    """The approvals in ``store``. ``generation`` grows whenever one came, went or changed."""

    def __init__(self, store: Store, *, seconds: float = LOOK_SECONDS) -> None:
        self.generation = 0
        self._store = store
        self._seconds = seconds
        self._approvals: dict[tuple[str, str], Approval] = {}
        self._listeners: list[Callable[[], None]] = []

    def approval(self, origin: str, uri: str) -> Approval | None:
        """The approval in force for one skill, whatever content it is for."""
        return self._approvals.get((origin, uri))

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` whenever something changed."""
        self._listeners.append(listener)

    async def look(self) -> None:
        """What the store has now. If it cannot be read, what was known stays."""
        try:
            approvals = {(each.origin, each.uri): each for each in await self._store.approvals()}
        except StoreError as error:
            log.warning("approvals cannot be looked up, so that the last ones known count: %s", error.message)
            return
        if approvals != self._approvals:
            self._approvals = approvals
            self.generation += 1
            for listener in self._listeners:
                listener()

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await anyio.sleep(self._seconds)
