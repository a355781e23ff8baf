"""Streams that end and are opened again: a server decides when, and must not decide how often (B4)."""

from __future__ import annotations

import anyio
import pytest

from adversarial.adversary import HostileServer
from adversarial.expecting import hasty, listed, only, refused
from adversarial.speaking import EVENTS, Raw, once
from rotation import every_setting
from rules import rule
from skillwire.errors import UpstreamError

pytestmark = pytest.mark.anyio

HASTE = Raw(once(b"id: 1\nretry: 0\ndata:\n\n"), kind=EVENTS)


@rule("B4")
async def test_a_stream_that_ends_at_once_is_opened_again_ever_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handshake era's stream of notices, with 'retry: 0'."""
    pauses: list[float] = []
    sleep = anyio.sleep

    async def pause(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr("skillwire.client.bounds.anyio.sleep", pause)
    web = HostileServer("http", "legacy")
    info = {"capabilities": web.capabilities, "serverInfo": {"name": "x", "version": "1"}}
    opened = web.raw({"protocolVersion": "2025-11-25", **info}, headers=(("Mcp-Session-Id", "s"),))
    web.answers |= {"initialize": opened, "GET": HASTE}
    async with web.connect(dialect="extension") as client:
        await web.until(lambda: web.streams >= 12)
        assert await listed(client) == []
    assert pauses[:5] == sorted(set(pauses[:5]))
    assert max(pauses) == pauses[10] == pauses[9]


@rule("B4")
@every_setting
async def test_an_answer_that_is_always_resumed_is_given_up(web: HostileServer) -> None:
    """A stream that ends before the answer, and says that there is more."""
    web.answers |= {"skills/list": HASTE, "GET": HASTE}
    async with web.connect(dialect="extension") as client:
        with hasty(client), refused(UpstreamError, "timed-out", "B4"):
            await listed(client)
        del web.answers["skills/list"]
        assert await only(client)
    assert web.streams < 10  # each after a longer pause
