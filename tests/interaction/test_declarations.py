"""What a developer declares with ``Skills``: several sources, problems, and what each caller sees."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer

from http_server import serving_app
from interaction.conftest import Wire
from interaction.test_changes import PATIENCE, Heard
from rules import rule
from skillwire import MemoryCatalog, Skill, Skills, connect
from skillwire.errors import FormatError, NotFoundError, ProtocolError, UpstreamError
from skillwire.server.access import new_token
from skillwire.server.skills import build_server
from skillwire.types import Access
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.server.callers import Caller

pytestmark = pytest.mark.anyio


def skill(path: str) -> Skill:
    return Skill(path, {"SKILL.md": skill_md(path.rpartition("/")[2])})


async def listed(skills: Skills) -> list[str]:
    async with connect(skills.attach(MCPServer("test"))) as client:
        return [entry.path async for entry in client.list_skills()]


async def test_several_sources_are_one_declaration(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_tree(tmp_path / name, {f"{name}-skill/SKILL.md": skill_md(f"{name}-skill")})
    skills = Skills(tmp_path / "a", tmp_path / "b", MemoryCatalog([skill("c-skill")]))
    assert await listed(skills) == ["a-skill", "b-skill", "c-skill"]


@rule("F7")
async def test_problems_are_logged_as_warnings_or_given_to_a_function(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_tree(tmp_path, {"bad/SKILL.md": b"none", "good/SKILL.md": skill_md("good")})
    with caplog.at_level(logging.WARNING, "skillwire.skills"):
        assert await listed(Skills(tmp_path)) == ["good"]
    assert [record.message for record in caplog.records if "frontmatter-missing" in record.message]
    found: list[str] = []
    await listed(Skills(tmp_path, on_problem=lambda problem: found.append(problem.reference)))
    assert found == ["frontmatter-missing"]


async def test_strict_raises_all_problems_at_once(tmp_path: Path) -> None:
    write_tree(tmp_path, {"bad/SKILL.md": b"none", "worse/SKILL.md": skill_md("other")})
    with pytest.raises(FormatError) as caught:
        Skills(tmp_path, strict=True)
    assert "2 problems" in caught.value.message
    assert "frontmatter-missing" in caught.value.message
    assert "name-mismatch" in caught.value.message
    Skills(write_tree(tmp_path / "clean", {"good/SKILL.md": skill_md("good")}), strict=True)


async def test_two_functions_for_one_path_are_an_error() -> None:
    skills = Skills()
    skills.skill("refunds")(lambda: skill_md("refunds").decode())
    with pytest.raises(FormatError, match="two functions"):
        skills.skill("refunds")(lambda: skill_md("refunds").decode())


async def test_strict_raises_the_problems_of_all_folders(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_tree(tmp_path / name, {f"bad-{name}/SKILL.md": b"none"})
    with pytest.raises(FormatError) as caught:
        Skills(tmp_path / "a", tmp_path / "b", strict=True)
    assert "bad-a" in caught.value.message
    assert "bad-b" in caught.value.message


@pytest.mark.parametrize("kind", ["function", "collision", "catalog"])
async def test_strict_refuses_to_start_with_other_problems(kind: str, tmp_path: Path) -> None:
    """Functions, catalogs and collisions are known when the server starts."""
    write_tree(tmp_path, {"refunds/SKILL.md": skill_md("refunds")})
    bad = MemoryCatalog.from_tree({"bad/SKILL.md": b"none"})
    skills = Skills(tmp_path, bad, strict=True) if kind == "catalog" else Skills(tmp_path, strict=True)
    if kind != "catalog":
        path = "refunds" if kind == "collision" else "broken"
        skills.skill(path)(lambda: skill_md("refunds").decode())
    server = build_server(skills)
    with pytest.raises(FormatError) as caught:
        async with server.lifespan(server):
            pass
    assert caught.value.reference == "skills-have-problems"


async def test_a_problem_that_appears_later_is_reported_once() -> None:
    found: list[str] = []
    skills = Skills(MemoryCatalog([skill("good")]), on_problem=lambda problem: found.append(problem.reference))
    async with connect(skills.attach(MCPServer("test"))):
        skills.skill("bad")(lambda: "no frontmatter")
        with anyio.fail_after(PATIENCE):
            while not found:
                await anyio.lowlevel.checkpoint()
        skills.skill("better")(lambda: skill_md("better").decode())
        with anyio.fail_after(PATIENCE):
            while len(await skills.catalog.suggest("")) < 2:
                await anyio.lowlevel.checkpoint()
    assert found == ["frontmatter-missing"]


@rule("S1")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_skill_that_is_declared_or_changed_at_run_time_is_notified(tmp_path: Path, mode: str) -> None:
    skills = Skills(write_tree(tmp_path, {"a/SKILL.md": skill_md("a")}))
    texts, heard = iter([skill_md("b"), skill_md("b", "Changed.")]), Heard()
    options = {"message_handler": heard.on_message} if mode == "legacy" else {}
    client, uri = Client(build_server(skills), mode=mode, **options), "skill://b/SKILL.md"
    async with client, AsyncExitStack() as stack, anyio.create_task_group() as group:
        wire = Wire(client, "modern")
        if mode == "auto":
            listening = client.listen(resources_list_changed=True)
            group.start_soon(heard.listen, await stack.enter_async_context(listening))
        skills.skill("b")(lambda: next(texts).decode())
        await heard.wait_for("notifications/resources/list_changed")
        assert [entry["uri"] for entry in (await Wire(client, "modern").call("skills/list"))["skills"]][1:] == [
            uri
        ]
        await skills.regenerate("b")
        await heard.wait_for("notifications/resources/list_changed")
        assert (await wire.call("skills/get", uri=uri))["skill"]["frontmatter"]["description"] == "Changed."
        group.cancel_scope.cancel()
    heard.close()


@rule("N1")
async def test_a_function_and_a_folder_at_one_path_are_reported(tmp_path: Path) -> None:
    found: list[str] = []
    write_tree(tmp_path, {"refunds/SKILL.md": skill_md("refunds")})
    skills = Skills(tmp_path, on_problem=lambda problem: found.append(problem.reference))
    skills.skill("refunds")(lambda: skill_md("refunds").decode())
    await listed(skills)
    assert set(found) == {"catalog-collision"}


@pytest.mark.parametrize("kind", ["prefixes", "function"])
async def test_a_caller_sees_what_the_function_returns(kind: str) -> None:
    """In a listing, by its URI, and by reading. The path below a visible one is visible."""
    asked: list[Caller] = []

    def visible(caller: Caller) -> object:
        asked.append(caller)
        return ["acme"] if kind == "prefixes" else lambda path: path == "acme"

    catalog = MemoryCatalog([skill("acme/refunds"), skill("other/secret")])
    skills = Skills(catalog, visible=visible)  # pyright: ignore[reportArgumentType]
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
    catalog, count = MemoryCatalog([skill("acme/refunds"), skill("other/secret")]), 0

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


async def test_a_caller_sees_what_both_the_access_file_and_the_function_allow() -> None:
    subject, (token, digest) = "ada", new_token()
    access = Access({digest: subject}, see={subject: ("acme", "other")})
    catalog = MemoryCatalog([skill("acme/refunds"), skill("other/secret"), skill("third")])
    skills = Skills(catalog, visible=lambda _: ["acme", "third"])
    async with serving_app(skills.asgi(access=access)) as address:
        headers = {"Authorization": f"Bearer {token}"}
        async with connect(f"{address}/mcp", headers=headers) as client:
            assert [entry.path async for entry in client.list_skills()] == ["acme/refunds"]


async def test_text_instead_of_prefixes_is_an_error_and_reveals_nothing() -> None:
    skills = Skills(MemoryCatalog([skill("acme/refunds")]), visible=lambda _: "acme")
    async with connect(skills.attach(MCPServer("test"))) as client:
        with pytest.raises(UpstreamError, match="Internal server error"):
            [entry async for entry in client.list_skills()]
