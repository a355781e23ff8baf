"""Live updates of the desk. The watcher polls twice a second: other processes may change the same store."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import anyio

from skillwire.errors import StoreError
from skillwire.web.desk.guard import refusal
from skillwire.web.desk.responses import HEADERS
from skillwire.web.events import EventStreams

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from skillwire.host.host import SkillHost

_POLL_SECONDS = 0.5
log = logging.getLogger("skillwire.desk")


class Watcher:
    """Counts changes. ``run`` polls for them until it is cancelled."""

    def __init__(self, host: SkillHost) -> None:
        self._host = host
        self._compared: list[Any] = []
        self._streams = EventStreams()
        self.changed = anyio.Event()
        self.number = 0

    async def run(self) -> None:
        """Poll for changes, and notify the streams."""
        seen: object = None
        while True:
            try:
                snapshot = await self._snapshot()
            except StoreError as error:
                log.info("the store cannot be read: %s", error.reference)
                snapshot = seen
            if snapshot != seen:
                seen = snapshot
                self.number += 1
                self.changed.set()
                self.changed = anyio.Event()
            await anyio.sleep(_POLL_SECONDS)

    def end(self) -> None:
        """End every stream, because the desk closes."""
        self._streams.end()

    async def stream(self, request: Request) -> Response:
        """The event stream of one page."""
        return self._streams.response(request, self, HEADERS) or refusal("too-many-streams", request)

    async def _snapshot(self) -> Any:
        """A value that is equal as long as no page would change.

        Errors and lists of origins are compared by identity, because a list can have thousands of skills.
        """
        store = self._host.store
        waiting = [question.id for question in await store.questions(time.time())]
        origins = [(each.label, each.state, each.error, each.known) for each in self._host.registry]
        same = [(label, state, id(error), id(entries)) for label, state, error, entries in origins]
        self._compared = origins  # keeps the objects alive until the next snapshot, so that no id is used again
        return await store.version(), waiting, same
