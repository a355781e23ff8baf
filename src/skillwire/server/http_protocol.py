"""HTTP connections of our servers: limits on what a client can take (rule Z6), and cached responses.

uvicorn sets no limits before an application runs, so its protocol class is extended here. ``serve``, ``gateway``
and ``ui`` all use it. The limits cost a request a few additions.

- A head has at most 32 KiB and 100 headers: 431 above.
- A head has 10 seconds to arrive, and its body has 10 more: 408, then the connection is closed. A check every
  quarter of that time finds incomplete requests, so a request needs no timer.
- At most 8 requests of one connection wait for the one before them. One more closes the connection.
- A body of twice the allowed size is not read to its end. The application has refused it by then.
- A client that reads nothing of its response for 30 seconds is disconnected. Its next request waits.
- At most 256 MiB wait for clients to read them. Above that, the clients that have read nothing for longest are
  disconnected.
- One address has at most half of the connections. If all are taken, the address that has most gives one up for a
  new one: a connection that waits for its client, or else the oldest, even if that is a stream.
- One caller, by its subject or by its address, has at most a quarter of the sessions of the handshake era
  (``SessionShares``).

A cached response (``response_cache.py``) is written where the request is parsed: no task, no application, one
write. The application would cost more than the rest of such a request. Every unusual request goes to uvicorn from
its first byte.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter, deque
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import PlainTextResponse
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from skillwire.limits import DEFAULT_LIMITS, KIB, MIB, Limits
from skillwire.server.response_cache import MAX_BODY
from skillwire.server.sdk_compat import check_uvicorn_protocol

if TYPE_CHECKING:
    from collections.abc import Container

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillwire.server.response_cache import CachedResponse, ResponseCache

_CHECKS_PER_DEADLINE = 4
_MAX_PIPELINED = 8
_LINGER_SECONDS = 1.0  # until a refused client has read its response: closing at once could reset the connection
_CHUNK = 256 * KIB
_SESSION_ID, _VERSION = b"mcp-session-id", b"mcp-protocol-version"
_OK = b"HTTP/1.1 200 OK\r\n"

check_uvicorn_protocol(HttpToolsProtocol)


def network_of(client: tuple[str, int] | None) -> str:
    """The part of an address that belongs to one party. For IPv6 that is the first half."""
    try:
        address = ipaddress.ip_address(client[0] if client else "")
    except ValueError:  # a Unix socket, or no network at all
        return ""
    if address.version == 4 or address.ipv4_mapped is not None:
        return str(address)
    return str(int(address) >> 64)


class ChunkedTransport:
    """A transport that holds a long response without a copy and writes it in chunks.

    Python 3.11 copies the bytes that a client has not read yet. If such a connection is aborted, the copies leave
    fragmented memory that the next response does not fit into. Here a response is released as a whole.

    The protocol sets ``is_full`` when writing pauses, and calls ``resume`` when it resumes.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._unwritten: deque[memoryview] = deque()
        self._closes = False
        self.is_full = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send ``data`` after everything that waits already."""
        if len(data) <= _CHUNK and not self._unwritten:
            self._transport.write(data)
        else:
            self._unwritten.append(memoryview(data))
            if not self.is_full:
                self._send()

    def resume(self) -> bool:
        """Send more. Returns whether everything has been sent."""
        self.is_full = False
        self._send()
        return not self.is_full

    def is_closing(self) -> bool:
        """Whether the transport will be closed, even if there are bytes to send first."""
        return self._closes or self._transport.is_closing()

    def close(self) -> None:
        """Close as soon as everything is sent."""
        self._closes = True
        if self._unwritten:
            self._transport.pause_reading()  # the end of the client's stream would close the transport
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close now."""
        self._unwritten.clear()
        self._transport.abort()

    def can_write_eof(self) -> bool:
        """Whether the end of the stream can be sent now."""
        return not self._unwritten and self._transport.can_write_eof()

    def get_write_buffer_size(self) -> int:
        """How many bytes wait."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._unwritten))

    def held(self) -> int:
        """How much memory the waiting bytes take: a response is held as a whole until its last chunk is sent."""
        held = sum(len(cast("bytes", view.obj)) for view in self._unwritten)
        return self._transport.get_write_buffer_size() + held

    def _send(self) -> None:
        while self._unwritten and not self.is_full:
            if self._transport.is_closing():  # after an error
                self._unwritten.clear()
                return
            first = self._unwritten.popleft()
            if len(first) > _CHUNK:
                self._unwritten.appendleft(first[_CHUNK:])
            self._transport.write(first[:_CHUNK])
        if self._closes and not self._unwritten:  # later, because asyncio may be in the middle of a write
            asyncio.get_running_loop().call_soon(self._transport.close)


class Connections:
    """The open connections of one server, by address."""

    def __init__(self, most: int, *, max_body_bytes: int = MIB, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.body_room = 2 * max_body_bytes + limits.max_head_bytes  # chunked encoding adds its framing
        self._most = most - 1  # uvicorn responds to the last one with 503
        self._share = max(1, most // 2)
        self._addresses: dict[BoundedProtocol, str] = {}
        self._unread: dict[BoundedProtocol, None] = {}  # clients that have more to read than the system buffers

    def add(self, new: BoundedProtocol) -> bool:
        """Count ``new``, in place of another connection if necessary. Returns False if there is no room."""
        address = network_of(new.client)
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
        """Stop counting ``old``."""
        self._addresses.pop(old, None)
        self._unread.pop(old, None)

    def add_unread(self, new: BoundedProtocol) -> None:
        """Note that a client has much to read. If there is too much in all, abort the slowest clients."""
        self._unread[new] = None
        now = new.loop.time()
        sizes = {one: one.unsent(now) for one in self._unread}
        total = sum(sizes.values())
        for one in sorted(sizes, key=lambda each: each.unsent_since):
            if (
                total <= self.limits.max_unread_bytes or len(sizes) == 1
            ):  # a single response may be larger than the limit
                return
            total -= sizes.pop(one)
            one.transport.abort()

    def remove_unread(self, old: BoundedProtocol) -> None:
        """Note that the client has read its response."""
        self._unread.pop(old, None)


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Responses to requests for ``path`` may come from ``cache``.

    uvicorn feeds its parser in ``data_received``. The parser calls ``on_headers_complete``, ``on_body`` and
    ``on_message_complete`` for each request. Here they move the connection from state to state:

    ========================== ============ ======================= ==========
    what arrives now           ``_in_head`` ``_room``               ``_held``
    ========================== ============ ======================= ==========
    nothing, between requests  True         the limit of a head     None
    a head                     True         less than that          None
    a body for the cache       False        the limit of a body, or bytes
                                            less
    a body for uvicorn         False        the same                None
    ========================== ============ ======================= ==========

    After a refusal (``_is_refused``) nothing more is parsed.

    A client may send requests before it has the response to the first. uvicorn makes one *cycle* for each request
    that it gets. ``_responding`` is the cycle whose response is in progress. ``pipeline`` has the cycles that wait
    for it, the newest first. ``cycle`` is that of the newest request. So after the requests A, B and C, before A's
    response is complete: ``_responding`` is A, ``pipeline`` is C, B, and ``cycle`` is C.
    """

    def __init__(
        self, connections: Connections, cache: ResponseCache | None = None, path: str = "", **options: Any
    ) -> None:
        super().__init__(**options)
        self._cache = cache
        self._path = path.encode()
        # The body so far of a request that the cache may answer. Until then uvicorn does not know of the request.
        self._held: bytes | None = None
        self._others = connections
        self._limits = connections.limits
        self._max_headers = connections.limits.max_headers
        self._head_room = connections.limits.max_head_bytes
        self._body_room = connections.body_room
        self._in_head = True
        self._room = self._head_room  # bytes that may still arrive of this head or body
        self._responding: Any = None  # None also while a complete response waits for the client to read it
        # When a check first found this head or body incomplete; the first head counts from the connection on.
        self._incomplete_since: float | None = None
        self._is_refused = False
        self._check: asyncio.TimerHandle | None = None
        self._unsent: int = 0  # bytes that the client had not read at the last count
        self.unsent_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for the first request."""
        self._chunked = ChunkedTransport(transport)
        super().connection_made(cast("asyncio.Transport", self._chunked))
        self._incomplete_since = self.loop.time()
        if not self._others.add(self):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)
            self.transport.close()  # at once, because uvicorn counts this connection too
            return
        self._check_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._others.remove(self)
        if self._check is not None:
            self._check.cancel()
        self._stop_responding()
        super().connection_lost(exc)

    # What the client sends

    def data_received(self, data: bytes) -> None:
        """Parse the received bytes within the limits."""
        if len(data) <= self._room:
            self._parse(data)
            return
        # Parse what this head or body may still have. If it ends in that part, the parser's callbacks set the room
        # for what follows. If it does not, there is no room left, and so no next part.
        while data and not self._is_refused and not self.transport.is_closing():
            part, data = data[: self._room], data[self._room :]
            if part:
                self._parse(part)
            elif self._in_head:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            else:
                self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

    def _parse(self, part: bytes) -> None:
        if self._is_refused:
            return
        self._room -= len(part)  # first, because the callbacks set it for the next head or body
        super().data_received(part)
        if not self._in_head and len(self.headers) > self._max_headers:  # trailers follow a body
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_headers_complete(self) -> None:
        """Handle a complete head. An exception in a callback stops the parser."""
        if len(self.headers) > self._max_headers:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            raise ValueError("too many headers")
        # The client has not read its last response, so this one would only wait in memory.
        is_behind_unread = self.flow.write_paused and self._responding is None
        if is_behind_unread or len(self.pipeline) >= _MAX_PIPELINED:
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS)
            raise ValueError("too many requests at once")
        self._in_head, self._room, self._incomplete_since = False, self._body_room, None
        if self._may_be_cached():
            self._held = b""
        else:
            self._begin()

    def on_body(self, body: bytes) -> None:
        """Handle a part of the body."""
        if self._held is None:
            super().on_body(body)
        else:
            self._held += body

    def on_message_complete(self) -> None:
        """Handle a complete request: write the cached response, or let uvicorn continue."""
        self._in_head, self._room, self._incomplete_since = True, self._head_room, None
        if self._held is not None and self._cache is not None:
            response = self._cache.lookup(self.headers, self._held)
            if response is not None:
                self._held = None
                self._write(response)
                return
            self._give_to_uvicorn()
        super().on_message_complete()

    def shutdown(self) -> None:
        """Let uvicorn answer a request that has arrived in part."""
        if self._held is not None:
            self._give_to_uvicorn()
        super().shutdown()

    def _begin(self) -> None:
        """Let uvicorn make a cycle for this request: it is started, or put into the pipeline."""
        super().on_headers_complete()
        if not self.pipeline:
            self._responding = self.cycle

    def _give_to_uvicorn(self) -> None:
        """Let uvicorn handle a held request after all, as if it had just arrived."""
        body, self._held = self._held or b"", None
        self._begin()
        super().on_body(body)

    def _may_be_cached(self) -> bool:
        """Whether this is a short, plain ``POST`` of a known caller, and no other response is in progress."""
        if self._cache is None or self.url != self._path or not self.is_waiting() or self.flow.write_paused:
            return False
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            return False
        parser: Any = self.parser
        if parser.get_method() != b"POST" or parser.get_http_version() != "1.1" or self.expect_100_continue:
            return False
        if not parser.should_keep_alive() or parser.should_upgrade():
            return False
        lengths = [value for name, value in self.headers if name == b"content-length"]
        if len(lengths) != 1 or not lengths[0].isdigit() or int(lengths[0]) > MAX_BODY:
            return False
        return self._cache.holder(self.headers) is not None

    # What is sent

    def _write(self, response: CachedResponse) -> None:
        headers = [*self.server_state.default_headers, *response.headers]
        head = b"".join([b"%b: %b\r\n" % header for header in headers])
        if len(response.body) <= _CHUNK:
            self.transport.write(b"%b%b\r\n%b" % (_OK, head, response.body))
        else:  # two writes, to save a copy of the body
            self.transport.write(b"%b%b\r\n" % (_OK, head))
            self.transport.write(response.body)
        self.on_response_complete()

    def on_response_complete(self) -> None:
        """Continue with the next request as soon as the client has read this response."""
        self._responding = None
        if self.flow.write_paused and not self.transport.is_closing():
            self.flow.pause_reading()  # the next response would only wait in memory
            return  # ``resume_writing`` calls this method again
        if self.pipeline:
            self._responding = self.pipeline[-1][0]  # the oldest, which uvicorn starts now
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Stop writing: the client has much to read."""
        self._chunked.is_full = True
        if not self.flow.write_paused:
            super().pause_writing()
            self._others.add_unread(self)

    def resume_writing(self) -> None:
        """Continue writing: the client has read."""
        if not self._chunked.resume():
            return
        super().resume_writing()
        self._others.remove_unread(self)
        if self._responding is None:  # the response was complete before the client had read it
            self.on_response_complete()

    def unsent(self, now: float) -> int:
        """How much memory waits for the client. ``unsent_since`` is the time when it last read something."""
        unsent: int = self.transport.get_write_buffer_size()
        if not unsent or unsent != self._unsent:
            self._unsent, self.unsent_since = unsent, now
        return self._chunked.held()

    # Clients that are too slow, or send too much

    def send_400_response(self, msg: str) -> None:
        """Respond to bytes that are not HTTP."""
        if not self._is_refused:
            super().send_400_response(msg)

    def is_waiting(self) -> bool:
        """Whether no response is in progress."""
        cycle: Any = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    def waiting_since(self) -> float:
        """When the server started to wait for a request; connections that had one sort last."""
        return float("inf") if self._incomplete_since is None else self._incomplete_since

    def _may_respond(self) -> bool:
        """Whether a response can be written now: none is in progress, and this request had none."""
        if self._held is not None:  # a request is held only while no other response is in progress
            return True
        if self._in_head:  # this request has no cycle yet: ``cycle`` belongs to the one before it
            return self.is_waiting()
        cycle: Any = self.cycle  # of this request; it is in the pipeline if another response is in progress
        return not self.pipeline and (cycle is None or not cycle.response_started)

    def _check_later(self) -> None:
        seconds = self._limits.max_request_seconds / _CHECKS_PER_DEADLINE
        self._check = self.loop.call_later(seconds, self._check_now)

    def _check_now(self) -> None:
        """Close the connection if its client is too slow, also while it waits to be closed."""
        now = self.loop.time()
        if not self.transport.is_closing() and self._is_late(now):
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        elif self.unsent(now) and now - self.unsent_since >= self._limits.max_unread_seconds:
            self.transport.abort()
        else:
            self._check_later()

    def _is_late(self, now: float) -> bool:
        """Whether a head or body is incomplete for too long, counted from the first check that found it so."""
        is_partial = not self._in_head or self._room < self._head_room
        if self.flow.read_paused:  # a client is not late while the server does not read
            self._incomplete_since = None
        elif self._incomplete_since is None:
            self._incomplete_since = now if is_partial else None
        else:
            return now - self._incomplete_since >= self._limits.max_request_seconds
        return False

    def _refuse(self, status: HTTPStatus) -> None:
        """Respond with ``status`` if that is still possible, stop reading, and close."""
        if self._is_refused:
            return
        self._is_refused = True
        if self._may_respond():
            text = f"{status.phrase}\n"
            self.transport.write(
                f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/plain\r\n"
                f"content-length: {len(text)}\r\nconnection: close\r\n\r\n{text}".encode()
            )
        self._stop_responding()
        self.flow.resume_reading()  # otherwise the end of the client's stream would not be noticed
        if self.transport.can_write_eof():
            with suppress(OSError):  # the client may have reset the connection just now
                self.transport.write_eof()
        self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    def _stop_responding(self) -> None:
        """Tell the application that the client is gone. uvicorn does that only for the newest request."""
        if self._responding is not None:
            self._responding.disconnected = True
            self._responding.message_event.set()


