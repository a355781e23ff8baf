"""What is particular to skills in memory and in packages."""

from __future__ import annotations

import anyio
import pytest
from anyio import to_thread

from rules import rule
from skillwire import MemoryCatalog, Skill, SkillMeta
from skillwire.errors import FormatError, NotFoundError
from skillwire.lowlevel import package_catalog
from trees import skill_md

pytestmark = pytest.mark.anyio


@rule("F7")
async def test_a_skill_that_breaks_a_rule_is_refused_and_nothing_changes() -> None:
    """In code, the author is there to hear it."""
    catalog = MemoryCatalog([Skill("refunds", {"SKILL.md": skill_md("refunds")})])
    for files in ({"SKILL.md": skill_md("b")}, {"SKILL.md": b"none"}, {"README.md": b""}, {}):
        with pytest.raises(FormatError, match="refunds"):
            catalog.put(Skill("refunds", files))
    assert (await catalog.get_skill("skill://refunds/SKILL.md")).name == "refunds"


@rule("F7")
async def test_one_bad_skill_of_the_constructor_does_not_affect_the_others() -> None:
    good = Skill("refunds", {"SKILL.md": skill_md("refunds")})
    catalog = MemoryCatalog([Skill("a", {"SKILL.md": b"none"}), good])
    assert [entry.name async for entry in catalog.entries()] == ["refunds"]
    assert [problem.reference for problem in await catalog.problems()] == ["frontmatter-missing"]
    catalog.put(Skill("b", {"SKILL.md": skill_md("b")}))
    assert [entry.name async for entry in catalog.entries()] == ["b", "refunds"]


@pytest.mark.parametrize("bad", [Skill("../bad", {"SKILL.md": b""}), Skill("bad", {"../x": b"", "SKILL.md": b""})])
async def test_a_path_that_no_skill_can_have_is_a_problem_of_that_skill(bad: Skill) -> None:
    catalog = MemoryCatalog([bad, Skill("good", {"SKILL.md": skill_md("good")})])
    assert [entry.path async for entry in catalog.entries()] == ["good"]
    assert [(each.reference, each.skill) for each in await catalog.problems()] == [("file-name-invalid", bad.path)]


async def test_a_skill_without_a_skill_md_is_a_problem() -> None:
    catalog = MemoryCatalog([Skill("acme/notes", {"a.md": "x"}), Skill("good", {"SKILL.md": skill_md("good")})])
    assert [entry.path async for entry in catalog.entries()] == ["good"]
    (problem,) = await catalog.problems()
    assert (problem.reference, problem.skill) == ("skill-file-missing", "acme/notes")


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_skills_can_be_put_from_many_threads(anyio_backend: str) -> None:
    """None is lost, and a stream in an event loop is woken and sees each of them."""
    catalog, names = MemoryCatalog(), {f"skill-{number}" for number in range(24)}
    seen: set[str] = set()

    def put(name: str) -> None:
        catalog.put(Skill(name, {"SKILL.md": skill_md(name)}))

    with catalog.changes() as changes, anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(to_thread.run_sync, put, name)
            async for change in changes:
                seen |= change.added
                if len(seen) == len(names):
                    break
    assert {entry.name async for entry in catalog.entries()} == names


@rule("U7")
async def test_an_unsafe_file_name_is_refused() -> None:
    with pytest.raises(FormatError):
        MemoryCatalog().put(Skill("a", {"SKILL.md": skill_md("a"), "../x": b""}))


@rule("E4")
async def test_putting_a_nested_skill_changes_the_enclosing_entry() -> None:
    catalog = MemoryCatalog([Skill("outer", {"SKILL.md": skill_md("outer")})])
    catalog.put(Skill("outer/inner", {"SKILL.md": skill_md("inner")}))
    outer = await catalog.get_skill("skill://outer/SKILL.md")
    assert [file.uri for file in outer.files] == ["skill://outer/SKILL.md", "skill://outer/inner/SKILL.md"]
    catalog.remove("outer/inner")
    assert len((await catalog.get_skill("skill://outer/SKILL.md")).files) == 1


@rule("L2", "G1")
async def test_an_unlisted_skill_answers_and_is_not_listed() -> None:
    catalog = MemoryCatalog([Skill("a", {"SKILL.md": skill_md("a")}, SkillMeta(listed=False))])
    assert [entry async for entry in catalog.entries()] == []
    assert (await catalog.get_skill("skill://a/SKILL.md")).name == "a"
    catalog.put(Skill("a", {"SKILL.md": skill_md("a")}))
    assert [entry.path async for entry in catalog.entries()] == ["a"]


@rule("U5")
async def test_another_scheme_carries_skills_too() -> None:
    catalog = MemoryCatalog([Skill("owner/a", {"SKILL.md": skill_md("a")})], scheme="github")
    entry = await catalog.get_skill("github://owner/a/SKILL.md")
    assert (await catalog.read_file(entry.uri)).data == skill_md("a")
    with pytest.raises(NotFoundError):
        await catalog.get_skill("skill://owner/a/SKILL.md")


@pytest.mark.parametrize(
    ("package", "folder"),
    [("no_such_package", "skills"), ("skillwire", "no-such-folder")],
    ids=["no-package", "no-folder"],
)
def test_a_package_without_skills_is_refused(package: str, folder: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        package_catalog(package, folder)
    assert caught.value.hint
