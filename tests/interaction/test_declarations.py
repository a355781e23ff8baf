"""What a developer declares with ``Skills``: several sources, problems, and what each caller sees."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from mcp.server.mcpserver import MCPServer

from rules import rule
from skillwire import (
    FormatError,
    MemoryCatalog,
    NotFoundError,
    ProtocolError,
    Skill,
    Skills,
    UpstreamError,
    connect,
)
from skillwire.server import callers
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


@pytest.mark.parametrize("kind", ["prefixes", "function"])
async def test_requests_of_many_callers_leave_no_streams_open(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if each request has other prefixes."""
    monkeypatch.setattr(callers, "_MOST_VIEWS", 4)
    catalog, count = MemoryCatalog([skill("acme/refunds")]), 0

    def visible(caller: Caller) -> object:
        nonlocal count
        count += 1
        return ["acme", f"user-{count}"] if kind == "prefixes" else lambda path: path == "acme"

    skills = Skills(catalog, visible=visible)  # pyright: ignore[reportArgumentType]
    async with connect(skills.attach(MCPServer("test"))) as client:
        for _ in range(20):
            assert [entry.path async for entry in client.list_skills()] == ["acme/refunds"]
        streams = len(catalog._feed._streams)
    assert streams <= 4 + 3  # the views that are kept, and those of the server itself


async def test_text_instead_of_prefixes_is_an_error_and_reveals_nothing() -> None:
    skills = Skills(MemoryCatalog([skill("acme/refunds")]), visible=lambda _: "acme")
    async with connect(skills.attach(MCPServer("test"))) as client:
        with pytest.raises(UpstreamError, match="Internal server error"):
            [entry async for entry in client.list_skills()]
