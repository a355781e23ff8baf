"""Every open page is notified of changes in this or another process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse

from desks import at_desk
from host.stage import SECONDS, rotate
from skillwire.host.approvals import ApprovalRequest
from skillwire.host.desk import question_of
from skillwire.host.state import open_store
from skillwire.skill.review import review_entry
from skillwire.store.records import LogLine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from adversarial.adversary import HostileServer
    from desks import AtDesk

pytestmark = pytest.mark.anyio


async def by_another_process(at: AtDesk, state: Path) -> None:
    store = await open_store(state)
    await store.log(LogLine("loaded", "acme", "skill://flat/SKILL.md", "model", time.time()))
    await store.close()


async def by_a_question(at: AtDesk, state: Path) -> None:
    entry = at.host.names.skills[0].entry
    store = await open_store(state)
    request = ApprovalRequest("load", "acme", entry, review_entry(entry))
    await store.put_question(question_of(request, "agent", seconds=600))
    await store.close()


async def by_the_server(at: AtDesk, state: Path) -> None:
    await at.host.relist("acme")


async def events(at: AtDesk) -> AsyncIterator[str]:
    answer = await at.desk.watcher.stream(Request({"type": "http", "method": "GET"}))
    assert isinstance(answer, StreamingResponse)
    async for piece in answer.body_iterator:
        assert isinstance(piece, str)
        yield piece


@pytest.mark.parametrize("change", [by_another_process, by_a_question, by_the_server])
async def test_a_change_is_told(
    change: Callable[[AtDesk, Path], Awaitable[None]],
    state: Path,
    server: HostileServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("skillwire.web.desk.app._POLL_SECONDS", 0.01)
    async with at_desk(state, {"acme": server}) as at, anyio.create_task_group() as group:
        group.start_soon(at.desk.watcher.run)
        stream = events(at)
        with anyio.fail_after(SECONDS):
            assert await anext(stream) == "retry: 2000\n\n"
            while await anext(stream) != "event: changed\ndata: 1\n\n":  # what there is at the beginning
                pass
            await change(at, state)
            assert await anext(stream) == "event: changed\ndata: 2\n\n"
        group.cancel_scope.cancel()


async def test_a_page_knows_how_old_it_is(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        at.desk.watcher.number = 7
        assert '<meta name="live-number" content="7">' in await at.get("/")


async def test_streams_end_with_the_desk(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        stream = events(at)
        await anext(stream)
        at.desk.watcher.end()
        with anyio.fail_after(SECONDS):
            assert [piece async for piece in stream] == []


async def test_a_stream_that_has_nothing_to_say_shows_that_it_is_alive(
    state: Path, server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillwire.web.events._KEEP_ALIVE_SECONDS", 0.001)
    async with at_desk(state, {"acme": server}) as at:
        stream = events(at)
        with anyio.fail_after(SECONDS):
            assert [await anext(stream) for _ in range(3)][2] == ": keep-alive\n\n"


async def test_a_part_of_the_page_is_asked_for_alone(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        for place in ("/?part=questions", "/?part=origins", "/?part=skills", "/waiting", "/log?part=1"):
            assert "<html" not in await at.get(place)


async def test_an_open_page_learns_that_the_skill_changed_or_was_decided_on(
    state: Path, server: HostileServer
) -> None:
    """Without anything of it being read again."""
    async with at_desk(state, {"acme": server}) as at:
        shown = (await at.form("/skill/acme/flat", "/approve/acme/flat"))["fingerprint"]
        part = f"/skill/acme/flat?part=standing&state=new&fingerprint={shown}"
        assert (await at.get(part)).strip() == ""
        await at.host.approve("flat", by="bob")
        assert "bob" in await at.get(part)
        rotate(server, "skill://flat/notes.md", b"other\n")
        await at.host.relist("acme")
        reads = list(server.read_uris())
        assert 'role="alert"' in await at.get(part)
        assert server.read_uris() == reads
