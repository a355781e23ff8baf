"""What a developer declares with ``Skills``: several sources, problems, and what each caller sees."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer

from interaction.conftest import Wire
from interaction.test_changes import PATIENCE, Heard
from rules import rule
from skillwire import MemoryCatalog, Skill, Skills, connect
from skillwire.errors import FormatError, NotFoundError
from skillwire.server.skills import build_server
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path


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


def test_a_source_of_the_wrong_kind_is_a_type_error() -> None:
    for wrong in (3, ["a", "b"], None):
        with pytest.raises(TypeError, match="give folders, archives and catalogs"):
            Skills(wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("nowhere", "Path(__file__).parent / 'nowhere'"),
        ("https://example.com/mcp", "connect(url)"),
        ("notes.txt", "the folder around it"),
    ],
)
def test_a_source_that_is_not_a_folder_has_a_hint(
    source: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(NotFoundError) as caught:
        Skills(source)
    assert caught.value.reference == "folder-unknown"
    assert hint in caught.value.hint


async def test_a_folder_without_skills_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Often it is the wrong folder."""
    with caplog.at_level(logging.WARNING, "skillwire.skills"):
        async with connect(Skills(tmp_path).attach(MCPServer("test"))):
            with anyio.fail_after(PATIENCE):
                while not caplog.records:
                    await anyio.lowlevel.checkpoint()
    assert [str(tmp_path) in record.message for record in caplog.records] == [True]


def test_a_declaration_without_a_path_or_with_parameters_is_refused_at_once() -> None:
    skills = Skills()
    with pytest.raises(TypeError, match="write the path"):
        skills.skill(lambda: "")  # pyright: ignore[reportArgumentType]
    with pytest.raises(FormatError) as caught:
        skills.skill("refunds")(lambda order: "")  # pyright: ignore[reportArgumentType, reportUnknownLambdaType]
    assert caught.value.reference == "generator-parameters"
    assert caught.value.hint


@pytest.mark.parametrize("made", [None, 3, b"---", {"notes.md": "x"}, {"SKILL.md": 3}, lambda: "x"])
async def test_a_function_that_returns_something_else_is_a_problem_with_a_hint(made: object) -> None:
    skills = Skills()
    skills.skill("refunds")(lambda: made)  # pyright: ignore[reportArgumentType]
    (problem,) = await skills.catalog.problems()
    assert problem.reference == "generator-failed"
    assert "log" not in problem.hint
    assert await listed(skills) == []
