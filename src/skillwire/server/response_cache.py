"""A cache of response bytes in front of the protocol, which stays the SDK's.

The first request of a kind goes through the whole application. Its response is stored with a cheap check that
tells whether the same request would get the same response again (``Catalog.unchanged``). A later request is of the
same kind if every header and every byte of its body is the same, except for its id. So everything that a response
may depend on (the caller, the host name, the era, the client's capabilities) is compared, whether it is known here
or not. Unusual requests pass through: sessions of the handshake era, other paths, other methods, long bodies,
errors, streams.

A response is compressed once for all ids (RFC 1951, 1952): the beginning, which has the id, goes into a stored
block, which ends on a whole byte. The compressed rest follows it unchanged. Only the checksum is computed for each
response.

``tests/interaction/test_replay.py`` compares every cached response with the SDK's own.
"""

from __future__ import annotations

import json
import re
import time
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from skillwire.errors import SkillwireError
from skillwire.limits import KIB, MIB
from skillwire.server.callers import CallerViews

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillwire.catalog.contract import Catalog
    from skillwire.server.access import Access

    Headers = list[tuple[bytes, bytes]]

DEFAULT_BYTES = 128 * MIB  # room for the whole listing of 100,000 skills
COMPRESS_FROM = 4096
MAX_BODY = 16 * KIB
_ABOUT_EVERYTHING = frozenset({"skills/list", "resources/list", "resources/directory/read"})
_ABOUT_ONE = frozenset({"skills/get", "resources/read"})
_OVERHEAD = KIB  # memory of an entry beside its bytes
_LARGEST_SHARE = 4
_INPUT_REQUIRED = b'"input_required"'
_BEGINNING = b'{"jsonrpc":"2.0","id":'
# Digits or plain text: such an id has only one spelling, so it is sent back exactly as it was received.
_ID = re.compile(rb'"id"\s*:\s*(0|[1-9][0-9]{0,14}|"[A-Za-z0-9_.:-]{1,64}")(?=\s*[,}])')
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # gzip, deflate, no name, no time, any system
_GZIP_LEVEL = 6


def deflated(text: bytes) -> bytes:
    """``text`` compressed, so that it can follow different beginnings (``gzip_file``)."""
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(text) + compressor.flush()


def gzip_file(beginning: bytes, text: bytes, stream: bytes) -> bytes:
    """A gzip file of ``beginning`` (at most 65,535 bytes) and ``text``. ``stream`` is the compressed text."""
    size = len(beginning)
    stored = b"\x00" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + beginning
    checksum = zlib.crc32(text, zlib.crc32(beginning)).to_bytes(4, "little")
    length = ((size + len(text)) & 0xFFFFFFFF).to_bytes(4, "little")
    return b"".join((_GZIP_HEADER, stored, stream, checksum, length))


class CachedResponse(NamedTuple):
    """Headers and body of a response with status 200."""

    headers: Headers
    body: bytes


class _Request(NamedTuple):
    key: bytes
    id: bytes
    takes_gzip: bool


@dataclass(slots=True)
class _Entry:
    """A response from its id on, and the check that it is still current."""

    headers: Headers
    after_id: bytes
    is_unchanged: Callable[[], bool]
    count: Callable[[float], None]
    stream: bytes = b""  # the compressed form, made for the first client that accepts gzip

    @property
    def weight(self) -> int:
        """Bytes in memory, with the compressed form."""
        return len(self.after_id) + len(self.stream) + _OVERHEAD

    def response(self, request: _Request) -> CachedResponse:
        """The response with the id of ``request``."""
        if request.takes_gzip and len(self.after_id) >= COMPRESS_FROM:
            self.stream = self.stream or deflated(self.after_id)
            body = gzip_file(_BEGINNING + request.id, self.after_id, self.stream)
            headers = [*self.headers, (b"content-encoding", b"gzip")]
        else:
            body, headers = _BEGINNING + request.id + self.after_id, self.headers
        return CachedResponse([*headers, (b"content-length", b"%d" % len(body))], body)


class HasCatalog(Protocol):
    """Skills whose catalog may be replaced by another one."""

    catalog: Catalog


