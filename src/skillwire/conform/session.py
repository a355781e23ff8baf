"""A raw JSON-RPC session with a server in one era of the protocol, over HTTP or the pipes of a process.

Only JSON and the frames of an event stream are parsed, within the bounds of the client (B1, B2, B4). A failed
request becomes an ``Exchange`` with a problem, never an exception. The session raises ``SessionEnded`` when the
time is over, when the number of requests reaches its bound, when the connection is lost, or when several requests
in a row had no response.
"""

from __future__ import annotations

import json
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import anyio
import httpx2
from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from skillwire.client.bounds import Meter, as_list, as_object, bounded_client
from skillwire.client.connection import as_ours
from skillwire.client.servers import UrlServer
from skillwire.client.stdio import each_line, running
from skillwire.conform.report import Exchange
from skillwire.errors import SkillwireError
from skillwire.limits import MIB, Limits
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from skillwire.client.servers import ServerPlace
    from skillwire.client.stdio import Child
    from skillwire.conform.report import Message

Era: TypeAlias = Literal["modern", "legacy"]
ERAS: tuple[Era, ...] = ("modern", "legacy")
VERSIONS: dict[Era, str] = {"modern": LATEST_MODERN_VERSION, "legacy": LATEST_HANDSHAKE_VERSION}

