"""Servers that die, come back, stay away or are too many; calls that are cancelled; lists of many servers."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from adversarial.adversary import SMALL, HostileServer
from adversarial.expecting import listed, only, refused
from adversarial.speaking import Raw, Refusal, once, silence
from rotation import every_setting
from rules import rule
from skillwire import connect
from skillwire.errors import UpstreamError
from skillwire.lowlevel import list_many
from starting import skillwire_command
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from skillwire.types import SkillsClient

pytestmark = pytest.mark.anyio

NOTE = "skill://flat/notes.md"


async def half(request_id: Any) -> AsyncIterator[bytes]:
    yield b'{"jsonrpc": "2.0", "id": %d, "result": {"ski' % request_id


def dies(server: HostileServer, times: int) -> None:
    """The server dies in the middle of the next ``times`` answers."""
    deaths = iter(range(times))

    async def answer(_: dict[str, Any]) -> Any:
        if next(deaths, None) is None:
            return None
        if server.transport == "stdio":
            return Raw(dying)
        return Raw(half, headers=(("Content-Length", "1000"),))

    async def dying(request_id: Any) -> AsyncIterator[bytes]:
        async for chunk in half(request_id):
            yield chunk
        server.hang_up()
        await anyio.sleep_forever()

    server.answers["skills/list"] = answer


@rule("B4")
@every_setting
async def test_a_server_that_dies_is_opened_again_and_the_call_is_answered(server: HostileServer) -> None:
    """In the middle of an answer; the process is started anew."""
    dies(server, 2)
    async with server.connect(dialect="extension") as client:
        assert await only(client)
        assert client.connection.opened == 3
        assert server.methods() == ["skills/list"] * 3
        assert await only(client)
        assert client.connection.opened == 3


@rule("B4")
@every_setting
async def test_a_server_that_keeps_dying_is_given_up(server: HostileServer) -> None:
    """After as many attempts as allowed, and the next call tries again."""
    dies(server, SMALL.max_connect_attempts)
    async with server.connect(dialect="extension") as client:
        with refused(UpstreamError, "connection-lost"):
            await listed(client)
        assert server.methods() == ["skills/list"] * SMALL.max_connect_attempts
        assert await only(client)


@rule("B4")
@every_setting
async def test_a_listener_that_restarts_on_its_port_is_found_again(web: HostileServer) -> None:
    """Between two calls."""
    async with AsyncExitStack() as stack:
        async with web.serving() as url:
            client = await stack.enter_async_context(connect(url, limits=SMALL))
            assert await only(client)
        port = web.port
        with refused(UpstreamError, "connection-lost"):
            await listed(client)
        async with web.serving(port):
            assert await only(client)


@rule("B4")
@every_setting
async def test_a_listener_that_restarts_meanwhile_is_waited_for(
    web: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is made while nobody listens, and is answered all the same."""
    restart = anyio.Event()

    async def pause(_: float) -> None:
        restart.set()
        await listening.wait()

    listening = anyio.Event()
    async with AsyncExitStack() as stack:
        async with web.serving() as url:
            client = await stack.enter_async_context(connect(url, limits=SMALL))
        monkeypatch.setattr("skillwire.client.connection.anyio.sleep", pause)
        async with anyio.create_task_group() as group:
            found: list[Any] = []

            async def ask() -> None:
                found.extend(await listed(client))

            group.start_soon(ask)
            with anyio.fail_after(20):
                await restart.wait()
            async with web.serving(web.port):
                listening.set()
                with anyio.fail_after(20):
                    while not found:
                        await web.until(lambda: "skills/list" in web.methods())
                        await anyio.lowlevel.checkpoint()
    assert [entry.name for entry in found] == ["flat"]


@rule("B4")
@every_setting
async def test_a_process_that_cannot_start_again_is_given_up(process: HostileServer) -> None:
    """It worked once; now nobody answers behind it."""
    async with AsyncExitStack() as stack:
        async with process.serving() as command:
            client = await stack.enter_async_context(connect(command, limits=SMALL))
            assert await only(client)
        with refused(UpstreamError, "connection-lost"):
            await listed(client)


@rule("B4")
@every_setting
async def test_many_calls_that_lose_one_connection_open_one_other(server: HostileServer) -> None:
    """A crowd notices, one opens."""
    arrived = 0

    async def read(_: dict[str, Any]) -> Any:
        nonlocal arrived
        arrived += 1
        if arrived == 8:
            server.hang_up()
        if arrived <= 8:
            await silence(None)
        return None

    async with server.connect() as client:
        entry = await only(client)
        server.answers["resources/read"] = read
        data: list[bytes] = []

        async def ask() -> None:
            data.append((await client.read_resource(entry, NOTE)).data)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                for _ in range(8):
                    group.start_soon(ask)
        assert data == [server.files[NOTE]] * 8
        assert client.connection.opened == 2


