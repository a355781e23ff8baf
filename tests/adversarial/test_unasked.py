"""Messages that answer no call: they are small, or the connection ends before they cost anything (B1)."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from adversarial.adversary import KIB, SMALL, HostileServer
from adversarial.expecting import listed, only, refused
from adversarial.speaking import EVENTS, JSON, Raw, once, to_message
from rules import rule
from skillwire.client import stdio
from skillwire.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from skillwire.client.skills import SkillsClient
    from skillwire.errors import SkillwireError

pytestmark = pytest.mark.anyio

LARGE: dict[str, dict[str, Any]] = {"bytes": {"x": "x" * 70 * KIB}, "values": {"x": [{}] * 1001}}
each_kind = pytest.mark.parametrize("params", LARGE.values(), ids=LARGE)


def note(params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params}).encode()


async def stopped(client: SkillsClient) -> SkillwireError:
    """Why a stream of the server was ended while no call waited."""
    with anyio.fail_after(20):
        while (failure := client.connection.meter.take_failure()) is None:  # noqa: ASYNC110 - it has no event
            await anyio.sleep(0.001)
    return failure


@rule("B1")
@each_kind
async def test_a_large_notification_is_not_even_decoded_where_no_call_waits(
    process: HostileServer, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next call is answered, over another connection."""
    decoded: list[int] = []
    decode = stdio.from_json

    def from_json(line: bytes) -> Any:
        decoded.append(len(line))
        return decode(line)

    monkeypatch.setattr(stdio, "from_json", from_json)
    async with process.connect(dialect="extension") as client:
        assert await only(client)
        before = len(decoded)
        await process.notify("notifications/message", **params)
        failure = await stopped(client)
        assert (type(failure), failure.reference, failure.rule) == (LimitError, "message-too-large", "B1")
        assert len(decoded) == before
        assert await only(client)
        assert client.connection.opened == 2


@rule("B1")
@each_kind
async def test_a_stream_of_notices_has_no_large_event(params: dict[str, Any]) -> None:
    """The handshake era's stream, which answers no call."""
    web = HostileServer("http", "legacy")
    info = {"capabilities": web.capabilities, "serverInfo": {"name": "x", "version": "1"}}
    opened = web.raw({"protocolVersion": "2025-11-25", **info}, headers=(("Mcp-Session-Id", "s"),))
    web.answers |= {"initialize": opened, "GET": Raw(once(b"data: " + note(params) + b"\n\n"), kind=EVENTS)}
    async with web.connect(dialect="extension") as client:
        failure = await stopped(client)
        assert (failure.reference, failure.rule) == ("message-too-large", "B1")
        assert await listed(client) == []


def speaking(server: HostileServer, result: Any, *notes: bytes) -> Raw:
    """An answer with notifications before it, as the transport has them."""
    head, end = (b"data: ", b"\n\n") if server.transport == "http" else (b"", b"\n")

    async def body(request_id: Any) -> AsyncIterator[bytes]:
        yield b"".join(head + message + end for message in [*notes, to_message(request_id, result)])

    return Raw(body, kind=EVENTS if server.transport == "http" else JSON)


@rule("B1")
@each_kind
async def test_only_the_answer_to_a_call_may_be_large(server: HostileServer, params: dict[str, Any]) -> None:
    """Many small notifications before it, in one piece, are not one large one."""
    result = await server.answer("skills/list", {})
    large = {**result, **params}
    server.answers["skills/list"] = speaking(server, large, *[note({"x": [0] * 500})] * 20)
    async with server.connect(dialect="extension") as client:
        assert await only(client)
        server.answers["skills/list"] = speaking(server, large, note(params))
        with refused(LimitError, "message-too-large", "B1"):
            await listed(client)
        del server.answers["skills/list"]
        assert await only(client)


@rule("B2")
async def test_the_budget_counts_what_compressed_bytes_become(web: HostileServer) -> None:
    """Each answer is far within the bound of a message, and 500 times as small on the line."""
    result = await web.answer("skills/list", {})

    async def packed(request_id: Any) -> AsyncIterator[bytes]:
        yield gzip.compress(to_message(request_id, {**result, "x": " " * 100 * KIB}))

    web.answers["skills/list"] = Raw(packed, headers=(("Content-Encoding", "gzip"),))
    async with web.connect(dialect="extension", limits=replace(SMALL, max_server_bytes=350 * KIB)) as client:
        for _ in range(3):
            assert await only(client)
        with refused(LimitError, "server-budget", "B2"):
            await listed(client)