_META = "io.modelcontextprotocol"
_CLIENT_INFO: Message = {"name": "skillwire-conform", "version": version("skillwire")}
_CAPABILITIES: Message = {"extensions": {EXTENSION_ID: {}}}  # K3: some servers answer only clients that declare it
_MAX_SILENT_CALLS = 3
_SESSION = "mcp-session-id"
_EVENTS = "text/event-stream"
_JSON = "application/json"
_MAX_EVENTS = 1_000
_METHOD_UNKNOWN = -32601
_BUFFERED_LINES = 64
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a server is checked, and for how long, in each era."""

    seconds: float = 120.0
    call_seconds: float = 15.0
    requests: int = 20_000
    pages: int = 1_000
    entries: int = 20_000
    files: int = 2_000
    directories: int = 500
    file_bytes: int = 128 * MIB


class SessionEnded(Exception):  # noqa: N818 - the end of a session, not an error of ours
    """The reason why no more requests are sent."""


class RawSession:
    """Sends requests to one server. ``on_exchange`` sees every exchange."""

    def __init__(self, transport: _Http | _Stdio, era: Era, bounds: Bounds) -> None:
        self.era: Era = era
        self.is_modern = era == "modern"
        self.on_exchange: Callable[[Exchange], None] = lambda exchange: None  # noqa: ARG005
        self._version = VERSIONS[era]
        self._transport = transport
        self._bounds = bounds
        self._deadline = anyio.current_time() + bounds.seconds
        self._asked = 0
        self._silent = 0

    @property
    def noise(self) -> str:
        """The first output of a process on stdout that is not a message."""
        return self._transport.noise

    async def open(self) -> Exchange:
        """Send the first request, whose response has the capabilities of the server."""
        if self.is_modern:
            return await self.ask("server/discover")
        exchange = await self.ask(
            "initialize", protocolVersion=self._version, clientInfo=_CLIENT_INFO, capabilities=_CAPABILITIES
        )
        agreed = (exchange.result or {}).get("protocolVersion")
        if isinstance(agreed, str) and agreed.isascii() and agreed.isprintable():
            self._version = agreed
            message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            with anyio.move_on_after(self._bounds.call_seconds):
                await self._transport.notify(message, self._headers(message))
        return exchange

    async def ask(self, method: str, **params: Any) -> Exchange:
        """Send a request and return the exchange; ``SessionEnded`` if no more requests can be sent."""
        self._asked += 1
        if self._asked > self._bounds.requests:
            raise SessionEnded(f"{self._bounds.requests:,} requests were sent, which is the limit")
        left = self._deadline - anyio.current_time()
        if left <= 0:
            raise SessionEnded(f"the time limit of {self._bounds.seconds:g} seconds was reached")
        if self.is_modern:
            params["_meta"] = {
                f"{_META}/protocolVersion": self._version,
                f"{_META}/clientInfo": _CLIENT_INFO,
                f"{_META}/clientCapabilities": _CAPABILITIES,
            }
        request: Message = {"jsonrpc": "2.0", "id": self._asked, "method": method}
        if params:
            request["params"] = params
        seconds = min(left, self._bounds.call_seconds)
        reply = _Reply(problem=f"no response within {seconds:.0f} seconds")
        with anyio.move_on_after(seconds):
            reply = await self._transport.ask(request, self._headers(request))
        exchange = Exchange(request, reply.message, reply.problem)
        self.on_exchange(exchange)
        self._silent = self._silent + 1 if reply.problem else 0
        if reply.is_lost:
            raise SessionEnded(reply.problem)
        if self._silent >= _MAX_SILENT_CALLS:
            raise SessionEnded(f"{self._silent} requests in a row had no readable response ({reply.problem})")
        return exchange

    def _headers(self, request: Message) -> dict[str, str]:
        """The fields that HTTP repeats in its headers."""
        method = str(request["method"])
        if method == "initialize":
            return {}
        headers = {"mcp-protocol-version": self._version}
        if self.is_modern:
            headers["mcp-method"] = method
            name = as_object(request.get("params")).get(NAME_BEARING_METHODS.get(method, ""))
            if isinstance(name, str):
                headers["mcp-name"] = encode_header_value(name)
        return headers


@asynccontextmanager
async def open_session(place: ServerPlace, era: Era, bounds: Bounds) -> AsyncGenerator[RawSession]:
    """Connect to the server at ``place``. ``RawSession.open`` sends the first request."""
    meter = Meter(
        Limits(max_message_bytes=64 * MIB, max_server_bytes=1024 * MIB, max_call_seconds=bounds.call_seconds)
    )
    if isinstance(place, UrlServer):
        async with bounded_client(place.headers, meter) as client:
            transport = _Http(client, place.url, meter)
            try:
                yield RawSession(transport, era, bounds)
            finally:
                await transport.end()
        return
    async with running(place.command, place.env, place.cwd, meter) as child:
        send, receive = anyio.create_memory_object_stream[bytes](_BUFFERED_LINES)
        async with anyio.create_task_group() as reading:
            reading.start_soon(_read_lines, child, send, meter)
            try:
                yield RawSession(_Stdio(child, receive, meter), era, bounds)
            finally:
                receive.close()
                reading.cancel_scope.cancel()


def speaks(era: Era, opening: Exchange) -> bool:
    """Whether the response to the first request shows that the server speaks the era."""
    result = opening.result or {}
    if era == "modern":
        return VERSIONS[era] in as_list(result.get("supportedVersions"))
    return isinstance(result.get("protocolVersion"), str)


class _Reply(NamedTuple):
    """A parsed message, or the reason why there is none."""

    message: Any = None
    problem: str = ""
    is_lost: bool = False  # the connection is gone for good


def _is_response(message: Any) -> bool:
    """Whether ``message`` can be a response: it is neither a request nor a notification."""
    return not (isinstance(message, dict) and "method" in message)


def _response_to(message: Any) -> Message | None:
    """The response to a request of the server: pings succeed, everything else is refused."""
    request = cast("Message", message)
    if request.get("id") is None:
        return None
    if request["method"] == "ping":
        return {"jsonrpc": "2.0", "id": request["id"], "result": {}}
    refusal = {"code": _METHOD_UNKNOWN, "message": "a conformance run offers no methods"}
    return {"jsonrpc": "2.0", "id": request["id"], "error": refusal}


class _Http:
    """A server over Streamable HTTP."""

    noise = ""

    def __init__(self, client: httpx2.AsyncClient, url: str, meter: Meter) -> None:
        self._client = client
        self._url = url
        self._meter = meter
        self._session: dict[str, str] = {}

    async def ask(self, message: Message, headers: Mapping[str, str]) -> _Reply:
        """POST the request and return the message that answers it. The caller sets the timeout."""
        headers = {"accept": f"{_JSON}, {_EVENTS}", "content-type": _JSON, **self._session, **headers}
        try:
            async with self._client.stream(
                "POST", self._url, content=json.dumps(message), headers=headers
            ) as response:
                if _SESSION in response.headers:
                    self._session = {_SESSION: response.headers[_SESSION]}
                return await self._reply(response, message)
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError, ValueError) as error:
            failure = as_ours(error, self._meter, str(message.get("method")))
            return _Reply(problem=failure.message, is_lost=failure.reference == "connection-lost")

    async def notify(self, message: Message, headers: Mapping[str, str]) -> None:
        """POST the notification and ignore the response."""
        await self.ask(message, headers)

    async def end(self) -> None:
        """End the session on the server."""
        if self._session:
            try:
                await self._client.delete(self._url, headers=self._session)
            except (httpx2.HTTPError, httpx2.StreamError, OSError):
                return

    async def _reply(self, response: httpx2.Response, message: Message) -> _Reply:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == _EVENTS:
            return await self._reply_in_events(response, message)
        body = await response.aread()
        if "id" not in message:
            return _Reply()
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            return _Reply(problem=f"HTTP {response.status_code} with a body that is not JSON")
        if kind != _JSON:
            return _Reply(problem=f"HTTP {response.status_code} with JSON of the content type {kind!r:.80}")
        return _Reply(found)

    async def _reply_in_events(self, response: httpx2.Response, message: Message) -> _Reply:
        """Find the response among the events, and answer requests of the server on the way."""
        count = 0
        async for event in httpx2.EventSource(response, max_event_size=self._meter.limits.max_message_bytes):
            count += 1
            if count > _MAX_EVENTS:
                return _Reply(problem=f"no response among {_MAX_EVENTS:,} events")
            if not event.data:
                continue
            try:
                found: Any = json.loads(event.data)
            except (ValueError, RecursionError):
                return _Reply(problem="an event that is not JSON")
            if _is_response(found):
                return _Reply(found)
            back = _response_to(found)
            if back is not None:
                await self.notify(back, {})
        return _Reply(problem="" if "id" not in message else "the event stream ended without a response")


async def _read_lines(child: Child, send: MemoryObjectSendStream[bytes], meter: Meter) -> None:
    try:
        async with send, aclosing(each_line(child.stdout, meter)) as lines:
            async for line in lines:
                await send.send(line)
    except (SkillwireError, *_GONE):  # a bound, which the meter records, or the reader has closed
        return


class _Stdio:
    """A server as a process. Requests are sent one after another."""

    def __init__(self, child: Child, lines: MemoryObjectReceiveStream[bytes], meter: Meter) -> None:
        self._child = child
        self._lines = lines
        self._meter = meter
        self._abandoned: set[Any] = set()  # ids of requests without a response so far
        self.noise = ""  # the first line on stdout that is not a message

    async def ask(self, message: Message, headers: Mapping[str, str]) -> _Reply:  # noqa: ARG002 - only HTTP has headers
        """Write the request, and return the next response that does not belong to an older request."""
        self._abandoned.add(message.get("id"))
        try:
            await self._send(message)
            while True:
                line = await self._lines.receive()
                try:
                    found: Any = json.loads(line) if line.strip() else None
                except (ValueError, RecursionError):
                    self.noise = self.noise or line[:200].decode(errors="replace")
                    if b'"jsonrpc"' in line:
                        return _Reply(problem="a message that is not JSON")
                    continue
                if found is None:
                    continue
                if not _is_response(found):
                    back = _response_to(found)
                    if back is not None:
                        await self._send(back)
                elif not self._is_late(found, message):
                    self._abandoned.discard(message.get("id"))
                    return _Reply(found)
        except (*_GONE, anyio.EndOfStream):
            return _Reply(problem=self._why_gone(), is_lost=True)

    async def notify(self, message: Message, headers: Mapping[str, str]) -> None:  # noqa: ARG002
        """Write the notification to the process."""
        try:
            await self._send(message)
        except _GONE:
            return

    async def _send(self, message: Message) -> None:
        await self._child.stdin.send(json.dumps(message).encode() + b"\n")

    def _is_late(self, found: Any, message: Message) -> bool:
        found_id: object = as_object(found).get("id")
        return found_id != message.get("id") and isinstance(found_id, int) and found_id in self._abandoned

    def _why_gone(self) -> str:
        failure = self._meter.take_failure()
        if failure is not None:
            return failure.message
        output = " ".join(self._meter.last_output.split())[-300:]
        return "the process ended" + (f"; last output: {output}" if output else "")