class ResponseCache:
    """The cache, as a web application for ``POST`` requests to an endpoint of ``app``."""

    def __init__(
        self,
        app: ASGIApp,
        skills: HasCatalog,
        counter: Callable[[str, str], Callable[[float], None]],
        room: int,
        access: Access | None,
    ) -> None:
        """``counter`` returns a function that counts a request with a method and an outcome, given its duration.

        ``room`` is in bytes.
        """
        self._access = access
        self._views = CallerViews(lambda _: ())
        self._app = app
        self._skills = skills
        self._counter = counter
        self._room = room
        self._used = 0
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()

    def holder(self, headers: Headers) -> str | None:
        """The subject that sent these headers; empty without access control.

        ``None`` for an unknown sender: the cache does nothing then, and the application refuses the request.
        """
        return "" if self._access is None else self._access.holder(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the cached response, or pass the request to the application."""
        subject = self.holder(scope["headers"])
        if subject is None:
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        first = await receive()
        body = None if first.get("more_body") else first.get("body", b"")
        request = None if body is None else _cacheable(scope["headers"], scope["query_string"], body)
        response = None if request is None else self._find(request, begun)
        if response is not None:
            await _send(response, send)
            return
        receive = _replaying(first, receive)
        method, is_unchanged = ("", None) if request is None else await self._check_for(first, subject)
        if request is None or is_unchanged is None:
            await self._app(scope, receive, send)
        else:
            await self._respond_and_store(request, method, is_unchanged, scope, receive, send)

    def lookup(self, headers: Headers, body: bytes) -> CachedResponse | None:
        """The cached response to a ``POST`` to the path, whose sender has a ``holder``."""
        begun = time.perf_counter()
        request = _cacheable(headers, b"", body)
        return None if request is None else self._find(request, begun)

    def _find(self, request: _Request, begun: float) -> CachedResponse | None:
        entry = self._entries.get(request.key)
        if entry is None or not entry.is_unchanged():
            return None
        self._entries.move_to_end(request.key)
        before = entry.weight
        response = entry.response(request)
        if entry.weight != before:  # it was compressed for the first time
            self._used += entry.weight - before
            self._make_room()
        entry.count(time.perf_counter() - begun)
        return response

    async def _respond_and_store(
        self,
        request: _Request,
        method: str,
        is_unchanged: Callable[[], bool],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Let the application respond, and store the response if it is a result."""
        self._remove(request.key)
        plain = [header for header in scope["headers"] if header[0] != b"accept-encoding"]
        recorder = _Recorder(send)
        await self._app({**scope, "headers": plain}, receive, recorder)
        if recorder.headers is None:
            return
        body = bytes(recorder.body)
        is_result = body.startswith(b'%b%b,"result":' % (_BEGINNING, request.id))
        if not is_result or not recorder.is_whole or _INPUT_REQUIRED in body:
            await recorder.release()
            return
        after_id = body[len(_BEGINNING) + len(request.id) :]
        headers = [header for header in recorder.headers if header[0] != b"content-length"]
        entry = _Entry(headers, after_id, is_unchanged, self._counter(method, "ok"))
        await _send(entry.response(request), send)
        if entry.is_unchanged():
            self._store(request.key, entry)

    async def _check_for(self, received: Message, subject: str) -> tuple[str, Callable[[], bool] | None]:
        """The method, and the check for its response. The check is made first, so that no change is missed.

        It uses the caller's view: a check of a hidden file would take longer than one of a missing file.
        """
        try:
            message: Any = json.loads(received.get("body", b""))
            params: Any = message.get("params") or {}
            method, uri = str(message["method"]), params.get("uri")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return "", None
        is_about_one = method in _ABOUT_ONE and isinstance(uri, str)
        if not is_about_one and method not in _ABOUT_EVERYTHING:
            return "", None
        catalog = view = self._skills.catalog
        if self._access is not None:
            view = self._views.view(catalog, self._access.prefixes(subject))
        try:
            is_same = await view.unchanged(uri if is_about_one else None)
        except SkillwireError:  # the application reports it
            return "", None
        return method, None if is_same is None else lambda: self._skills.catalog is catalog and is_same()

    def _store(self, key: bytes, entry: _Entry) -> None:
        if entry.weight > self._room // _LARGEST_SHARE:
            return
        self._remove(key)
        self._entries[key] = entry
        self._used += entry.weight
        for oldest in list(islice(self._entries, 2)):  # remove outdated entries early, two at a time
            if not self._entries[oldest].is_unchanged():
                self._remove(oldest)
        self._make_room()

    def _make_room(self) -> None:
        while self._used > self._room:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._used -= entry.weight


def _cacheable(headers: Headers, query: bytes, body: bytes) -> _Request | None:
    """The cache key of a request. ``None`` if the request is unusual, or its id is not certain.

    A body with no backslash and exactly one ``"id"`` has its id there or has none. The response shows whether it
    was the request's own id.
    """
    if len(body) > MAX_BODY or b"\\" in body or body.count(b'"id"') != 1:
        return None
    found = _ID.search(body)
    if found is None:
        return None
    parts: list[bytes] = [query]
    takes_gzip = False
    for name, value in headers:
        if name == b"content-length":  # it follows from the body
            continue
        if name == b"accept-encoding":  # the cache compresses by itself
            takes_gzip = b"gzip" in value
        elif name == b"mcp-session-id":
            return None
        else:
            parts += (name, value)
    start, end = found.span(1)
    parts += (b"", body[:start], body[end:])  # no header contains a line break
    return _Request(sha256(b"\n".join(parts)).digest(), found[1], takes_gzip)


async def _send(response: CachedResponse, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": response.headers})
    await send({"type": "http.response.body", "body": response.body})


class _Recorder:
    """Holds a JSON response back, and sets ``headers`` then. Every other response is sent on."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.headers: Headers | None = None
        self.body = bytearray()
        self.is_whole = False

    async def __call__(self, message: Message) -> None:
        is_start = message["type"] == "http.response.start" and message["status"] == 200
        if is_start and (b"content-type", b"application/json") in message["headers"]:
            self.headers = [(bytes(name), bytes(value)) for name, value in message["headers"]]
        elif self.headers is None:
            await self._send(message)
        else:
            self.body += message.get("body", b"")
            self.is_whole = not message.get("more_body")

    async def release(self) -> None:
        """Send the response unchanged."""
        await self._send({"type": "http.response.start", "status": 200, "headers": self.headers})
        await self._send({"type": "http.response.body", "body": bytes(self.body)})


def _replaying(first: Message, receive: Receive) -> Receive:
    """``receive``, which returns the message ``first`` again before the others."""
    waiting = [first]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received
