"""Server-sent events. An event only announces a change; the page then fetches its parts again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from starlette.responses import Response, StreamingResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.requests import Request

_KEEP_ALIVE_SECONDS = 15.0
_MAX_STREAMS = 64


class ChangeCounter:
    """Something that changes: ``number`` grows with each change, and ``changed`` is set and replaced."""

    def __init__(self) -> None:
        self.number = 0
        self.changed = anyio.Event()

    def tell(self) -> None:
        """Tell open pages that they may be outdated."""
        self.number += 1
        self.changed.set()
        self.changed = anyio.Event()


class EventStreams:
    """The open streams of one server."""

    def __init__(self) -> None:
        self._open: list[ChangeCounter] = []
        self.is_ended = False

    def end(self) -> None:
        """End every stream, because the server stops."""
        self.is_ended = True
        for source in self._open:
            source.changed.set()

    def response(self, request: Request, source: ChangeCounter, headers: Mapping[str, str]) -> Response | None:
        """The stream of one page; ``None`` if too many are open."""
        if len(self._open) >= _MAX_STREAMS:
            return None
        if request.method == "HEAD":  # a stream would block the connection, which the browser uses again
            return Response(media_type="text/event-stream", headers=dict(headers))
        return StreamingResponse(self._events(source), media_type="text/event-stream", headers=dict(headers))

    async def _events(self, source: ChangeCounter) -> AsyncIterator[str]:
        """The first event has the current number, so that a page learns whether it is outdated."""
        self._open.append(source)
        try:
            yield "retry: 2000\n\n"
            sent: int | None = None
            while not self.is_ended:
                number, changed = source.number, source.changed
                if number != sent:
                    sent = number
                    yield f"event: changed\ndata: {number}\n\n"
                    continue
                with anyio.move_on_after(_KEEP_ALIVE_SECONDS) as waiting:
                    await changed.wait()
                if waiting.cancelled_caught:
                    yield ": keep-alive\n\n"
        finally:
            self._open.remove(source)
