"""A conversation with a server in one era of the protocol, request by request, each looked at as it comes back.

It ends itself (``GivenUp``) where going on would be a hang: when the time is over, when too much was asked, when
the server is gone, or when it left several requests in a row without an answer.
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
from skillwire.conform.evidence import Exchange
from skillwire.conform.http_transport import Reply, open_http_line
from skillwire.conform.stdio_transport import PipeLine, open_pipe_line
from skillwire.limits import MIB, Limits
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from skillwire.client.servers import ServerPlace
    from skillwire.conform.evidence import Message
    from skillwire.conform.http_transport import Line

Era: TypeAlias = Literal["modern", "legacy"]
ERAS: tuple[Era, ...] = ("modern", "legacy")
VERSIONS: dict[Era, str] = {"modern": LATEST_MODERN_VERSION, "legacy": LATEST_HANDSHAKE_VERSION}

_META = "io.modelcontextprotocol"
_SILENT_CALLS = 3


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a server is looked at, and for how long, in each era."""

    seconds: float = 120.0
    call_seconds: float = 15.0
    requests: int = 20_000
    pages: int = 1_000
    entries: int = 20_000
    files: int = 2_000
    directories: int = 500
    file_bytes: int = 128 * MIB

    def limits(self) -> Limits:
        """The same for the meter that counts bytes."""
        return Limits(max_message_bytes=64 * MIB, max_server_bytes=1024 * MIB, max_call_seconds=self.call_seconds)


class GivenUp(Exception):  # noqa: N818 - it is no error of ours, but the end of a conversation
    """Why nothing more is asked."""


class Session:
    """Requests to one server. ``look`` sees every exchange."""

    def __init__(self, line: Line, era: Era, bounds: Bounds) -> None:
        self.era: Era = era
        self.look: Callable[[Exchange], None] = _nobody
        self._version = VERSIONS[era]
        self._line = line
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
        """What a process wrote to its stdout that is no message."""
        return self._line.noise if isinstance(self._line, PipeLine) else ""

    async def ask(self, method: str, **params: Any) -> Exchange:
        """Send a request. A ``GivenUp`` ends the conversation; anything else is an ``Exchange``."""
        self._asked += 1
        if self._asked > self._bounds.requests:
            raise GivenUp(f"{self._bounds.requests:,} requests were made, and that is enough")
        left = self._deadline - anyio.current_time()
        if left <= 0:
            raise GivenUp(f"the time of {self._bounds.seconds:g} seconds was over")
        request = self._request(method, params)
        reply = await self._reply(request, min(left, self._bounds.call_seconds))
        exchange = Exchange(request, reply.message, reply.problem)
        self.look(exchange)
        self._count_silence(reply)
        return exchange

    async def open(self) -> Exchange:
        """The first request: what the server says of itself."""
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

    async def _reply(self, request: Message, seconds: float) -> Reply:
        with anyio.move_on_after(seconds):
            return await self._line.ask(request, self._headers(request))
        return Reply(problem=f"no answer within {seconds:.0f} seconds")

    async def _tell(self, method: str) -> None:
        with anyio.move_on_after(self._bounds.call_seconds):
            await self._line.tell({"jsonrpc": "2.0", "method": method}, self._headers({"method": method}))

    def _count_silence(self, reply: Reply) -> None:
        self._silent = self._silent + 1 if reply.problem else 0
        if reply.is_lost:
            raise GivenUp(reply.problem)
        if self._silent >= _SILENT_CALLS:
            raise GivenUp(f"{self._silent} requests in a row had no answer that can be read ({reply.problem})")

    def _request(self, method: str, params: dict[str, Any]) -> Message:
        if self.is_modern:
            params = {**params, "_meta": _envelope(self._version)}
        message: Message = {"jsonrpc": "2.0", "id": self._asked, "method": method}
        return {**message, "params": params} if params else message

    def _headers(self, request: Message) -> dict[str, str]:
        """What has to stand in HTTP's headers too."""
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
async def open_session(place: ServerPlace, era: Era, bounds: Bounds) -> AsyncGenerator[Session]:
    """A conversation with the server at ``place``, which has not begun: ``open`` does that."""
    meter = Meter(bounds.limits())
    if isinstance(place, UrlServer):
        async with open_http_line(place, meter) as line:
            yield Session(line, era, bounds)
    else:
        async with open_pipe_line(place, meter) as line:
            yield Session(line, era, bounds)


def speaks(era: Era, opening: Exchange) -> bool:
    """Whether the answer to the first request says that the server knows the era."""
    result = opening.result or {}
    if era == "modern":
        return VERSIONS[era] in as_list(result.get("supportedVersions"))
    return isinstance(result.get("protocolVersion"), str)


_CAPABILITIES: Message = {"extensions": {EXTENSION_ID: {}}}  # K3: some servers answer only who declares it


def _client_info() -> Message:
    return {"name": "skillwire-conform", "version": version("skillwire")}


def _envelope(protocol_version: str) -> Message:
    return {
        f"{_META}/protocolVersion": protocol_version,
        f"{_META}/clientInfo": _client_info(),
        f"{_META}/clientCapabilities": _CAPABILITIES,
    }


def _nobody(exchange: Exchange) -> None:
    """Nobody looks yet."""
