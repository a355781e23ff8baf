"""Answers sent again as they were: a cache of bytes in front of the protocol, which stays the SDK's.

The first request of its kind goes all the way. Its answer is kept with a cheap test that tells
whether the same would be answered again (``Catalog.unchanged``). A later request is of the same kind if it agrees
in every header and every byte of its body, but for its id: so whatever an answer may depend on (the caller, the
host it names, the era, the client's capabilities) is compared, known here or not. What is unusual in any way
passes through: sessions of the handshake era, other paths, other methods, long bodies, errors, streams.

``tests/interaction/test_replay.py`` holds every replayed answer against the SDK's own.
"""

from __future__ import annotations

import json
import re
import time
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from skillwire.errors import SkillwireError
from skillwire.limits import KIB, MIB
from skillwire.server.compression import Deflated

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillwire.catalog.contract import Catalog
    from skillwire.server.metrics import Metrics

    Headers = list[tuple[bytes, bytes]]

DEFAULT_BYTES = 128 * MIB  # the whole listing of 100,000 skills
COMPRESS_FROM = 4096
_ABOUT_EVERYTHING = frozenset({"skills/list", "resources/list", "resources/directory/read"})
_ABOUT_ONE = frozenset({"skills/get", "resources/read"})
MAX_BODY = 16 * KIB
_OVERHEAD = KIB  # what a kept answer weighs beside its bytes
_LARGEST_SHARE = 4
_ASKS_BACK = b'"input_required"'
_BEGINNING = b'{"jsonrpc":"2.0","id":'
# Digits or plain text: such an id is written in one way only, so that it comes back as it was sent.
_ID = re.compile(rb'"id"\s*:\s*(0|[1-9][0-9]{0,14}|"[A-Za-z0-9_.:-]{1,64}")(?=\s*[,}])')


class Reply(NamedTuple):
    """Headers and body of an answer; its status is 200."""

    headers: Headers
    body: bytes


@dataclass(slots=True)
class _Kept:
    """An answer as it is after its id, and the test that it would be given again."""

    headers: Headers
    after: bytes
    is_unchanged: Callable[[], bool]
    count: Callable[[float], None]
    deflated: Deflated | None = None  # made for the first client that takes it

    @property
    def weight(self) -> int:
        """In memory, compressed or not."""
        return len(self.after) + (len(self.deflated.stream) if self.deflated else 0) + _OVERHEAD

    def reply(self, request: _Request) -> Reply:
        """The answer with the id of ``request``."""
        if request.takes_gzip and len(self.after) >= COMPRESS_FROM:
            self.deflated = self.deflated or Deflated.of(self.after)
            body = self.deflated.behind(_BEGINNING + request.id, self.after)
            return Reply([*self.headers, (b"content-encoding", b"gzip"), _length(body)], body)
        body = _BEGINNING + request.id + self.after
        return Reply([*self.headers, _length(body)], body)


class _Request(NamedTuple):
    key: bytes
    id: bytes
    takes_gzip: bool


