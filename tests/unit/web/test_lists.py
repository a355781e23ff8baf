"""The list by path, in pages and by folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.catalog.examination import Examiner
from skillwire.server.callers import ViewCache
from skillwire.web.catalog.lists import MAX_VIEWS, ListFilter, SkillPaths
from trees import skill_md

if TYPE_CHECKING:
    from skillwire.web.theme import ListPage

pytestmark = pytest.mark.anyio


def skill(path: str) -> Skill:
    return Skill(path, {"SKILL.md": skill_md(path.rpartition("/")[2])})


def names(part: ListPage[str]) -> list[str]:
    return [uri.removeprefix("skill://").removesuffix("/SKILL.md") for uri in part.rows]


async def folders(paths: SkillPaths, under: str) -> dict[str, int]:
    return (await paths.listing()).folders.get(under, {})


async def shown(paths: SkillPaths, under: str = "", page: int = 1) -> list[str]:
    return names(await paths.page(ListFilter(under, page=page), Examiner()))


async def test_pages_follow_each_other() -> None:
    paths = SkillPaths(MemoryCatalog([skill(f"s-{number:03}") for number in range(250)]))
    last = await paths.page(ListFilter(page=3), Examiner())
    assert (last.first, last.last, last.total, last.pages) == (201, 250, 250, 3)
    assert [name for page in (1, 2, 3) for name in await shown(paths, page=page)] == [
        f"s-{n:03}" for n in range(250)
    ]
    assert await shown(paths, page=4) == []


async def test_a_folder_has_what_is_below_it_and_not_what_only_begins_so() -> None:
    paths = SkillPaths(MemoryCatalog([skill(path) for path in ("a/x", "a/b/y", "a/b/z", "a-b/q", "ab/r", "flat")]))
    assert await shown(paths, "a") == ["a/b/y", "a/b/z", "a/x"]
    assert await shown(paths, "a/b") == ["a/b/y", "a/b/z"]
    assert await shown(paths, "nothing") == []
    assert await folders(paths, "") == {"a": 3, "a-b": 1, "ab": 1}
    assert await folders(paths, "a") == {"b": 2}
    assert await folders(paths, "a/b") == {}


@rule("S1")
async def test_what_comes_and_goes_is_seen() -> None:
    catalog = MemoryCatalog([skill("one")])
    paths = SkillPaths(catalog)
    assert await shown(paths) == ["one"]
    catalog.put(skill("two"))
    assert await shown(paths) == ["one", "two"]
    catalog.remove("one")
    assert await shown(paths) == ["two"]


async def test_each_view_is_remembered_and_the_oldest_forgotten() -> None:
    views, every = [MemoryCatalog([skill("one")]) for _ in range(20)], ViewCache(SkillPaths, MAX_VIEWS)
    first = every.of(views[0])
    assert every.of(views[0]) is first
    for view in views:
        every.of(view)
    assert every.of(views[0]) is not first
