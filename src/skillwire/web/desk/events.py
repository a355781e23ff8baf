"""Live updates: one watcher for all pages, and a stream of server-sent events for each page.

An event only announces a change; the page then fetches its parts again. The watcher polls a version number twice a
second, because other processes may change the same store.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import anyio
from starlette.responses import StreamingResponse

from skillwire.errors import StoreError
from skillwire.web.desk.guard import refusal
from skillwire.web.desk.responses import HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from skillwire.host.host import SkillHost

_POLL_SECONDS = 0.5
_KEEP_ALIVE_SECONDS = 15.0
_MAX_STREAMS = 64
log = logging.getLogger("skillwire.desk")


class Watcher:
    """Counts changes. ``run`` polls for them until it is cancelled."""

    def __init__(self, host: SkillHost) -> None:
        self._host = host
        self._changed = anyio.Event()
        self._streams = 0
        self._compared: list[Any] = []
        self.is_ended = False
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
                self._notify()
            await anyio.sleep(_POLL_SECONDS)

    def end(self) -> None:
        """End every stream, because the desk closes."""
        self.is_ended = True
        self._notify()

    async def stream(self, request: Request) -> Response:
        """The event stream of one page."""
        if self._streams >= _MAX_STREAMS:
            return refusal("too-many-streams", request)
        return StreamingResponse(self._events(), media_type="text/event-stream", headers=HEADERS)

    async def _events(self) -> AsyncIterator[str]:
        """The first event has the current number, so that a page learns whether it is outdated."""
        self._streams += 1
        try:
            yield "retry: 2000\n\n"
            sent: int | None = None
            while not self.is_ended:
                number, changed = self.number, self._changed
                if number != sent:
                    sent = number
                    yield f"event: changed\ndata: {number}\n\n"
                    continue
                with anyio.move_on_after(_KEEP_ALIVE_SECONDS) as waiting:
                    await changed.wait()
                if waiting.cancelled_caught:
                    yield ": keep-alive\n\n"
        finally:
            self._streams -= 1

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

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
