"""The list by path, in pages and by folder."""

from __future__ import annotations

import pytest

from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.server.callers import ViewCache
from skillwire.web.catalog.lists import MAX_VIEWS, PathPage, Paths
from trees import skill_md

pytestmark = pytest.mark.anyio


def skill(path: str) -> Skill:
    return Skill(path, {"SKILL.md": skill_md(path.rpartition("/")[2])})


def names(part: PathPage) -> list[str]:
    return [uri.removeprefix("skill://").removesuffix("/SKILL.md") for uri in part.uris]


async def test_parts_follow_each_other_and_know_their_neighbours() -> None:
    paths = Paths(MemoryCatalog([skill(f"s-{number:02}") for number in range(25)]))
    first = await paths.page("", "", 10)
    assert (first.first, first.last, first.total, first.before, first.after) == (1, 10, 25, None, "s-09")
    second = await paths.page("", "s-09", 10)
    assert (names(second)[0], second.before, second.after) == ("s-10", "", "s-19")
    third = await paths.page("", "s-19", 10)
    assert (names(third), third.before, third.after) == ([f"s-{n}" for n in range(20, 25)], "s-09", None)
    assert names(await paths.page("", "zzz", 10)) == []


async def test_a_folder_has_what_is_below_it_and_not_what_only_begins_so() -> None:
    paths = Paths(MemoryCatalog([skill(path) for path in ("a/x", "a/b/y", "a/b/z", "a-b/q", "ab/r", "flat")]))
    assert names(await paths.page("a", "", 10)) == ["a/b/y", "a/b/z", "a/x"]
    assert names(await paths.page("a/b", "", 10)) == ["a/b/y", "a/b/z"]
    assert names(await paths.page("nothing", "", 10)) == []
    assert await paths.folders("") == {"a": 3, "a-b": 1, "ab": 1}
    assert await paths.folders("a") == {"b": 2}
    assert await paths.folders("a/b") == {}


@rule("S1")
async def test_what_comes_and_goes_is_seen() -> None:
    catalog = MemoryCatalog([skill("one")])
    paths = Paths(catalog)
    assert names(await paths.page("", "", 10)) == ["one"]
    catalog.put(skill("two"))
    assert names(await paths.page("", "", 10)) == ["one", "two"]
    catalog.remove("one")
    assert names(await paths.page("", "", 10)) == ["two"]


async def test_each_view_is_remembered_and_the_oldest_forgotten() -> None:
    views, every = [MemoryCatalog([skill("one")]) for _ in range(20)], ViewCache(Paths, MAX_VIEWS)
    first = every.of(views[0])
    assert every.of(views[0]) is first
    for view in views:
        every.of(view)
    assert every.of(views[0]) is not first
