"""The way to a server over HTTP: JSON-RPC as it is, with bounds below it (B1, B2, B4).

Nothing is parsed but JSON and the frames of an event stream. Whatever goes wrong becomes a ``Reply`` with a
problem in words, never an exception.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import httpx2

from skillwire.client.failures import as_ours
from skillwire.client.http import bounded_client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from skillwire.client.meter import Meter
    from skillwire.client.servers import UrlServer
    from skillwire.conform.evidence import Message

_SESSION = "mcp-session-id"
_EVENTS = "text/event-stream"
_JSON = "application/json"
_MAX_EVENTS = 1_000
_METHOD_UNKNOWN = -32601


class Reply(NamedTuple):
    """What came back: a message as it was parsed, or why there is none."""

    message: Any = None
    problem: str = ""
    is_lost: bool = False  # nothing can be reached there, now or later


class Line(Protocol):
    """A connection that carries messages."""

    async def ask(self, message: Message, headers: Mapping[str, str]) -> Reply:
        """Send a request and wait for its answer. The caller bounds the time."""
        ...

    async def tell(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send a notification."""
        ...


@asynccontextmanager
async def open_http_line(place: UrlServer, meter: Meter) -> AsyncGenerator[HttpLine]:
    """A line to the server at ``place``; a session that it began is ended."""
    async with bounded_client(place.headers, meter) as client:
        line = HttpLine(client, place.url, meter)
        try:
            yield line
        finally:
            await line.end()


class HttpLine:
    """One server over Streamable HTTP."""

    def __init__(self, client: httpx2.AsyncClient, url: str, meter: Meter) -> None:
        self._client = client
        self._url = url
        self._meter = meter
        self._session: dict[str, str] = {}

    async def ask(self, message: Message, headers: Mapping[str, str]) -> Reply:
        """POST, and the one message that answers."""
        try:
            async with self._client.stream(
                "POST", self._url, content=json.dumps(message), headers=self._headers(headers)
            ) as response:
                if _SESSION in response.headers:
                    self._session = {_SESSION: response.headers[_SESSION]}
                return await self._reply(response, message)
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError, ValueError) as error:
            failure = as_ours(error, self._meter, str(message.get("method")))
            return Reply(problem=failure.message, is_lost=failure.reference == "connection-lost")

    async def tell(self, message: Message, headers: Mapping[str, str]) -> None:
        """POST; what comes back does not matter."""
        await self.ask(message, headers)

    async def end(self) -> None:
        """Let the server forget the session."""
        if self._session:
            try:
                await self._client.delete(self._url, headers=self._headers({}))
            except (httpx2.HTTPError, httpx2.StreamError, OSError):
                return

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {"accept": f"{_JSON}, {_EVENTS}", "content-type": _JSON, **self._session, **headers}

    async def _reply(self, response: httpx2.Response, message: Message) -> Reply:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == _EVENTS:
            return await self._from_events(response, message)
        body = await response.aread()
        if "id" not in message:
            return Reply()
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            return Reply(problem=f"HTTP {response.status_code} with a body that is not JSON")
        if kind != _JSON:
            return Reply(problem=f"HTTP {response.status_code} with JSON that is called {kind or 'nothing'!r:.80}")
        return Reply(found)

    async def _from_events(self, response: httpx2.Response, message: Message) -> Reply:
        """The answer among the events; what the server asks us on the way is answered."""
        count = 0
        async for event in httpx2.EventSource(response, max_event_size=self._meter.limits.max_message_bytes):
            count += 1
            if count > _MAX_EVENTS:
                return Reply(problem=f"no answer among {_MAX_EVENTS:,} events")
            if not event.data:
                continue
            try:
                found: Any = json.loads(event.data)
            except (ValueError, RecursionError):
                return Reply(problem="an event that is not JSON")
            if is_answer(found):
                return Reply(found)
            back = answer_to(found)
            if back is not None:
                await self.tell(back, {})
        return Reply(problem="" if "id" not in message else "the stream of events ended without an answer")


def is_answer(message: Any) -> bool:
    """Whether it can be an answer: whatever is no request and no notification."""
    return not (isinstance(message, dict) and "method" in message)


def answer_to(message: Any) -> Message | None:
    """What we say to a server that asks us: we are there, and can do nothing."""
    request = cast("Message", message)
    if request.get("id") is None:
        return None
    if request["method"] == "ping":
        return {"jsonrpc": "2.0", "id": request["id"], "result": {}}
    refusal = {"code": _METHOD_UNKNOWN, "message": "a conformance run answers nothing"}
    return {"jsonrpc": "2.0", "id": request["id"], "error": refusal}
