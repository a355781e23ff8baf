"""What one caller may see of a catalog; what may not be seen does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from rules import rule
from skillwire import CombinedCatalog, DirectoryCatalog, MemoryCatalog, Mount, Skill
from skillwire.catalog.visibility import VisibleCatalog
from skillwire.errors import NotFoundError
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


def skill(path: str, **files: str) -> Skill:
    return Skill(path, {"SKILL.md": skill_md(path.rpartition("/")[2]), **files})


async def paths(catalog: VisibleCatalog, limit: int = 1) -> list[str]:
    seen: list[str] = []
    cursor = None
    while True:
        page = await catalog.list_skills(cursor, limit)
        seen += [entry.path for entry in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return seen


async def test_only_what_lies_under_the_prefixes_is_seen() -> None:
    inner = MemoryCatalog([skill("a/x"), skill("a/y"), skill("ab/z"), skill("b"), skill("c/d/e")])
    catalog = VisibleCatalog(inner, ["a", "c/d"])
    assert await paths(catalog) == ["a/x", "a/y", "c/d/e"]
    assert await catalog.suggest("a") == ["a/x", "a/y"]
    for uri in ("skill://ab/z/SKILL.md", "skill://b/SKILL.md"):
        for ask in (catalog.get_skill, catalog.read_file):
            with pytest.raises(NotFoundError):
                await ask(uri)
    with pytest.raises(NotFoundError):
        await catalog.read_directory("skill://b")


@rule("S1")
async def test_the_listing_follows_what_comes_and_goes() -> None:
    inner = MemoryCatalog([skill("a/x"), skill("b")])
    catalog = VisibleCatalog(inner, ["a"])
    assert await paths(catalog) == ["a/x"]
    inner.put(skill("a/new"))
    assert await paths(catalog) == ["a/new", "a/x"]
    inner.remove("a/x")
    assert await paths(catalog) == ["a/new"]


@rule("S1")
async def test_changes_of_what_is_not_seen_are_not_told() -> None:
    inner = MemoryCatalog()
    catalog = VisibleCatalog(inner, ["a"])
    with catalog.changes() as changes, anyio.fail_after(60):
        inner.put(skill("b"))
        inner.put(skill("a/x"))
        change = await anext(changes)
        assert (change.added, change.changed, change.removed) == (
            {"skill://a/x/SKILL.md"},
            frozenset(),
            frozenset(),
        )


@rule("N1")
async def test_an_ambiguous_name_does_not_tell_who_else_has_it() -> None:
    """The candidates are not the caller's to know."""
    sources = [Mount(MemoryCatalog([skill("refunds")]), label) for label in ("team-a", "secret-team")]
    catalog = VisibleCatalog(CombinedCatalog(sources), ["refunds"])
    for ask in (catalog.get_skill, catalog.read_file):
        with pytest.raises(NotFoundError) as caught:
            await ask("skill://refunds/SKILL.md")
        assert "secret" not in str(caught.value)


@rule("S1")
async def test_changes_of_combined_sources_have_the_uris_a_caller_sees() -> None:
    inner = MemoryCatalog()
    catalog = VisibleCatalog(CombinedCatalog([Mount(inner, "x", prefix="acme")]), ["acme"])
    with catalog.changes() as changes, anyio.fail_after(60):
        inner.put(skill("refunds"))
        assert (await anext(changes)).added == {"skill://acme/refunds/SKILL.md"}


async def test_a_caller_with_no_prefix_sees_nothing() -> None:
    catalog = VisibleCatalog(MemoryCatalog([skill("a")]), [])
    assert await paths(catalog) == []
    assert await catalog.suggest("") == []


@rule("B5", "N1")
async def test_a_problem_that_names_what_may_not_be_seen_is_not_told(tmp_path: Path) -> None:
    """The path of the other one is not the caller's to know."""
    same = {"open/x/SKILL.md": skill_md("x"), "Open/x/SKILL.md": skill_md("x")}
    colliding = DirectoryCatalog(write_tree(tmp_path, same))
    contested = CombinedCatalog([Mount(MemoryCatalog([skill("open/x")]), label) for label in ("here", "secret")])
    assert {problem.skill for problem in await colliding.problems()} == {"open/x", "Open/x"}
    assert len(await contested.problems()) == 2
    for inner in (colliding, contested):
        assert await VisibleCatalog(inner, ["open"]).problems() == []
    assert len(await VisibleCatalog(colliding, ["open", "Open"]).problems()) == 2
    [told] = await VisibleCatalog(contested, ["open", "here"]).problems()
    assert "secret" not in told.message


async def test_the_other_path_of_a_problem_moves_with_the_tree(tmp_path: Path) -> None:
    same = {"open/x/SKILL.md": skill_md("x"), "Open/x/SKILL.md": skill_md("x")}
    inner = DirectoryCatalog(write_tree(tmp_path, same))
    mounted = CombinedCatalog([Mount(inner, "all", prefix="acme")])
    assert await VisibleCatalog(mounted, ["acme/open"]).problems() == []
    assert len(await VisibleCatalog(mounted, ["acme"]).problems()) == 2
