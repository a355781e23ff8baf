"""More than a client wants to hear, and less: B1, B2, B4, over every transport and in both eras."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from adversarial.adversary import KIB, MIB, SMALL
from adversarial.conftest import NOTES
from adversarial.expecting import hasty, listed, memory_below, only, refused
from adversarial.speaking import Raw, Refusal, drip, endless, once, silence
from rotation import every_setting
from rules import rule
from skillwire import SkillwireError
from skillwire.errors import LimitError, ProtocolError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from adversarial.adversary import HostileServer

pytestmark = [pytest.mark.anyio, every_setting]

NOTE = "skill://flat/notes.md"


def named(function: Any) -> str:
    return function.__name__.replace("_", "-")


@rule("B1")
async def test_an_answer_that_never_ends_is_cut_off(server: HostileServer) -> None:
    """An HTTP body without an end, a line without a newline."""
    server.answers["skills/list"] = Raw(endless)
    async with server.connect(dialect="extension") as client:
        with memory_below(8 * MIB), refused(LimitError, "message-too-large", "B1"):
            await listed(client)
        assert client.connection.meter.received < 2 * MIB
        del server.answers["skills/list"]
        assert await only(client)


@rule("B1")
async def test_a_message_above_the_bound_is_refused_though_it_is_whole(server: HostileServer) -> None:
    """And one just below it is not."""
    page = {"skills": server.entries, "x": "x" * (MIB - 10 * KIB)}
    server.answers["skills/list"] = page
    async with server.connect(dialect="extension") as client:
        assert await only(client)
        page["x"] += "x" * 20 * KIB
        with refused(LimitError, "message-too-large", "B1"):
            await listed(client)


async def deep(request_id: Any) -> AsyncIterator[bytes]:
    yield b'{"jsonrpc": "2.0", "id": %d, "result": {"skills": ' % request_id
    yield b"[" * 100_000 + b"]" * 100_000 + b"}}"


async def cut_off(request_id: Any) -> AsyncIterator[bytes]:
    yield b'{"jsonrpc": "2.0", "id": %d, "result": {"skills": [' % request_id


async def endless_number(request_id: Any) -> AsyncIterator[bytes]:
    yield b'{"jsonrpc": "2.0", "id": %d, "result": {"skills": [%s]}}' % (request_id, b"9" * 500_000)


async def not_utf8(request_id: Any) -> AsyncIterator[bytes]:
    yield b'{"jsonrpc": "2.0", "id": %d, "result": {"skills": ["\xff\xfe"]}}' % request_id


async def neither(request_id: Any) -> AsyncIterator[bytes]:
    yield b'{"jsonrpc": "2.0", "id": %d, "outcome": {}}' % request_id


async def listless(request_id: Any) -> AsyncIterator[bytes]:
    yield b'{"jsonrpc": "2.0", "id": %d, "result": []}' % request_id


@rule("B1")
@pytest.mark.parametrize("body", [deep, cut_off, endless_number, not_utf8, neither, listless], ids=named)
async def test_a_message_that_cannot_be_read_is_refused(server: HostileServer, body: Any) -> None:
    """Deep JSON, broken JSON, a number of a mile, broken text, no JSON-RPC. The next call is answered."""
    server.answers["skills/list"] = Raw(body)
    async with server.connect(dialect="extension") as client:
        with memory_below(8 * MIB), refused(ProtocolError, "message-invalid", "B1"):
            await listed(client)
        del server.answers["skills/list"]
        assert await only(client)


@rule("B1")
async def test_deep_json_inside_a_file_is_just_a_file(server: HostileServer) -> None:
    """Content is not parsed."""
    server.entries.clear()
    server.files.clear()
    server.add("flat", {"SKILL.md": b"---\nname: flat\ndescription: D\n---\n", "deep.json": b"[" * 60_000})
    async with server.connect() as client:
        file = await client.read_resource(await only(client), "skill://flat/deep.json")
        assert file.data == b"[" * 60_000


@rule("B2")
async def test_a_server_has_a_budget_over_all_its_answers(server: HostileServer) -> None:
    """Each answer is small enough; together they are not, and a new connection is no new budget."""
    server.files[NOTE] = b"n" * 60 * KIB
    limits = replace(SMALL, max_server_bytes=MIB)
    async with server.connect(limits=limits) as client:
        for _ in range(15):
            await client.read_unverified(NOTE)
        with refused(LimitError, "server-budget", "B2"):
            for _ in range(5):
                await client.read_unverified(NOTE)
        assert client.connection.meter.received < limits.max_server_bytes + 256 * KIB
        with refused(LimitError, "server-budget", "B2"):
            await listed(client)


@rule("B1", "B6")
@pytest.mark.parametrize("code", [-32602, -32603])  # not found, failed
async def test_the_words_of_a_server_stay_on_their_line(server: HostileServer, code: int) -> None:
    """An error's text is quoted: bounded, without line breaks, without orders to a terminal."""
    forged = "no\x1b[2J\x9b\u202e\r\n  hint: run this\n" + "x" * 100_000
    server.answers["resources/read"] = Refusal(code, forged)
    async with server.connect() as client:
        entry = await only(client)
        with pytest.raises(SkillwireError) as caught:
            await client.read_skill(entry)
    assert "no" in caught.value.message
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 600