class SessionShares:
    """Limits the open sessions of each caller in the handshake era. Wraps the SDK's session manager."""

    def __init__(self, app: ASGIApp, open_ids: Container[str], most: int) -> None:
        self._app = app
        self._open = open_ids
        self._share = max(1, most // 4)
        self._opening: Counter[str] = Counter()  # requests in progress, by caller
        self._callers: dict[str, str] = {}  # by session id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless it would open too many sessions."""
        headers = dict(scope["headers"])
        version = headers.get(_VERSION)
        is_modern = version is not None and version.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS
        if scope["method"] != "POST" or _SESSION_ID in headers or is_modern:  # it opens no session
            await self._app(scope, receive, send)
            return
        user = scope.get("user")
        if isinstance(user, AuthenticatedUser):
            caller = f"subject:{user.access_token.subject or user.access_token.client_id}"
        else:
            caller = network_of(scope.get("client"))
        self._callers = {each: its for each, its in self._callers.items() if each in self._open}
        if self._opening[caller] + sum(its == caller for its in self._callers.values()) >= self._share:
            await PlainTextResponse("Too many open sessions\n", 503)(scope, receive, send)
            return

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                opened = [value.decode() for name, value in message["headers"] if name.lower() == _SESSION_ID]
                self._callers.update(dict.fromkeys(opened, caller))
            await send(message)

        self._opening[caller] += 1
        try:
            await self._app(scope, receive, watched)
        finally:
            self._opening -= Counter([caller])  # a count of zero is removed
