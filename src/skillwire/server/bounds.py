"""Bounds on what a client of our HTTP servers can take (rule Z6): bytes, headers, time and connections.

uvicorn bounds none of these before an application runs, so its protocol class is extended here. ``serve``,
``gateway`` and ``ui`` all use it. A request costs a few additions.

- A head has at most 32 KiB and 100 headers: 431 above.
- A head has 10 seconds to arrive, and its body has 10 more: 408, then the connection is closed. A check every
  quarter of that finds what is incomplete, so a request costs no timer.
- At most 8 requests of one connection wait for the one before them. One more closes it.
- A body of twice the allowed size is not read to its end. The application has refused it by then.
- A client that reads nothing of its response for 30 seconds is disconnected. Its next request waits.
- 256 MiB wait for clients to read them. Above that, those that read nothing for longest are disconnected.
- One address has at most half of the connections. Where all are taken, the address that has most makes room for
  another one: by a connection that waits for its client, or else by its oldest, even if that is a stream.
- One subject, or one address without a token, has at most a quarter of the sessions of the handshake era.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, defaultdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import PlainTextResponse
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from skillwire.limits import DEFAULT_LIMITS, MIB, Limits
from skillwire.server.outlet import Outlet

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Container

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CHECKS_PER_DEADLINE = 4
_SESSION_ID, _VERSION = b"mcp-session-id", b"mcp-protocol-version"
_MOST_WAITING = 8
_LINGER_SECONDS = 1.0  # until a refused client has read its response: closing at once could reset the connection


class Connections:
    """The open connections of one server, by address."""

    def __init__(self, most: int, *, max_body_bytes: int = MIB, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.body_room = 2 * max_body_bytes + limits.max_head_bytes  # chunks have a framing of their own
        self._most = most - 1  # uvicorn answers the last one with 503
        self._share = max(1, most // 2)
        self._addresses: dict[BoundedProtocol, str] = {}
        self._unread: dict[BoundedProtocol, None] = {}  # whose clients have more to read than the system buffers

    def add(self, new: BoundedProtocol) -> bool:
        """Count ``new``, in the place of another one if need be. False if there is no room for it."""
        address = _network(new.client)
        counts = Counter(self._addresses.values())
        crowded = None
        if counts[address] >= self._share:
            crowded = address
        elif len(self._addresses) >= self._most:
            counts[address] += address in counts  # so that two addresses do not take turns
            crowded = max(counts, key=lambda each: (counts[each], each == address))
        if crowded is not None:
            crowd = [one for one, its in self._addresses.items() if its == crowded]
            waiting = [one for one in crowd if one.is_waiting()]
            if not waiting and crowded == address:
                return False
            leaving = min(waiting, key=lambda one: one.waiting_since()) if waiting else crowd[0]
            self.remove(leaving)
            leaving.transport.abort()
        self._addresses[new] = address
        return True

    def remove(self, old: BoundedProtocol) -> None:
        """Count it no more."""
        self._addresses.pop(old, None)
        self._unread.pop(old, None)

    def add_unread(self, new: BoundedProtocol) -> None:
        """Its client has much to read. If all together have too much, those go that read nothing for longest."""
        self._unread[new] = None
        now = new.loop.time()
        sizes = {one: one.unsent(now) for one in self._unread}
        total = sum(sizes.values())
        for one in sorted(sizes, key=lambda each: each.unsent_since):
            if total <= self.limits.max_unread_bytes or len(sizes) == 1:  # one response may be larger
                return
            total -= sizes.pop(one)
            one.transport.abort()

    def remove_unread(self, old: BoundedProtocol) -> None:
        """Its client has read."""
        self._unread.pop(old, None)


class BoundedProtocol(HttpToolsProtocol):
    """One connection. A subclass overrides ``begin`` and ``finish`` instead of the parser's callbacks."""

    def __init__(self, connections: Connections, **words: Any) -> None:
        super().__init__(**words)
        self._others = connections
        self._limits = connections.limits
        self._max_headers = connections.limits.max_headers
        self._head_room = connections.limits.max_head_bytes
        self._body_room = connections.body_room
        self._in_head = True
        self._room = self._head_room  # for what is missing of this head, or of this body
        self._answering: Any = None  # the cycle of the request that is being answered; ``cycle`` is the last one
        self._since: float | None = None  # when a check found this head or body incomplete for the first time
        self._is_refused = False
        self._check: asyncio.TimerHandle | None = None
        self._unsent: int = 0  # bytes that the client had not read when they were last counted
        self.unsent_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        self._outlet = Outlet(transport)
        super().connection_made(cast("asyncio.Transport", self._outlet))
        self._since = self.loop.time()
        if not self._others.add(self):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)
            self.transport.close()  # at once, because uvicorn counts it, too
            return
        self._check_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._others.remove(self)
        if self._check is not None:
            self._check.cancel()
        self._stop_answering()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came, as far as there is room for it."""
        room = self._room - len(data)
        if room < 0:
            self._receive_in_pieces(data)
        elif not self._is_refused:
            self._room = room
            super().data_received(data)
            if not self._in_head and len(self.headers) > self._max_headers:  # trailers, which follow a body
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _receive_in_pieces(self, data: bytes) -> None:
        """Where a head or a body ends in a piece, there is room again for what follows."""
        while data and not self._is_refused and not self.transport.is_closing():
            piece, data = data[: self._room], data[self._room :]
            if piece:
                self.data_received(piece)
            elif self._in_head:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            else:
                self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

    def on_headers_complete(self) -> None:
        """The head is complete. An error in a callback stops the parser."""
        if len(self.headers) > self._max_headers:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            raise ValueError("too many headers")
        is_behind_unread = self.flow.write_paused and self._answering is None
        if is_behind_unread or len(self.pipeline) >= _MOST_WAITING:
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS)
            raise ValueError("too many requests at once")
        self._in_head = False
        self._room = self._body_room
        self._since = None
        self.begin()

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._in_head = True
        self._room = self._head_room
        self._since = None
        self.finish()

    def begin(self) -> None:
        """Begin to answer a request, of which the head is here."""
        super().on_headers_complete()
        if not self.pipeline:
            self._answering = self.cycle

    def finish(self) -> None:
        """The body is here, too."""
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, as soon as the client has read this response."""
        self._answering = None
        if self.flow.write_paused and not self.transport.is_closing():
            self.flow.pause_reading()  # a next response would only wait in memory
            return
        if self.pipeline:
            self._answering = self.pipeline[-1][0]
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client has much to read."""
        self._outlet.is_full = True
        if not self.flow.write_paused:
            super().pause_writing()
            self._others.add_unread(self)

    def resume_writing(self) -> None:
        """The client has read."""
        if not self._outlet.resume():
            return
        super().resume_writing()
        self._others.remove_unread(self)
        if self._answering is None:
            self.on_response_complete()

    def unsent(self, now: float) -> int:
        """How much memory waits for the client to read. ``unsent_since`` is when it read for the last time."""
        unsent: int = self.transport.get_write_buffer_size()
        if not unsent or unsent != self._unsent:
            self._unsent, self.unsent_since = unsent, now
        return self._outlet.held()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        if not self._is_refused:
            super().send_400_response(msg)

    def is_waiting(self) -> bool:
        """Whether no request is being answered."""
        under_way: Any = self.cycle  # none before the first
        return under_way is None or under_way.response_complete

    def waiting_since(self) -> float:
        """When the server began to wait for a request; connections that had one come last."""
        return float("inf") if self._since is None else self._since

    def _may_answer(self) -> bool:
        """Whether a response can be written now: none is under way, and this request had none."""
        if self._in_head:
            return self.is_waiting()
        under_way: Any = self.cycle
        return not self.pipeline and (under_way is None or not under_way.response_started)

    def _check_later(self) -> None:
        seconds = self._limits.max_request_seconds / _CHECKS_PER_DEADLINE
        self._check = self.loop.call_later(seconds, self._check_now)

    def _check_now(self) -> None:
        """End the connection if its client is too slow. One that is being closed waits for its client, too."""
        now = self.loop.time()
        if not self.transport.is_closing() and self._is_late(now):
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        elif self.unsent(now) and now - self.unsent_since >= self._limits.max_unread_seconds:
            self.transport.abort()
        else:
            self._check_later()

    def _is_late(self, now: float) -> bool:
        is_partial = not self._in_head or self._room < self._head_room
        if self.flow.read_paused:  # while we do not read, the client is not to blame
            self._since = None
        elif self._since is None:
            self._since = now if is_partial else None
        else:
            return now - self._since >= self._limits.max_request_seconds
        return False

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer with ``status`` if that is still possible, read no further, and close."""
        if self._is_refused:
            return
        self._is_refused = True
        if self._may_answer():
            words = f"{status.phrase}\n"
            self.transport.write(
                f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/plain\r\n"
                f"content-length: {len(words)}\r\nconnection: close\r\n\r\n{words}".encode()
            )
        self._stop_answering()
        self.flow.resume_reading()  # or the client's end would not be noticed
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _stop_answering(self) -> None:
        """End the application's work, and what it writes. uvicorn tells only the last of several requests."""
        if self._answering is not None:
            self._answering.disconnected = True
            self._answering.message_event.set()