class Replay:
    """Around a web application with MCP at ``path``."""

    def __init__(
        self,
        app: ASGIApp,
        path: str,
        catalog: Callable[[], Catalog],
        metrics: Metrics,
        room: int,
        view_of: Callable[[Headers], Callable[[Catalog], Catalog] | None],
    ) -> None:
        """``view_of`` says what the sender of some headers may see of a catalog.

        It says ``None`` of strangers: nothing is done for them here, and the application refuses them.
        """
        self._view_of = view_of
        self._app = app
        self._path = path
        self._catalog = catalog
        self._metrics = metrics
        self._room = room
        self._used = 0
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()

    def lets_in(self, headers: Headers) -> bool:
        """Whether the sender of these headers may ask anything."""
        return self._view_of(headers) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as before, or let it be answered."""
        is_ours = scope["type"] == "http" and scope["path"] == self._path and scope["method"] == "POST"
        view = self._view_of(scope["headers"]) if is_ours else None
        if view is None:
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        first = await receive()
        body = None if first.get("more_body") else first.get("body", b"")
        request = None if body is None else _understood(scope["headers"], scope["query_string"], body)
        reply = None if request is None else self._again(request, begun)
        if reply is not None:
            await _send(reply, send)
            return
        receive = _once_more(first, receive)
        method, is_unchanged = ("", None) if request is None else await self._test_for(first, view)
        if request is None or is_unchanged is None:
            await self._app(scope, receive, send)
        else:
            await self._ask(request, method, is_unchanged, scope, receive, send)

    def answered_before(self, headers: Headers, body: bytes) -> Reply | None:
        """What a ``POST`` to the path by somebody who is let in gets without the application, if it is there."""
        begun = time.perf_counter()
        request = _understood(headers, b"", body)
        return None if request is None else self._again(request, begun)

    def _again(self, request: _Request, begun: float) -> Reply | None:
        kept = self._kept.get(request.key)
        if kept is None or not kept.is_unchanged():
            return None
        self._kept.move_to_end(request.key)
        before = kept.weight
        reply = kept.reply(request)
        if kept.weight != before:  # compressed now, for the first time
            self._used += kept.weight - before
            self._make_room()
        kept.count(time.perf_counter() - begun)
        return reply

    async def _ask(
        self,
        request: _Request,
        method: str,
        is_unchanged: Callable[[], bool],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Have the request answered; keep the answer if it is a result."""
        self._forget(request.key)
        plain = [header for header in scope["headers"] if header[0] != b"accept-encoding"]
        answer = _Answer(send)
        await self._app({**scope, "headers": plain}, receive, answer)
        if answer.headers is None:
            return
        body = bytes(answer.body)
        is_result = body.startswith(b'%b%b,"result":' % (_BEGINNING, request.id))
        if not is_result or not answer.is_whole or _ASKS_BACK in body:
            await answer.release()
            return
        after = body[len(_BEGINNING) + len(request.id) :]
        headers = [header for header in answer.headers if header[0] != b"content-length"]
        kept = _Kept(headers, after, is_unchanged, self._metrics.counter(method, "ok"))
        await _send(kept.reply(request), send)
        if kept.is_unchanged():
            self._remember(request.key, kept)

    async def _test_for(
        self, received: Message, view: Callable[[Catalog], Catalog]
    ) -> tuple[str, Callable[[], bool] | None]:
        """The method, and the test for its answer: made before the answer, so that no change goes unseen.

        The caller's view is asked: looking at a file that is hidden from it would take longer than at none.
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
        catalog = self._catalog()
        try:
            is_same = await view(catalog).unchanged(uri if is_about_one else None)
        except SkillwireError:  # whoever is asked next says it better
            return "", None
        return method, None if is_same is None else lambda: self._catalog() is catalog and is_same()

    def _remember(self, key: bytes, kept: _Kept) -> None:
        if kept.weight > self._room // _LARGEST_SHARE:
            return
        self._forget(key)
        self._kept[key] = kept
        self._used += kept.weight
        for oldest in list(islice(self._kept, 2)):  # what is outdated goes before its turn, little by little
            if not self._kept[oldest].is_unchanged():
                self._forget(oldest)
        self._make_room()

    def _make_room(self) -> None:
        while self._used > self._room:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: bytes) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._used -= kept.weight


def _understood(headers: Headers, query: bytes, body: bytes) -> _Request | None:
    """What makes this request the same as another. ``None`` if it is unusual, or its id is not certain.

    Without a backslash, and with ``"id"`` in it once, a body has an id there or none at all; that it is the
    request's own is known when the answer carries it.
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
        if name == b"accept-encoding":  # it is heeded here
            takes_gzip = b"gzip" in value
        elif name == b"mcp-session-id":
            return None
        else:
            parts += (name, value)
    start, end = found.span(1)
    parts += (b"", body[:start], body[end:])  # no header has a line break in it
    return _Request(sha256(b"\n".join(parts)).digest(), found[1], takes_gzip)


async def _send(reply: Reply, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": reply.headers})
    await send({"type": "http.response.body", "body": reply.body})


def _length(body: bytes) -> tuple[bytes, bytes]:
    return b"content-length", b"%d" % len(body)


class _Answer:
    """Holds an answer back if it is a whole one in JSON; ``headers`` says so. Anything else goes through."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.headers: Headers | None = None
        self.body = bytearray()
        self.is_whole = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_json(message):
            self.headers = [(bytes(name), bytes(value)) for name, value in message["headers"]]
        elif self.headers is None:
            await self._send(message)
        else:
            self.body += message.get("body", b"")
            self.is_whole = not message.get("more_body")

    async def release(self) -> None:
        """Send it as it came."""
        await self._send({"type": "http.response.start", "status": 200, "headers": self.headers})
        await self._send({"type": "http.response.body", "body": bytes(self.body)})


def _is_json(start: Message) -> bool:
    return start["status"] == 200 and (b"content-type", b"application/json") in start["headers"]


def _once_more(first: Message, receive: Receive) -> Receive:
    """``receive``, with the message before it that was taken already."""
    waiting = [first]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received
