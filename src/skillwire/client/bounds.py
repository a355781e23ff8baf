"""Bounds on what a server sends: bytes, JSON values, their types, and time (B1, B2, B4); HTTP within these bounds.

A transport counts bytes as they arrive, and can only end the stream when there are too many. The reason is kept
in a ``Meter`` until the failed request takes it. JSON values are counted in the same bytes, since a few KiB of
compressed ``{},{},…`` become gigabytes of objects when they are decoded.

The SDK's HTTP transport reads bodies of any size. A hook on its HTTP client replaces the body of every response
with one that counts bytes, decompresses them itself (so that a compression bomb stops at the bound), and has a
timeout for the whole body. ``stdio.py`` is the other transport.

Decoded JSON is read with ``as_object`` and its neighbours: a value of the wrong type becomes an empty one.
"""

from __future__ import annotations

import json
import re
import time
import zlib
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import anyio
import httpx2
from mcp.client.streamable_http import LAST_EVENT_ID, streamable_http_client
from mcp.shared.inbound import MCP_METHOD_HEADER

from skillwire.errors import FormatError, LimitError, SkillwireError, UpstreamError
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping

    from skillwire.limits import Limits
    from skillwire.skill.uri import SkillUri

# A raw control character ends a string: JSON does not allow it in one, and an event stream has line ends between
# its fields.
_CONTROL = bytes(range(32))
_TO_LINE_END = bytes.maketrans(_CONTROL, b"\n" * len(_CONTROL))
_OTHERS = bytes(set(range(256)) - {*b',[{"', *_CONTROL})
_STRING = re.compile(rb'"[^"\n]*["\n]')
_SLICE = 256 * 1024
_EVENTS = "text/event-stream"
_EVENT_END = re.compile(rb"(?:\n\n|\r\r|\r\n\r\n)[\r\n]*")
_GZIP = 31  # the window size that makes zlib expect a gzip header
_CHUNK = 256 * 1024
_SILENCE_SECONDS = 300.0  # without a byte, also on an event stream
_PAUSE = 0.1
_LONGEST_PAUSE = 5.0

LISTEN = "subscriptions/listen"
"""A request that waits for notifications; its response is small."""


