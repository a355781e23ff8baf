"""What changed, as it changes: one watcher for all pages, and a stream of server-sent events for each.

An event says only that something changed; the page then asks for what it shows. Whoever changed it, this process
or another one that uses the same memory, it is noticed by looking at a number every half second.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import anyio
from starlette.responses import StreamingResponse

from skillwire.errors import StoreError
from skillwire.web.desk.answers import HEADERS, refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from skillwire.host.runtime import Host

_LOOK_SECONDS = 0.5
_ALIVE_SECONDS = 15.0
_MOST_STREAMS = 64
log = logging.getLogger("skillwire.desk")


class Watcher:
    """Counts changes. ``run`` looks for them until it is cancelled."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._changed = anyio.Event()
        self._streams = 0
        self.is_ended = False
        self.number = 0

    async def run(self) -> None:
        """Look, and tell whoever waits."""
        seen: object = None
        while True:
            try:
                picture = await self._picture()
            except StoreError as error:
                log.info("the memory cannot be looked at: %s", error.reference)
                picture = seen
            if picture != seen:
                seen = picture
                self.number += 1
                self._tell()
            await anyio.sleep(_LOOK_SECONDS)

    def end(self) -> None:
        """End every stream: the desk is closing."""
        self.is_ended = True
        self._tell()

    async def stream(self, request: Request) -> Response:
        """The events, for one page."""
        if self._streams >= _MOST_STREAMS:
            return refusal("too-many-streams", request)
        return StreamingResponse(self._events(), media_type="text/event-stream", headers=HEADERS)

    async def _events(self) -> AsyncIterator[str]:
        """The first says where we are, so that a page that was made just before knows whether it is old."""
        self._streams += 1
        try:
            yield "retry: 2000\n\n"
            told: int | None = None
            while not self.is_ended:
                number, changed = self.number, self._changed
                if number != told:
                    told = number
                    yield f"event: changed\ndata: {number}\n\n"
                    continue
                with anyio.move_on_after(_ALIVE_SECONDS) as waiting:
                    await changed.wait()
                if waiting.cancelled_caught:
                    yield ": still here\n\n"
        finally:
            self._streams -= 1

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _picture(self) -> Any:
        """Equal as long as no page would look different."""
        store = self._host.store
        waiting = [question.id for question in await store.questions(time.time())]
        origins = [(each.label, each.state, each.error, each.entries) for each in self._host.origins]
        return await store.version(), waiting, _Same(origins)


class _Same:
    """Compares what origins know by identity: a listing of thousands is not compared skill by skill."""

    def __init__(self, origins: list[tuple[Any, ...]]) -> None:
        self._origins = origins  # held, so that no identity is given to something else meanwhile

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._ids == other._ids

    __hash__ = None  # pyright: ignore[reportAssignmentType] - nobody keeps it in a set

    @property
    def _ids(self) -> list[tuple[Any, ...]]:
        return [(label, state, id(error), id(entries)) for label, state, error, entries in self._origins]