@rule("B4")
async def test_a_server_that_does_not_answer_is_given_up(server: HostileServer) -> None:
    """That call, not the connection."""
    server.answers["skills/list"] = silence
    async with server.connect(dialect="extension") as client:
        with hasty(client), refused(UpstreamError, "timed-out", "B4"):
            await listed(client)
        del server.answers["skills/list"]
        assert await only(client)
        assert client.connection.opened == 1


@rule("B4")
async def test_a_server_that_drips_is_given_up(server: HostileServer) -> None:
    """Bytes keep coming, an answer does not."""
    server.answers["skills/list"] = Raw(drip)
    async with server.connect(dialect="extension") as client:
        with hasty(client), refused(UpstreamError, "timed-out", "B4"):
            await listed(client)


@rule("B4")
async def test_a_server_that_answers_somebody_else_is_given_up(server: HostileServer) -> None:
    """The answer to a request that was never made is no answer."""
    message = {"jsonrpc": "2.0", "id": 987654, "result": {"skills": server.entries}}
    server.answers["skills/list"] = Raw(once(json.dumps(message).encode()))
    async with server.connect(dialect="extension") as client:
        with hasty(client), refused(UpstreamError, "timed-out", "B4"):
            await listed(client)


@rule("B4")
@pytest.mark.parametrize("lie", [silence, Raw(drip)], ids=["silent", "dripping"])
async def test_a_server_that_never_opens_is_given_up(server: HostileServer, lie: Any) -> None:
    """Connecting has a limit too."""
    server.answers |= {"server/discover": lie, "initialize": lie}
    with refused(UpstreamError, "timed-out", "B4"):
        async with server.connect(limits=replace(SMALL, max_call_seconds=0.2)):
            pytest.fail("nobody answered")


@rule("B1")
async def test_an_endless_opening_is_cut_off(server: HostileServer) -> None:
    """Also before there is a connection."""
    server.answers |= {"server/discover": Raw(endless), "initialize": Raw(endless)}
    with memory_below(16 * MIB), refused(LimitError, "message-too-large", "B1"):
        async with server.connect():
            pytest.fail("nobody answered")


@rule("B4")
async def test_a_call_that_was_given_up_is_not_confused_with_the_next(server: HostileServer) -> None:
    """An answer that comes too late belongs to nobody."""
    late = anyio.Event()

    async def slow(_: Any) -> dict[str, Any]:
        await late.wait()
        return {"contents": [{"uri": NOTE, "text": "late"}]}

    server.answers["resources/read"] = slow
    async with server.connect() as client:
        await listed(client)
        with hasty(client), refused(UpstreamError, "timed-out", "B4"):
            await client.read_unverified(NOTE)
        del server.answers["resources/read"]
        late.set()
        assert (await client.read_unverified(NOTE)).data == NOTES
