"""What ``Skills(visible=…)`` shows each caller, and that nothing is shown if the function is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer

from http_server import serving_app
from interaction.test_declarations import listed, skill
from skillwire import MemoryCatalog, Skills, catalog_page, connect
from skillwire.errors import NotFoundError, ProtocolError, UpstreamError
from skillwire.server.access import new_token
from skillwire.server.skills import build_server
from skillwire.types import Access
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from skillwire import Caller

pytestmark = pytest.mark.anyio


def acme_and_other() -> MemoryCatalog:
    return MemoryCatalog([skill("acme/refunds"), skill("other/secret")])


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", ["prefixes", "function"])
async def test_a_caller_sees_what_the_function_returns(kind: str, is_async: bool) -> None:
    """In a listing, by its URI, and by reading. The path below a visible one is visible."""
    asked: list[Caller] = []

    def visible(caller: Caller) -> object:
        asked.append(caller)
        return ["acme"] if kind == "prefixes" else lambda path: path == "acme"

    async def visible_async(caller: Caller) -> object:
        return visible(caller)

    function: Any = visible_async if is_async else visible
    skills = Skills(acme_and_other(), visible=function)
    async with connect(skills.attach(MCPServer("test"))) as client:
        assert [entry.path async for entry in client.list_skills()] == ["acme/refunds"]
        with pytest.raises((NotFoundError, ProtocolError)):
            await client.get_skill("skill://other/secret/SKILL.md")
        with pytest.raises((NotFoundError, ProtocolError)):
            await client.read_unverified("skill://other/secret/SKILL.md")
    assert asked[0].subject is None
    assert asked[-1].request is not None
    assert asked[-1].request.method


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("kind", ["the same prefixes", "other prefixes", "function"])
async def test_requests_of_many_callers_leave_no_streams_open(
    kind: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing, prompts, tools, search, and the index, also if each request has other prefixes."""
    for name in ("callers._MOST_VIEWS", "dialect._MAX_NAMES", "dialect._MAX_INDEXES"):
        monkeypatch.setattr(f"skillwire.server.{name}", 2)
    catalog, count = acme_and_other(), 0

    def visible(caller: Caller) -> object:
        nonlocal count
        count += 1
        if kind == "function":
            return lambda path: path == "acme"
        return ["acme", f"user-{count}"] if kind == "other prefixes" else ["acme"]

    skills = Skills(catalog, visible=visible)  # pyright: ignore[reportArgumentType]
    async with Client(build_server(skills), mode=mode) as client:
        for number in range(12):
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["refunds"]
            for tool, arguments in (
                ("list_skills", {}),
                ("search_skills", {"query": "refunds"}),
                ("load_skill", {"skill": "refunds"}),
            ):
                assert not (await client.call_tool(tool, arguments)).is_error
            await client.read_resource("skill://index.json")
            if number == 0:
                skills.skill(f"acme/new-{number}")(lambda: skill_md("other").decode())
        # Two views, names and indexes that are kept, and three of the server itself.
        assert len(catalog._feed._streams) <= 2 + 2 + 2 + 3
    assert len(catalog._feed._streams) <= 2 + 1


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_caller_sees_what_both_the_access_file_and_the_function_allow(is_async: bool) -> None:
    subject, (token, digest) = "ada", new_token()
    access = Access({digest: subject}, see={subject: ("acme", "other")})
    catalog = MemoryCatalog([skill("acme/refunds"), skill("other/secret"), skill("third")])

    async def visible(caller: Caller) -> list[str]:
        return ["acme", "third"]

    skills = Skills(catalog, visible=visible if is_async else lambda _: ["acme", "third"])
    async with serving_app(skills.asgi(access=access)) as address:
        headers = {"Authorization": f"Bearer {token}"}
        async with connect(f"{address}/mcp", headers=headers) as client:
            assert [entry.path async for entry in client.list_skills()] == ["acme/refunds"]


async def test_a_coroutine_function_decides_for_the_page_and_for_every_dialect() -> None:
    async def visible(caller: Caller) -> list[str]:
        return ["acme"]

    async with serving_app(Skills(acme_and_other(), visible=visible).asgi(page=catalog_page)) as address:
        for path in ("/mcp", "/mcp/sep-2076", "/mcp/native"):
            async with connect(address + path) as client:
                assert [entry.name for entry in (await client.list_all()).entries] == ["refunds"]
        async with httpx2.AsyncClient() as web:
            page = (await web.get(f"{address}/")).text
            hidden = (await web.get(f"{address}/skill/other/secret")).status_code
    assert "refunds" in page
    assert "secret" not in page
    assert hidden == 404


async def asks_a_database(_: str) -> bool:
    return True


class Pending:
    def __await__(self) -> Generator[None, None, bool]:
        yield
        return True


@pytest.mark.parametrize(
    "visible",
    [
        lambda _: "acme",
        lambda _: None,
        lambda _: True,
        lambda _: ["acme/"],
        lambda _: ["skill://acme"],
        lambda: ["acme"],
        lambda _: 1 / 0,
        lambda _: asks_a_database,
        lambda _: lambda _: Pending(),
    ],
    ids=["text", "none", "bool", "slash", "uri", "no-parameter", "raises", "coroutine-function", "awaitable"],
)
async def test_a_wrong_function_reveals_nothing(visible: Callable[..., Any]) -> None:
    """An awaitable would count as true. The caller learns only that the server failed; the log has the reason."""
    async with connect(Skills(acme_and_other(), visible=visible).attach(MCPServer("test"))) as client:
        with pytest.raises(UpstreamError, match="Internal server error"):
            await client.list_all()


def test_something_that_is_not_a_function_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="give a function"):
        Skills(acme_and_other(), visible=["acme"])  # pyright: ignore[reportArgumentType]


async def test_nothing_is_visible_without_prefixes() -> None:
    assert await listed(Skills(acme_and_other(), visible=lambda _: [])) == []
