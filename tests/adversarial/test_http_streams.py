"""Streams that end and are opened again: a server decides when, and must not decide how often (B4)."""

from __future__ import annotations

import pytest

from adversarial.adversary import HostileServer
from adversarial.expecting import hasty, listed, only, refused
from adversarial.speaking import EVENTS, Raw, once
from rules import rule
from skillwire import UpstreamError

pytestmark = pytest.mark.anyio

HASTE = Raw(once(b"id: 1\nretry: 0\ndata:\n\n"), kind=EVENTS)


@rule("B4")
async def test_a_stream_that_ends_at_once_is_not_opened_at_once_again() -> None:
    """The handshake era's stream of notices, with 'retry: 0'."""
    web = HostileServer("http", "legacy")
    info = {"capabilities": web.capabilities, "serverInfo": {"name": "x", "version": "1"}}
    opened = web.raw({"protocolVersion": "2025-11-25", **info}, headers=(("Mcp-Session-Id", "s"),))
    web.answers |= {"initialize": opened, "GET": HASTE}
    async with web.connect(dialect="extension") as client:
        await web.until(lambda: web.streams >= 1)
        for _ in range(200):
            await listed(client)
    assert web.streams < 10


@rule("B4")
async def test_an_answer_that_is_always_resumed_is_given_up(web: HostileServer) -> None:
    """A stream that ends before the answer, and says that there is more."""
    web.answers |= {"skills/list": HASTE, "GET": HASTE}
    async with web.connect(dialect="extension") as client:
        with hasty(client), refused(UpstreamError, "timed-out", "B4"):
            await listed(client)
        del web.answers["skills/list"]
        for _ in range(100):
            assert await only(client)
    assert web.streams < 10
