"""Listings that never end, and directories that hold what is elsewhere: B3, L1, L3, D1, K2, K3, W3."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import EXTENSION, MIB, SMALL
from adversarial.expecting import listed, memory_below, refused
from rules import rule
from skillwire.errors import LimitError, ProtocolError, VerificationError
from skillwire.limits import DEFAULT_LIMITS
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

DIRECTORY = "resources/directory/read"
METHODS = {"skills/list": "skills", DIRECTORY: "resources"}


def new_page(method: str, **fields: Any) -> Callable[[Any], dict[str, Any]]:
    """Answers with an item that is new and of no use, and a cursor for the next one."""
    numbers = count(1)

    def answer(_: Any) -> dict[str, Any]:
        number = next(numbers)
        return {METHODS[method]: [{"uri": f"no{number}", **fields}], "nextCursor": f"{number}"}

    return answer


@asynccontextmanager
async def pager(server: HostileServer) -> AsyncIterator[Callable[[str], Awaitable[object]]]:
    """Call what it gives with a method, to page through that to its end."""
    server.capabilities["extensions"][EXTENSION] = {"directoryRead": True}
    async with server.connect(dialect="extension") as client:
        yield lambda method: listed(client) if method == "skills/list" else client.read_directory("skill://flat")


@rule("B3")
@pytest.mark.parametrize("method", METHODS, ids=["skills", "directory"])
async def test_pages_that_never_end_are_ended(server: HostileServer, method: str) -> None:
    """Every page is new and none is the last."""
    server.answers[method] = new_page(method)
    with refused(LimitError, "listing-too-long", "B3"):
        async with pager(server) as ask:
            await ask(method)
    assert server.methods() == [method] * SMALL.max_pages


@rule("B3")
async def test_a_cursor_that_comes_again_ends_the_listing(server: HostileServer) -> None:
    """A to b to a."""
    method = "skills/list"
    following, page = {None: "a", "a": "b", "b": "a"}, new_page(method)
    server.answers[method] = lambda params: {**page(params), "nextCursor": following[params.get("cursor")]}
    with refused(ProtocolError, "cursor-repeats", "B3"):
        async with pager(server) as ask:
            await ask(method)
    assert server.methods() == [method] * 3


@rule("B3")
async def test_the_pages_before_a_cursor_that_repeats_were_listed(server: HostileServer) -> None:
    """What came before is not lost."""
    server.answers["skills/list"] = {"skills": server.entries, "nextCursor": "again"}
    names: list[str] = []
    async with server.connect(dialect="extension") as client:
        with refused(ProtocolError, "cursor-repeats", "B3"):
            async for entry in client.list_skills():
                names.append(entry.name)  # noqa: PERF401 - a comprehension would lose them
    assert names == ["flat"]


@rule("B3")
async def test_what_is_within_the_bound_was_listed(server: HostileServer) -> None:
    """Also if the page that crosses it is the first."""
    names: list[str] = []
    server.add("second", {"SKILL.md": skill_md("second")})
    async with server.connect(dialect="extension", limits=replace(SMALL, max_entries=1)) as client:
        with refused(LimitError, "listing-too-long", "B3"):
            async for entry in client.list_skills():
                names.append(entry.name)  # noqa: PERF401 - a comprehension would lose them
    assert names == ["flat"]


@rule("B3")
async def test_more_items_than_the_bound_end_the_listing(server: HostileServer) -> None:
    """On one page, or over several."""
    method = "skills/list"
    numbers = count(1)

    def page(_: Any) -> dict[str, Any]:
        number = next(numbers)
        items = [{"uri": f"elsewhere://{number}/{each}"} for each in range(60)]
        return {METHODS[method]: items, "nextCursor": f"{number}"}

    server.answers[method] = page
    with refused(LimitError, "listing-too-long", "B3"):
        async with pager(server) as ask:
            await ask(method)
    assert server.methods() == [method] * 2


CURSORS = ["c" * 101, 7]
NO_LISTS = [..., "flat"]


@rule("B3", "L3")
async def test_a_cursor_that_is_no_short_text_is_refused(server: HostileServer) -> None:
    """Nothing that large is ever sent back."""
    method = "skills/list"
    async with pager(server) as ask:
        for cursor in CURSORS:
            server.answers[method] = {METHODS[method]: [], "nextCursor": cursor}
            with refused(ProtocolError, "answer-invalid", "L3"):
                await ask(method)
    assert server.methods() == [method] * len(CURSORS)


@rule("L1")
async def test_an_answer_without_a_list_is_refused(server: HostileServer) -> None:
    method = "skills/list"
    async with pager(server) as ask:
        for items in NO_LISTS:
            server.answers[method] = {} if items is ... else {METHODS[method]: items}
            with refused(ProtocolError, "answer-invalid", "L1"):
                await ask(method)


@rule("B3", "L1")
async def test_a_long_listing_is_read_in_bounded_memory(server: HostileServer) -> None:
    """Pages are let go as they are read."""
    server.answers["skills/list"] = new_page("skills/list", padding="p" * 400_000)
    limits = replace(SMALL, max_server_bytes=64 * MIB)
    async with server.connect(dialect="extension", limits=limits) as client:
        with memory_below(6 * MIB), refused(LimitError, "listing-too-long", "B3"):
            await listed(client)
    assert server.sent > 19 * 400_000


@rule("B3")
async def test_problems_are_bounded_too(server: HostileServer) -> None:
    """A server cannot fill the list of its own faults."""
    server.entries += [{"uri": "no"}] * 99
    async with server.connect(limits=replace(SMALL, max_page_size=10)) as client:
        assert len(await listed(client)) == 1
        assert len(client.problems) == 10


CHILDREN: dict[str, Any] = {
    "the folder itself": {"uri": "skill://flat"},
    "a grandchild": {"uri": "skill://flat/a/b"},
    "another skill": {"uri": "skill://other/notes.md"},
    "a longer name": {"uri": "skill://flatter"},
    "a way out": {"uri": "skill://flat/../other"},
    "a hidden way out": {"uri": "skill://flat/%2e%2e/other"},
    "a file of the machine": {"uri": "file:///etc/passwd"},
    "another scheme": {"uri": "other://flat/x"},
    "no uri": {"name": "x"},
    "a number": 7,
}


@rule("D1", "O3", "U7")
async def test_children_outside_the_directory_are_reported_and_left_out(server: HostileServer) -> None:
    server.capabilities["extensions"][EXTENSION] = {"directoryRead": True}
    child = {"uri": "skill://flat/notes.md", "name": "notes.md", "size": -1}
    server.answers[DIRECTORY] = {"resources": [child, *CHILDREN.values(), child]}
    async with server.connect() as client:
        children = await client.read_directory("skill://flat")
        assert [(child.uri, child.size) for child in children] == [("skill://flat/notes.md", None)]
        assert [problem.rule for problem in client.problems] == ["D1"] * len(CHILDREN)
        assert all(problem.reference == "child-invalid" and problem.hint for problem in client.problems)


@rule("B3", "D1")
async def test_directories_that_never_end_are_ended(server: HostileServer) -> None:
    """Each holds two more."""
    server.capabilities["extensions"][EXTENSION] = {"directoryRead": True}

    def twins(params: dict[str, Any]) -> dict[str, Any]:
        kind = {"mimeType": "inode/directory"}
        return {"resources": [{"uri": f"{params['uri']}/{name}", "name": name, **kind} for name in "ab"]}

    server.answers[DIRECTORY] = twins
    async with server.connect() as client:
        with refused(LimitError, "listing-too-long", "B3"):
            async for _ in client.catalog.walk("skill://flat"):
                pytest.fail("there is no file")
    assert server.methods().count(DIRECTORY) <= DEFAULT_LIMITS.max_resources


@rule("K2")
@pytest.mark.parametrize("settings", [{}, {"directoryRead": 1}], ids=["not-declared", "not-true"])
async def test_directories_are_read_only_where_that_is_declared(server: HostileServer, settings: Any) -> None:
    server.capabilities["extensions"][EXTENSION] = settings
    server.answers[DIRECTORY] = {"resources": []}
    async with server.connect() as client:
        assert not client.supports_directory_read
        with refused(ProtocolError, "directory-unsupported", "K2"):
            await client.read_directory("skill://flat")
    assert DIRECTORY not in server.methods()


@rule("W3", "V2")
async def test_a_directory_shows_files_without_making_them_part_of_the_skill(server: HostileServer) -> None:
    """A child that the entry does not list is not read."""
    server.capabilities["extensions"][EXTENSION] = {"directoryRead": True}
    server.answers[DIRECTORY] = {"resources": [{"uri": "skill://flat/new.md", "name": "new.md"}]}
    server.files["skill://flat/new.md"] = b"new\n"
    async with server.connect() as client:
        [entry] = await listed(client)
        [child] = await client.read_directory("skill://flat")
        with refused(VerificationError, "file-unlisted", "V2"):
            await client.read_resource(entry, child.uri)
    assert server.read_uris() == []


@rule("K3")
async def test_the_client_declares_the_extension(server: HostileServer) -> None:
    """When it connects and, in the stateless era, with every request."""
    server.add("other", {"SKILL.md": skill_md("other")})
    async with server.connect() as client:
        await listed(client)
    meta = "io.modelcontextprotocol/clientCapabilities"
    if server.era == "legacy":
        [opening] = [asked for asked in server.asked if asked.method == "initialize"]
        assert EXTENSION in opening.params["capabilities"]["extensions"]
    else:
        assert {asked.method for asked in server.asked} == {"server/discover", "skills/list"}
        assert all(EXTENSION in asked.params["_meta"][meta]["extensions"] for asked in server.asked)