@rule("B4")
@every_setting
async def test_a_call_that_is_cancelled_is_cancelled_at_the_server(server: HostileServer) -> None:
    """The request is aborted over stateless HTTP; elsewhere the server is told. The connection stays."""
    server.answers["resources/read"] = silence
    async with server.connect() as client:
        entry = await only(client)
        async with anyio.create_task_group() as group:
            group.start_soon(client.read_resource, entry, NOTE)
            await server.until(lambda: "resources/read" in server.methods())
            group.cancel_scope.cancel()
        [asked] = [ask for ask in server.asked if ask.method == "resources/read"]
        if (server.transport, server.era) == ("http", "modern"):
            await server.until(lambda: server.hung_up == ["resources/read"])
        else:
            told = "notifications/cancelled"
            await server.until(lambda: any(ask.method == told for ask in server.asked))
            assert [ask.params["requestId"] for ask in server.asked if ask.method == told] == [asked.id]
        del server.answers["resources/read"]
        assert await client.read_resource(entry, NOTE)
        assert client.connection.opened == 1


@rule("B4")
@every_setting
async def test_leaving_the_block_does_not_wait_for_calls(server: HostileServer) -> None:
    """What is under way is cancelled by whoever made it; the server cannot hold us."""
    server.answers["skills/list"] = silence
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group, server.connect(dialect="extension") as client:
            group.start_soon(listed, client)
            await server.until(lambda: "skills/list" in server.methods())
            group.cancel_scope.cancel()


class Crowd:
    """Servers over HTTP, in both eras, and a client of each."""

    def __init__(self, size: int) -> None:
        self.servers = {f"s{n}": HostileServer("http", "modern" if n % 2 else "legacy") for n in range(size)}
        for label, server in self.servers.items():
            server.add(label, {"SKILL.md": skill_md(label)})

    async def connect(self, stack: AsyncExitStack) -> dict[str, SkillsClient]:
        return {
            label: await stack.enter_async_context(server.connect(dialect="extension"))
            for label, server in self.servers.items()
        }


async def test_many_servers_are_listed_at_once() -> None:
    """All requests are in flight before one is answered: the slowest alone decides how long it takes."""
    crowd = Crowd(8)
    waiting = 0
    everybody = anyio.Event()

    async def wait(_: dict[str, Any]) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == 8:
            everybody.set()
        await everybody.wait()

    for server in crowd.servers.values():
        server.answers["skills/list"] = wait
    async with AsyncExitStack() as stack:
        clients = await crowd.connect(stack)
        with anyio.fail_after(20):
            found = await list_many(clients)
    assert list(found) == list(crowd.servers)
    assert {label: [entry.name for entry in listing.entries] for label, listing in found.items()} == {
        label: [label] for label in crowd.servers
    }


@rule("B1", "B3", "B4")
async def test_servers_that_fail_spoil_no_other() -> None:
    """Every failure stands at its own label, with what came before it."""
    crowd = Crowd(6)
    lies = {
        "s1": Raw(once(b"not JSON")),
        "s2": {"skills": [], "nextCursor": "again"},
        "s3": Refusal(-32603, "out of order"),
        "s4": Raw(once(b""), status=401),
    }
    for label, lie in lies.items():
        crowd.servers[label].answers["skills/list"] = lie
    async with AsyncExitStack() as stack:
        found = await list_many(await crowd.connect(stack))
    failures = {label: listing.error and listing.error.reference for label, listing in found.items()}
    assert failures == {
        "s0": None,
        "s1": "message-invalid",
        "s2": "page-repeats",
        "s3": "server-failed",
        "s4": "not-allowed",
        "s5": None,
    }
    assert [found[label].entries[0].name for label in ("s0", "s5")] == ["s0", "s5"]


@every_setting
async def test_a_connection_that_was_closed_says_so(server: HostileServer) -> None:
    async with server.connect() as client:
        await listed(client)
    with refused(UpstreamError, "not-connected"):
        await listed(client)


@rule("B4")
async def test_a_call_that_waits_for_another_connection_is_told_that_there_will_be_none(
    process: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block ends while a call waits to be made again."""
    pausing = anyio.Event()

    async def pause(_: float) -> None:
        pausing.set()
        await ended.wait()

    ended = anyio.Event()
    failures: list[UpstreamError] = []
    dies(process, 1)

    async def ask(client: SkillsClient) -> None:
        with pytest.raises(UpstreamError) as caught:
            await listed(client)
        failures.append(caught.value)

    async with anyio.create_task_group() as group:
        async with process.connect(dialect="extension") as client:
            monkeypatch.setattr("skillwire.client.connection.anyio.sleep", pause)
            group.start_soon(ask, client)
            with anyio.fail_after(20):
                await pausing.wait()
        ended.set()
    assert [failure.reference for failure in failures] == ["not-connected"]


@pytest.mark.slow
async def test_a_command_of_our_own_is_spoken_to(tmp_path: Any) -> None:
    """The lies above are told by fakes; this is a server of ours."""
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "SKILL.md").write_bytes(skill_md("flat"))
    command = [*skillwire_command(), "serve", str(tmp_path)]
    async with connect(command, limits=replace(SMALL, max_call_seconds=60)) as client:
        assert (await client.read_skill(await only(client))).data == skill_md("flat")
