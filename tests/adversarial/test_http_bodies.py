"""Lies that only HTTP can tell: compression, lengths, heads, streams of events (B1, B2, B4)."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from adversarial.adversary import KIB, MIB, SMALL
from adversarial.expecting import hasty, listed, memory_below, only, refused
from adversarial.speaking import EVENTS, Raw, endless, once, to_message
from rotation import every_setting
from rules import rule
from skillwire.errors import LimitError, ProtocolError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from adversarial.adversary import HostileServer

pytestmark = [pytest.mark.anyio, every_setting]

GZIP = (("Content-Encoding", "gzip"),)
TERABYTE = (("Content-Length", str(10**12)),)


def swollen(size: int) -> bytes:
    """A few KiB of gzip that become an answer of ``size`` bytes."""
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    begun = packing.compress(b'{"jsonrpc": "2.0", "id": 2, "result": {"skills": [], "more": "')
    middle = b"".join(map(packing.compress, repeat(b"m" * MIB, size // MIB)))
    return begun + middle + packing.compress(b'"}}') + packing.flush()


@rule("B1")
async def test_a_gzip_bomb_stops_at_the_bound(web: HostileServer) -> None:
    """16 MiB in 16 KiB."""
    bomb = swollen(16 * MIB)
    assert len(bomb) < 40 * KIB
    web.answers["skills/list"] = Raw(once(bomb), headers=GZIP)
    async with web.connect(dialect="extension") as client:
        with memory_below(8 * MIB), refused(LimitError, "message-too-large", "B1"):
            await listed(client)
        assert client.connection.meter.received < 2 * MIB  # as decoded (B2)


@rule("B1")
async def test_an_honest_answer_may_be_compressed(web: HostileServer) -> None:
    """What is refused is the size."""
    result = await web.answer("skills/list", {})

    async def packed(request_id: Any) -> AsyncIterator[bytes]:
        for byte in gzip.compress(to_message(request_id, result)):
            yield bytes([byte])

    web.answers["skills/list"] = Raw(packed, headers=GZIP)
    async with web.connect(dialect="extension") as client:
        assert (await only(client)).name == "flat"


@rule("B1")
@pytest.mark.parametrize("encoding", ["br", "gzip, gzip"])
async def test_a_compression_that_was_not_asked_for_is_refused(web: HostileServer, encoding: str) -> None:
    """What cannot be bounded is not unpacked."""
    web.answers["skills/list"] = Raw(once(b"..."), headers=(("Content-Encoding", encoding),))
    async with web.connect(dialect="extension") as client:
        with refused(UpstreamError, "encoding-unknown", "B1"):
            await listed(client)


@rule("B1")
async def test_damaged_compression_is_refused(web: HostileServer) -> None:
    web.answers["skills/list"] = Raw(once(gzip.compress(b"{}")[:5] + b"damaged"), headers=GZIP)
    async with web.connect(dialect="extension") as client:
        with refused(ProtocolError, "message-invalid", "B1"):
            await listed(client)


async def chunked(request_id: Any) -> AsyncIterator[bytes]:
    async for chunk in endless(request_id):
        yield b"%x\r\n%s\r\n" % (len(chunk), chunk)


@rule("B1")
@pytest.mark.parametrize(
    "lie",
    [Raw(endless, headers=TERABYTE), Raw(chunked, headers=(("Transfer-Encoding", "chunked"),))],
    ids=["a terabyte", "chunks"],
)
async def test_a_body_of_any_announced_length_stops_at_the_bound(web: HostileServer, lie: Raw) -> None:
    web.answers["skills/list"] = lie
    async with web.connect(dialect="extension") as client:
        with memory_below(8 * MIB), refused(LimitError, "message-too-large", "B1"):
            await listed(client)
        assert client.connection.meter.received < 2 * MIB


async def endless_head(_: Any) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"X-More: " + b"m" * 8000 + b"\r\n"


async def no_http(_: Any) -> AsyncIterator[bytes]:
    yield b"220 mail.example ESMTP\r\n"


@rule("B1", "B4")
@pytest.mark.parametrize(
    "lie",
    [Raw(endless_head, status=0), Raw(no_http, status=0), Raw(once(b"{"), headers=TERABYTE)],
    ids=["endless head", "another protocol", "a terabyte that does not come"],
)
async def test_an_answer_that_breaks_http_is_tried_again_and_given_up(web: HostileServer, lie: Raw) -> None:
    """Nothing hangs, nothing swells, and the next call is answered."""
    web.answers["skills/list"] = lie
    async with web.connect(dialect="extension") as client:
        with memory_below(8 * MIB), refused(UpstreamError, "connection-lost"):
            await listed(client)
        assert web.methods() == ["skills/list"] * SMALL.max_connect_attempts
        del web.answers["skills/list"]
        assert await only(client)


async def endless_event(request_id: Any) -> AsyncIterator[bytes]:
    yield b"data: "
    async for chunk in endless(request_id):
        yield chunk


async def endless_data_lines(_: Any) -> AsyncIterator[bytes]:
    while True:
        yield b"data: " + b"m" * 60_000 + b"\n"


async def resumable_endless_event(request_id: Any) -> AsyncIterator[bytes]:
    yield b"id: 1\nretry: 0\ndata:\n\n"
    async for chunk in endless_event(request_id):
        yield chunk


@rule("B1")
@pytest.mark.parametrize(
    "body",
    [endless_event, endless_data_lines, resumable_endless_event],
    ids=["one-line", "many-lines", "resumable"],
)
async def test_an_event_that_never_ends_is_cut_off(web: HostileServer, body: Any) -> None:
    """A bound is no lost connection, so it is not tried again."""
    web.answers["skills/list"] = Raw(body, kind=EVENTS)
    async with web.connect(dialect="extension") as client:
        with memory_below(16 * MIB), refused(LimitError, "message-too-large", "B1"):
            await listed(client)
        assert client.connection.meter.received < 2 * MIB
        assert web.methods() == ["skills/list"]


async def comments(_: Any) -> AsyncIterator[bytes]:
    while True:
        yield b": keep waiting\n\n"
        await anyio.sleep(0.01)


async def chatter(_: Any) -> AsyncIterator[bytes]:
    note = b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "%s"}}'
    while True:
        yield b"data: " + note % (b"x" * 1000) + b"\n\n"


@rule("B4")
async def test_events_without_an_answer_are_given_up(web: HostileServer) -> None:
    """A stream may stay open; a call may not."""
    web.answers["skills/list"] = Raw(comments, kind=EVENTS)
    async with web.connect(dialect="extension") as client:
        with hasty(client), refused(UpstreamError, "timed-out", "B4"):
            await listed(client)
        del web.answers["skills/list"]
        assert await only(client)


@rule("B2")
async def test_endless_chatter_meets_the_budget(web: HostileServer) -> None:
    """Small events, too many of them."""
    web.answers["skills/list"] = Raw(chatter, kind=EVENTS)
    async with web.connect(dialect="extension", limits=replace(SMALL, max_server_bytes=MIB // 8)) as client:
        with memory_below(16 * MIB), refused(LimitError, "server-budget", "B2"):
            await listed(client)
        assert client.connection.meter.received < MIB


@rule("B1")
async def test_an_answer_among_events_is_found(web: HostileServer) -> None:
    """The server talks, asks for things it does not get, and answers in the end."""
    result = await web.answer("skills/list", {})

    async def talk(request_id: Any) -> AsyncIterator[bytes]:
        yield b': hello\r\n\r\ndata: {"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage"}\r\n\r\n'
        yield b'event: other\ndata: {"x": 1}\n\n'
        yield b"data: " + to_message(request_id, result) + b"\n\n"

    web.answers["skills/list"] = Raw(talk, kind=EVENTS)
    async with web.connect(dialect="extension") as client:
        assert await only(client)


@rule("B1")
async def test_data_behind_a_compressed_answer_is_refused(web: HostileServer) -> None:
    """It would be kept, and copied for each piece that comes."""

    async def packed(request_id: Any) -> AsyncIterator[bytes]:
        yield gzip.compress(to_message(request_id, {"skills": []}))
        while True:
            yield gzip.compress(b"") * 1000

    web.answers["skills/list"] = Raw(packed, headers=GZIP)
    async with web.connect(dialect="extension") as client:
        with refused(ProtocolError, "message-invalid", "B1"):
            await listed(client)
        assert client.connection.meter.received < MIB
