"""A raw session with a server in one era of the protocol. A callback sees every exchange.

The session raises ``SessionEnded`` instead of hanging: when the time is over, when the number of requests reaches
its bound, when the server is gone, or when several requests in a row had no response.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio
from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from skillwire.client.meter import Meter
from skillwire.client.servers import UrlServer
from skillwire.client.shapes import as_list, as_object
from skillwire.conform.report import Exchange
from skillwire.conform.transport import RawReply, StdioTransport, open_http, open_stdio
from skillwire.limits import MIB, Limits
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from skillwire.client.servers import ServerPlace
    from skillwire.conform.report import Message
    from skillwire.conform.transport import Transport

Era: TypeAlias = Literal["modern", "legacy"]
ERAS: tuple[Era, ...] = ("modern", "legacy")
VERSIONS: dict[Era, str] = {"modern": LATEST_MODERN_VERSION, "legacy": LATEST_HANDSHAKE_VERSION}

_META = "io.modelcontextprotocol"
_SILENT_CALLS = 3
_CAPABILITIES: Message = {"extensions": {EXTENSION_ID: {}}}  # K3: some servers answer only clients that declare it


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

    def limits(self) -> Limits:
        """The limits for the meter that counts bytes."""
        return Limits(max_message_bytes=64 * MIB, max_server_bytes=1024 * MIB, max_call_seconds=self.call_seconds)


class SessionEnded(Exception):  # noqa: N818 - the end of a session, not an error of ours
    """The reason why no more requests are sent."""


class RawSession:
    """Sends requests to one server. ``on_exchange`` sees every exchange."""

    def __init__(self, transport: Transport, era: Era, bounds: Bounds) -> None:
        self.era: Era = era
        self.on_exchange: Callable[[Exchange], None] = lambda exchange: None  # noqa: ARG005
        self._version = VERSIONS[era]
        self._transport = transport
        self._bounds = bounds
        self._deadline = anyio.current_time() + bounds.seconds
        self._asked = 0
        self._silent = 0

    @property
    def is_modern(self) -> bool:
        """Whether this is the stateless era."""
        return self.era == "modern"

    @property
    def noise(self) -> str:
        """The first output of a process on stdout that is not a message."""
        return self._transport.noise if isinstance(self._transport, StdioTransport) else ""

    async def ask(self, method: str, **params: Any) -> Exchange:
        """Send a request and return the exchange; ``SessionEnded`` if no more requests can be sent."""
        self._asked += 1
        if self._asked > self._bounds.requests:
            raise SessionEnded(f"{self._bounds.requests:,} requests were sent, which is the limit")
        left = self._deadline - anyio.current_time()
        if left <= 0:
            raise SessionEnded(f"the time limit of {self._bounds.seconds:g} seconds was reached")
        request = self._request(method, params)
        reply = await self._reply(request, min(left, self._bounds.call_seconds))
        exchange = Exchange(request, reply.message, reply.problem)
        self.on_exchange(exchange)
        self._count_silence(reply)
        return exchange

    async def open(self) -> Exchange:
        """Send the first request, whose response has the capabilities of the server."""
        if self.is_modern:
            return await self.ask("server/discover")
        hello = {
            "protocolVersion": self._version,
            "clientInfo": _client_info(),
            "capabilities": _CAPABILITIES,
        }
        exchange = await self.ask("initialize", **hello)
        agreed = (exchange.result or {}).get("protocolVersion")
        if isinstance(agreed, str) and agreed.isascii() and agreed.isprintable():
            self._version = agreed
            await self._tell("notifications/initialized")
        return exchange

    async def _reply(self, request: Message, seconds: float) -> RawReply:
        with anyio.move_on_after(seconds):
            return await self._transport.ask(request, self._headers(request))
        return RawReply(problem=f"no response within {seconds:.0f} seconds")

    async def _tell(self, method: str) -> None:
        with anyio.move_on_after(self._bounds.call_seconds):
            await self._transport.tell({"jsonrpc": "2.0", "method": method}, self._headers({"method": method}))

    def _count_silence(self, reply: RawReply) -> None:
        self._silent = self._silent + 1 if reply.problem else 0
        if reply.is_lost:
            raise SessionEnded(reply.problem)
        if self._silent >= _SILENT_CALLS:
            raise SessionEnded(f"{self._silent} requests in a row had no readable response ({reply.problem})")

    def _request(self, method: str, params: dict[str, Any]) -> Message:
        if self.is_modern:
            params = {**params, "_meta": _envelope(self._version)}
        message: Message = {"jsonrpc": "2.0", "id": self._asked, "method": method}
        return {**message, "params": params} if params else message

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
    meter = Meter(bounds.limits())
    if isinstance(place, UrlServer):
        async with open_http(place, meter) as transport:
            yield RawSession(transport, era, bounds)
    else:
        async with open_stdio(place, meter) as transport:
            yield RawSession(transport, era, bounds)


def speaks(era: Era, opening: Exchange) -> bool:
    """Whether the response to the first request shows that the server speaks the era."""
    result = opening.result or {}
    if era == "modern":
        return VERSIONS[era] in as_list(result.get("supportedVersions"))
    return isinstance(result.get("protocolVersion"), str)


def _client_info() -> Message:
    return {"name": "skillwire-conform", "version": version("skillwire")}


def _envelope(protocol_version: str) -> Message:
    return {
        f"{_META}/protocolVersion": protocol_version,
        f"{_META}/clientInfo": _client_info(),
        f"{_META}/clientCapabilities": _CAPABILITIES,
    }