class SessionShares:
    """Around the SDK's sessions of the handshake era: each caller has a share of them."""

    def __init__(self, app: ASGIApp, open_ids: Container[str], most: int) -> None:
        self._app = app
        self._open = open_ids
        self._most = most
        self._share = max(1, most // 4)
        self._opening: defaultdict[str, int] = defaultdict(int)
        self._opened: defaultdict[str, set[str]] = defaultdict(
            set
        )  # by caller; those that ended are dropped later

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless it would open a session too many."""
        if not _may_open_session(scope):
            await self._app(scope, receive, send)
            return
        caller = _caller(scope)
        if self._count(caller) >= self._share:
            await PlainTextResponse("Too many open sessions\n", 503)(scope, receive, send)
            return

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                opened = [value.decode() for name, value in message["headers"] if name.lower() == _SESSION_ID]
                self._opened[caller].update(opened)
            await send(message)

        self._opening[caller] += 1
        try:
            await self._app(scope, receive, watched)
        finally:
            self._opening[caller] -= 1
            if not self._opening[caller]:
                del self._opening[caller]

    def _count(self, caller: str) -> int:
        """How many sessions a caller has, or is about to have."""
        crowd = [caller] if len(self._opened) <= self._most else list(self._opened)
        for one in crowd:
            self._opened[one] = {each for each in self._opened[one] if each in self._open}
            if not self._opened[one]:
                del self._opened[one]
        return len(self._opened.get(caller, ())) + self._opening.get(caller, 0)


def _may_open_session(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    version = headers.get(_VERSION)
    is_modern = version is not None and version.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS
    return scope["method"] == "POST" and _SESSION_ID not in headers and not is_modern


def _caller(scope: Scope) -> str:
    user = scope.get("user")
    if isinstance(user, AuthenticatedUser):
        return f"subject:{user.access_token.subject or user.access_token.client_id}"
    return _network(scope.get("client"))


def _network(client: tuple[str, int] | None) -> str:
    """The part of an address that belongs to one party: of IPv6 the first half."""
    try:
        address = ipaddress.ip_address(client[0] if client else "")
    except ValueError:  # no network at all
        return ""
    if address.version == 4 or address.ipv4_mapped is not None:
        return str(address)
    return str(int(address) >> 64)
