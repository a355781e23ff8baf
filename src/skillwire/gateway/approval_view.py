"""The approvals of the store, kept in memory, so that no request waits for the store.

``skillwire approve`` and ``skillwire approvals`` write to the same store from other processes, so a task reads the
store every second. Before a request is declined because an approval is missing, the store is read at once.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from skillwire.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillwire.skill.approval import Approval
    from skillwire.store.store import Store

_REFRESH_SECONDS = 1.0

log = logging.getLogger("skillwire.gateway")


class ApprovalView:
    """The approvals in ``store``. ``generation`` grows whenever one was added, changed or removed."""

    def __init__(self, store: Store) -> None:
        self.generation = 0
        self._store = store
        self._approvals: dict[tuple[str, str], Approval] = {}
        self._listeners: list[Callable[[], None]] = []

    def approval(self, origin: str, uri: str) -> Approval | None:
        """The approval of one skill, for any content."""
        return self._approvals.get((origin, uri))

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each change."""
        self._listeners.append(listener)

    async def refresh(self) -> None:
        """Read the store. If that fails, the last known approvals stay in force."""
        try:
            approvals = {(each.origin, each.uri): each for each in await self._store.approvals()}
        except StoreError as error:
            log.warning("approvals cannot be read, so the last known ones stay in force: %s", error.message)
            return
        if approvals != self._approvals:
            self._approvals = approvals
            self.generation += 1
            for listener in self._listeners:
                listener()

    async def run(self) -> None:
        """Refresh every second until cancelled."""
        while True:
            await self.refresh()
            await anyio.sleep(_REFRESH_SECONDS)