class Meter:
    """Counts for one server, over all connections to it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.received = 0
        self.status: int | None = None  # of the last HTTP response
        self.last_output = ""  # of a process, on stderr
        self._failure: SkillwireError | None = None
        self._expected: list[int] = []  # the largest allowed response of each waiting request

    @contextmanager
    def expecting(self, size: int) -> Generator[None]:
        """A request waits for a response of at most ``size`` bytes. The largest bound of all requests applies."""
        self._expected.append(size)
        try:
            yield
        finally:
            self._expected.remove(size)

    def start_over(self) -> None:
        """Reset the budget: over days, an honest server sends many responses (B2)."""
        self.received = 0

    def count(self, size: int) -> None:
        """B2: count ``size`` more bytes."""
        self.received += size
        if self.received > self.limits.max_server_bytes:
            raise self.stop(
                LimitError(
                    "server-budget",
                    f"the server has sent more than {self.limits.max_server_bytes} bytes",
                    "reconnect, or raise Limits.max_server_bytes",
                    rule="B2",
                )
            )

    def check_message(self, size: int) -> None:
        """B1: raise ``LimitError`` if a message of ``size`` bytes is too large."""
        limits = self.limits
        bound = min(limits.max_message_bytes, max(self._expected, default=limits.max_message_bytes))
        if size > bound:
            setting = "max_message_bytes" if bound == limits.max_message_bytes else "max_page_bytes"
            raise self.stop(
                LimitError(
                    "message-too-large",
                    f"a response has more than {bound} bytes",
                    f"request less at once, or raise Limits.{setting}",
                    rule="B1",
                )
            )

    def values(self) -> ValueCounter:
        """A counter for the values of one message."""
        return ValueCounter(self.limits.max_message_values)

    def check_values(self, values: ValueCounter, piece: bytes) -> None:
        """B1: raise ``LimitError`` if a message has too many JSON values; ``piece`` is the next part of it."""
        if values.add(piece):
            raise self.stop(too_many_values("a response", self.limits))

    def is_notice(self, size: int, values: ValueCounter) -> bool:
        """B1: whether a message is small enough to be anything but a response."""
        return size <= self.limits.max_notice_bytes and not values.is_above(self.limits.max_notice_values)

    def unrequested(self) -> SkillwireError:
        """B1: the error for a large message that is not a response."""
        limits = self.limits
        return self.stop(
            LimitError(
                "message-too-large",
                f"the server sent a message that is not a response and has more than {limits.max_notice_bytes}"
                f" bytes or {limits.max_notice_values} JSON values",
                "fix the server, or raise Limits.max_notice_bytes and Limits.max_notice_values",
                rule="B1",
            )
        )

    def stop(self, failure: SkillwireError) -> SkillwireError:
        """Keep the reason for ending a stream, and return it."""
        self._failure = failure
        return failure

    def take_failure(self) -> SkillwireError | None:
        """Return the reason for ending a stream, and forget it."""
        failure, self._failure = self._failure, None
        return failure


class ValueCounter:
    """Counts the JSON values in bytes that arrive in pieces, without decoding them (B1).

    Each value except the first follows a comma, a bracket or a brace outside of strings. Strings are searched for
    only if there are more than ``enough`` of these characters in total, which is rare in text files.
    """

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._most = 0  # commas, brackets and braces, including those inside strings
        self._pending: list[bytes] = []
        self._count = 0
        self._in_string = False
        self._escape = b""  # a backslash at the end of a piece belongs to the next one

    def add(self, piece: bytes) -> bool:
        """Count one more piece; whether there are more than ``enough`` values now."""
        self._most += _count_marks(piece)
        self._pending.append(piece)
        return self.is_above(self._enough)

    def is_above(self, bound: int) -> bool:
        """Whether there are more than ``bound`` values; ``bound`` is at most ``enough``."""
        if self._most <= bound:
            return False
        pending, self._pending = self._pending, []
        for data in pending:
            for start in range(0, len(data), _SLICE):
                self._count_outside_strings(data[start : start + _SLICE])
                if self._count > self._enough:
                    return True
        return self._count > bound

    def _count_outside_strings(self, piece: bytes) -> None:
        text = (self._escape + piece).replace(b"\\\\", b"").replace(b'\\"', b"")
        self._escape = b"\\" if text.endswith(b"\\") else b""
        marks = text.translate(_TO_LINE_END, _OTHERS)
        outside, strings = _STRING.subn(b"", b'"' + marks if self._in_string else marks)
        outside, quote, _ = outside.partition(b'"')
        self._in_string = bool(quote)
        # A value has at most two strings: its key and itself. More strings are not JSON, and decoding them costs
        # time too.
        self._count += max(_count_marks(outside), strings // 2)


def _count_marks(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def too_many_values(what: str, limits: Limits) -> LimitError:
    """B1: the error for ``what`` having too many JSON values."""
    return LimitError(
        "too-many-values",
        f"{what} has more than {limits.max_message_values} JSON values",
        "request less at once, or raise Limits.max_message_values",
        rule="B1",
    )


def parse_json(data: bytes, what: str, limits: Limits) -> object:
    """Decode ``data``; ``LimitError`` for too many values (B1), ``ValueError`` if it is not JSON."""
    if ValueCounter(limits.max_message_values).add(data):
        raise too_many_values(what, limits)
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def as_object(value: object) -> dict[str, Any]:
    """``value`` if it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """``value`` if it is a JSON array, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """``value`` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def as_size(value: object) -> int | None:
    """``value`` if it is a number of bytes, else ``None``."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def as_uri(value: object) -> SkillUri | None:
    """``value`` as a parsed URI if it is a valid one (U7), else ``None``."""
    try:
        return parse_uri(value) if isinstance(value, str) else None
    except FormatError:
        return None


@asynccontextmanager
async def open_http(url: str, client: httpx2.AsyncClient, limits: Limits) -> AsyncGenerator[tuple[Any, Any]]:
    """Open the SDK's streams to ``url`` through ``client``, which is opened and closed too.

    The SDK has no public names for the types of its two streams.
    """
    async with (
        client,
        streamable_http_client(url, http_client=client, max_sse_event_size=limits.max_message_bytes) as streams,
    ):
        yield streams


def bounded_client(headers: Mapping[str, str], meter: Meter) -> httpx2.AsyncClient:
    """An HTTP client that counts the bytes of responses, and that delays repeated streams."""
    opened = 0

    async def slow_down(request: httpx2.Request) -> None:
        """B4: delay each further stream a little longer, because the SDK reopens a stream whenever it ends."""
        nonlocal opened
        if request.method == "GET":
            opened += 1
            await anyio.sleep(min(_LONGEST_PAUSE, _PAUSE * (opened - 1) ** 2))

    async def bound(response: httpx2.Response) -> None:
        response.stream = BoundedBody.of(response, meter)

    return httpx2.AsyncClient(
        headers={**headers, "Accept-Encoding": "gzip"},
        timeout=httpx2.Timeout(meter.limits.max_call_seconds, read=_SILENCE_SECONDS),
        event_hooks={"request": [slow_down], "response": [bound]},
        verify=trusted(),
    )


@cache
def trusted() -> ssl.SSLContext:
    """The trusted certificates. They are read once, since that takes as long as many requests."""
    return httpx2.create_ssl_context()


class BoundedBody(httpx2.AsyncByteStream):
    """The decoded body of one response. An event stream may last forever, but each event is bounded in size.

    Only an event with the response to a request may be large: one event, or none if no request waits (B1).
    """

    def __init__(
        self, body: httpx2.AsyncByteStream, meter: Meter, encoding: str, *, is_events: bool, has_answer: bool
    ) -> None:
        self._body = body
        self._meter = meter
        self._encoding = encoding
        self._is_events = is_events
        self._has_answer = has_answer
        self._tail = b""  # a blank line may arrive in two pieces
        self._size = 0  # of the current message
        self._values = meter.values()

    @classmethod
    def of(cls, response: httpx2.Response, meter: Meter) -> BoundedBody:
        """The body of ``response``, in place of its stream. The meter gets its status."""
        meter.status = response.status_code
        encoding = response.headers.pop("content-encoding", "identity").lower()
        is_events = response.headers.get("content-type", "").lower().startswith(_EVENTS)
        if is_events:
            response.headers["content-type"] = _EVENTS  # drops a charset: values are counted in UTF-8
        body = cast("httpx2.AsyncByteStream", response.stream)  # the stream of an async client is always async
        return cls(body, meter, encoding, is_events=is_events, has_answer=_has_answer(response.request))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            decode = _Decoder(self._encoding, self._meter)
            begun, seconds = time.monotonic(), self._meter.limits.max_call_seconds
            async for chunk in self._body:
                rest = len(chunk)  # the larger of the compressed and the decompressed size counts (B2)
                for piece in decode(chunk):
                    self._meter.count(len(piece))
                    rest -= len(piece)
                    self._measure(piece)
                    if not self._is_events and time.monotonic() - begun > seconds:
                        raise self._meter.stop(too_slow(seconds))
                    yield piece
                self._meter.count(max(0, rest))
        except (SkillwireError, zlib.error) as error:  # the SDK turns these two kinds into a response
            kind = httpx2.SSEError if self._is_events else httpx2.StreamError
            raise kind(str(error)) from error

    def _measure(self, piece: bytes) -> None:
        """Measure one more piece (B1). The messages of an event stream end with blank lines."""
        start = 0
        if self._is_events:
            text, before = self._tail + piece, len(self._tail)
            self._tail = text[-3:]
            for blank in _EVENT_END.finditer(text):
                end = blank.end() - before
                if end > start:
                    self._add(piece[start:end])
                    self._end_event()
                    start = end
        self._add(piece[start:])

    def _end_event(self) -> None:
        if not self._meter.is_notice(self._size, self._values):
            if not self._has_answer:
                raise self._meter.unrequested()
            self._has_answer = False
        self._size, self._values = 0, self._meter.values()

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        self._meter.check_message(self._size)
        self._meter.check_values(self._values, piece)

    async def aclose(self) -> None:
        """Release the connection."""
        await self._body.aclose()


def _has_answer(request: httpx2.Request) -> bool:
    """Whether the response to ``request`` may contain a result; a resumed stream may too."""
    if request.method == "GET":
        return LAST_EVENT_ID in request.headers
    return request.headers.get(MCP_METHOD_HEADER) != LISTEN


class _Decoder:
    def __init__(self, encoding: str, meter: Meter) -> None:
        self._zlib = zlib.decompressobj(_GZIP) if encoding in ("gzip", "x-gzip") else None
        if self._zlib is None and encoding not in ("", "identity"):
            raise meter.stop(
                UpstreamError(
                    "encoding-unknown",
                    f"the server responds in {encoding!r:.40}, which the client did not offer",
                    "make the server, or the proxy in front of it, respect 'Accept-Encoding: gzip'",
                    rule="B1",
                )
            )

    def __call__(self, chunk: bytes) -> Iterator[bytes]:
        if self._zlib is None:
            yield chunk
            return
        while chunk:
            if self._zlib.eof:  # zlib would keep all further data, and copy it for each piece
                raise zlib.error("data after the end of the compressed stream")
            yield self._zlib.decompress(chunk, _CHUNK)
            chunk = self._zlib.unconsumed_tail or self._zlib.unused_data


def too_slow(seconds: float) -> UpstreamError:
    """B4: the error for a request that took too long."""
    return UpstreamError(
        "timed-out",
        f"the server did not respond within {seconds:g} seconds",
        "try again, or raise Limits.max_call_seconds",
        rule="B4",
    )
