"""Raw JSON-RPC over HTTP and over the pipes of a process, with bounds below both (B1, B2, B4).

Only JSON and the frames of an event stream are parsed. A failure becomes a ``RawReply`` with a problem text, never
an exception.
"""

from __future__ import annotations

import json
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import anyio
import httpx2

from skillwire.client.connection import as_ours
from skillwire.client.http import bounded_client
from skillwire.client.shapes import as_object
from skillwire.client.stdio import each_line, running
from skillwire.errors import SkillwireError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from skillwire.client.meter import Meter
    from skillwire.client.servers import CommandServer, UrlServer
    from skillwire.client.stdio import Child
    from skillwire.conform.report import Message

_SESSION = "mcp-session-id"
_EVENTS = "text/event-stream"
_JSON = "application/json"
_MAX_EVENTS = 1_000
_METHOD_UNKNOWN = -32601
_AHEAD = 64  # buffered lines
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


class RawReply(NamedTuple):
    """A parsed message, or the reason why there is none."""

    message: Any = None
    problem: str = ""
    is_lost: bool = False  # the connection is gone for good


class Transport(Protocol):
    """A connection to a server that carries JSON-RPC messages."""

    async def ask(self, message: Message, headers: Mapping[str, str]) -> RawReply:
        """Send a request and wait for its response. The caller sets the timeout."""
        ...

    async def tell(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send a notification."""
        ...


@asynccontextmanager
async def open_http(place: UrlServer, meter: Meter) -> AsyncGenerator[HttpTransport]:
    """Connect to the server at ``place``, and end its session on exit."""
    async with bounded_client(place.headers, meter) as client:
        line = HttpTransport(client, place.url, meter)
        try:
            yield line
        finally:
            await line.end()


class HttpTransport:
    """A server over Streamable HTTP."""

    def __init__(self, client: httpx2.AsyncClient, url: str, meter: Meter) -> None:
        self._client = client
        self._url = url
        self._meter = meter
        self._session: dict[str, str] = {}

    async def ask(self, message: Message, headers: Mapping[str, str]) -> RawReply:
        """POST the request and return the message that answers it."""
        try:
            async with self._client.stream(
                "POST", self._url, content=json.dumps(message), headers=self._headers(headers)
            ) as response:
                if _SESSION in response.headers:
                    self._session = {_SESSION: response.headers[_SESSION]}
                return await self._reply(response, message)
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError, ValueError) as error:
            failure = as_ours(error, self._meter, str(message.get("method")))
            return RawReply(problem=failure.message, is_lost=failure.reference == "connection-lost")

    async def tell(self, message: Message, headers: Mapping[str, str]) -> None:
        """POST the notification and ignore the response."""
        await self.ask(message, headers)

    async def end(self) -> None:
        """End the session on the server."""
        if self._session:
            try:
                await self._client.delete(self._url, headers=self._headers({}))
            except (httpx2.HTTPError, httpx2.StreamError, OSError):
                return

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {"accept": f"{_JSON}, {_EVENTS}", "content-type": _JSON, **self._session, **headers}

    async def _reply(self, response: httpx2.Response, message: Message) -> RawReply:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == _EVENTS:
            return await self._from_events(response, message)
        body = await response.aread()
        if "id" not in message:
            return RawReply()
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            return RawReply(problem=f"HTTP {response.status_code} with a body that is not JSON")
        if kind != _JSON:
            return RawReply(problem=f"HTTP {response.status_code} with JSON of the content type {kind!r:.80}")
        return RawReply(found)

    async def _from_events(self, response: httpx2.Response, message: Message) -> RawReply:
        """Find the response among the events, and answer requests of the server on the way."""
        count = 0
        async for event in httpx2.EventSource(response, max_event_size=self._meter.limits.max_message_bytes):
            count += 1
            if count > _MAX_EVENTS:
                return RawReply(problem=f"no response among {_MAX_EVENTS:,} events")
            if not event.data:
                continue
            try:
                found: Any = json.loads(event.data)
            except (ValueError, RecursionError):
                return RawReply(problem="an event that is not JSON")
            if is_answer(found):
                return RawReply(found)
            back = answer_to(found)
            if back is not None:
                await self.tell(back, {})
        return RawReply(problem="" if "id" not in message else "the event stream ended without a response")


def is_answer(message: Any) -> bool:
    """Whether ``message`` can be a response: it is neither a request nor a notification."""
    return not (isinstance(message, dict) and "method" in message)


def answer_to(message: Any) -> Message | None:
    """The response to a request of the server: pings succeed, everything else is refused."""
    request = cast("Message", message)
    if request.get("id") is None:
        return None
    if request["method"] == "ping":
        return {"jsonrpc": "2.0", "id": request["id"], "result": {}}
    refusal = {"code": _METHOD_UNKNOWN, "message": "a conformance run offers no methods"}
    return {"jsonrpc": "2.0", "id": request["id"], "error": refusal}


@asynccontextmanager
async def open_stdio(place: CommandServer, meter: Meter) -> AsyncGenerator[StdioTransport]:
    """Start the process, and end it on exit."""
    async with running(place.command, place.env, place.cwd, meter) as child:
        send, receive = anyio.create_memory_object_stream[bytes](_AHEAD)
        async with anyio.create_task_group() as reading:
            reading.start_soon(_read, child, send, meter)
            try:
                yield StdioTransport(child, receive, meter)
            finally:
                receive.close()
                reading.cancel_scope.cancel()


async def _read(child: Child, send: MemoryObjectSendStream[bytes], meter: Meter) -> None:
    try:
        async with send, aclosing(each_line(child.stdout, meter)) as lines:
            async for line in lines:
                await send.send(line)
    except (SkillwireError, *_GONE):  # a bound, which the meter records, or the reader has closed
        return


class StdioTransport:
    """A server as a process. Requests are sent one after another."""

    def __init__(self, child: Child, lines: MemoryObjectReceiveStream[bytes], meter: Meter) -> None:
        self._child = child
        self._lines = lines
        self._meter = meter
        self._abandoned: set[Any] = set()  # ids of requests without a response so far
        self.noise = ""  # the first line on stdout that is not a message

    async def ask(self, message: Message, headers: Mapping[str, str]) -> RawReply:  # noqa: ARG002 - only HTTP has headers
        """Write the request, and return the next response that does not belong to an older request."""
        self._abandoned.add(message.get("id"))
        try:
            await self._send(message)
            while True:
                line = await self._lines.receive()
                found = self._message(line)
                if found is None:
                    if b'"jsonrpc"' in line:
                        return RawReply(problem="a message that is not JSON")
                    continue
                if not is_answer(found):
                    back = answer_to(found)
                    if back is not None:
                        await self._send(back)
                elif not self._is_late(found, message):
                    self._abandoned.discard(message.get("id"))
                    return RawReply(found)
        except (*_GONE, anyio.EndOfStream):
            return RawReply(problem=self._why(), is_lost=True)

    async def tell(self, message: Message, headers: Mapping[str, str]) -> None:  # noqa: ARG002
        """Write the notification to the process."""
        try:
            await self._send(message)
        except _GONE:
            return

    async def _send(self, message: Message) -> None:
        await self._child.stdin.send(json.dumps(message).encode() + b"\n")

    def _message(self, line: bytes) -> Any:
        """Parse a line; ``None`` if it is empty or not JSON."""
        if not line.strip():
            return None
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            self.noise = self.noise or line[:200].decode(errors="replace")
            return None

    def _is_late(self, found: Any, message: Message) -> bool:
        found_id: object = as_object(found).get("id")
        return found_id != message.get("id") and isinstance(found_id, int) and found_id in self._abandoned

    def _why(self) -> str:
        failure = self._meter.take_failure()
        if failure is not None:
            return failure.message
        output = " ".join(self._meter.last_output.split())[-300:]
        return "the process ended" + (f"; last output: {output}" if output else "")
