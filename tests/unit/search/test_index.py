"""Searching a catalog: what is found, by whom, and after which changes."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from rules import rule
from skillwire import CombinedCatalog, DirectoryCatalog, MemoryCatalog, Mount, Skill, SkillMeta
from skillwire.catalog.visibility import VisibleCatalog
from skillwire.errors import StoreError, UpstreamError
from skillwire.limits import Limits
from skillwire.lowlevel import GeneratedCatalog
from skillwire.search import fts5
from skillwire.search.index import SearchIndex
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from skillwire.catalog.contract import Catalog, SkillFile

    Searching = Callable[..., SearchIndex]

pytestmark = pytest.mark.anyio


@pytest.fixture
async def searching() -> AsyncIterator[Searching]:
    made: list[SearchIndex] = []

    def make(catalog: Catalog, **options: Any) -> SearchIndex:
        made.append(SearchIndex(catalog, **options))
        return made[-1]

    yield make
    for index in made:
        index.close()


def skill(path: str, description: str = "Does one thing.", body: str = "Do it.", **meta: Any) -> Skill:
    name = path.rpartition("/")[2]
    return Skill(path, {"SKILL.md": skill_md(name, f'"{description}"', body)}, SkillMeta(**meta))


OFFICE = [
    skill("pdf-form-filling", "Completes documents.", "Open the file and type into each field."),
    skill("refunds", "Use when a customer asks for money back.", "Check the invoice. Then pay."),
    skill("acme/release", "Publishes a version.", "Tag it. The deployment follows; watch GitHub."),
    skill("translation", "Übersetzt Texte, z. B. Verträge.", "客户想要退款的时候，先看发票。"),
]


async def names(index: SearchIndex, query: str, *more: Any) -> list[str]:
    return [hit.name for hit in await index.search(query, *more)]


REQUESTS = {
    "my customer wants their money back, how do I do that?": "refunds",
    "fill a pdf form": "pdf-form-filling",
    "PdfFormFilling": "pdf-form-filling",
    "publishing new versions": "release",
    "comple": "pdf-form-filling",
    "github": "release",
    "invoices": "refunds",
    "vertrage ubersetzen": "translation",
    "退款怎么办": "translation",
}


async def test_a_request_finds_its_skill(searching: Searching) -> None:
    """In sentences, other forms, other spellings, unfinished words and other scripts."""
    index = searching(MemoryCatalog(OFFICE))
    assert {request: (await names(index, request))[0] for request in REQUESTS} == REQUESTS


async def test_an_unfinished_word_is_completed_from_names_and_descriptions(searching: Searching) -> None:
    index = searching(
        MemoryCatalog([skill("deployment", "Ships it.", "Publication."), skill("depot", "Stores it.")])
    )
    assert [await names(index, "deployment"[:length]) for length in (7, 8, 9)] == [["deployment"]] * 3
    assert sorted(await names(index, "dep")) == ["deployment", "depot"]
    assert await names(index, "dep ") == []  # finished, and no word
    assert await names(index, "publicatio") == []  # in a body only


async def test_a_hit_has_its_skill_and_the_text_that_matched(searching: Searching) -> None:
    [hit] = await searching(MemoryCatalog(OFFICE)).search("deployments")
    assert (hit.uri, hit.name, hit.description) == (
        "skill://acme/release/SKILL.md",
        "release",
        "Publishes a version.",
    )
    assert hit.snippet == "Tag it. The deployment follows; watch GitHub."
    assert hit.score > 0


async def test_scores_fall_and_the_limit_holds(searching: Searching) -> None:
    index = searching(MemoryCatalog([skill(f"s{n}", "pdf " * n, "x") for n in range(1, 30)]))
    hits = await index.search("pdf", 20)
    assert len(hits) == 20
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert await index.search("pdf", 0) == []


async def test_a_name_counts_more_than_a_description_and_that_more_than_a_body(searching: Searching) -> None:
    texts = [("zebra", "Other words.", "x"), ("b", "About a zebra there.", "x"), ("c", "Other words.", "A zebra.")]
    others = [skill(f"other-{n}") for n in range(10)]
    index = searching(MemoryCatalog([*others, *(skill(*text) for text in texts)]))
    assert await names(index, "zebra walks") == ["zebra", "b", "c"]


@rule("L2")
async def test_an_unlisted_skill_is_never_found(searching: Searching) -> None:
    catalog = MemoryCatalog([skill("shown", "About pdf."), skill("hidden", "About pdf.", listed=False)])
    index = searching(catalog)
    assert await names(index, "pdf") == ["shown"]
    catalog.put(skill("hidden", "Still about pdf.", listed=False))
    assert await names(index, "pdf") == ["shown"]
    catalog.put(skill("shown", "Also about pdf.", listed=False))
    assert await names(index, "pdf") == []


@rule("S1")
async def test_added_changed_and_removed_skills_are_followed(searching: Searching) -> None:
    catalog = MemoryCatalog(OFFICE)
    index = searching(catalog)
    assert await names(index, "zebra") == []
    catalog.put(skill("new", "About a zebra."))
    assert await names(index, "zebra") == ["new"]
    catalog.put(skill("new", "About a lion."))
    assert await names(index, "zebra") == []
    assert await names(index, "lion") == ["new"]
    catalog.remove("new")
    assert await names(index, "lion") == []
    catalog.put(skill("brief", "About a lion."))
    catalog.remove("brief")
    assert await names(index, "lion") == []


@rule("S1")
async def test_many_changes_at_once_are_followed(searching: Searching) -> None:
    catalog = MemoryCatalog(OFFICE)
    index = searching(catalog)
    await index.search("x")
    for number in range(40):
        catalog.put(skill(f"herd-{number:02}", "About a zebra."))
    for number in range(0, 40, 2):
        catalog.remove(f"herd-{number:02}")
    found = await names(index, "zebra", 100)
    assert sorted(found) == [f"herd-{number:02}" for number in range(1, 40, 2)]


class Counting(MemoryCatalog):
    """Counts its reads and can fail them or do something first."""

    def __init__(self, skills: list[Skill]) -> None:
        super().__init__(skills)
        self.read: list[str] = []
        self.before: Callable[[], None] = lambda: None
        self.fails = False

    async def read_file(self, uri: str) -> SkillFile:
        self.read.append(uri)
        self.before()
        if self.fails:
            raise UpstreamError("gone", "not now")
        return await super().read_file(uri)


async def test_only_changed_skills_are_read_again(searching: Searching) -> None:
    catalog = Counting(OFFICE)
    index = searching(catalog)
    await index.search("pdf")
    assert len(catalog.read) == len(OFFICE)
    await index.search("pdf")
    catalog.put(skill("refunds", "Now about a zebra."))
    await index.search("pdf")
    assert catalog.read[len(OFFICE) :] == ["skill://refunds/SKILL.md"]


async def test_concurrent_first_searches_build_the_index_once(searching: Searching) -> None:
    catalog = Counting(OFFICE)
    index = searching(catalog)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(index.search, "pdf")
    assert len(catalog.read) == len(OFFICE)


@rule("S1")
async def test_a_change_during_the_build_is_not_lost(searching: Searching) -> None:
    catalog = Counting(OFFICE)
    late = iter([skill("refunds", "About a zebra.")])
    catalog.before = lambda: [catalog.put(one) for one in late] and None
    assert await names(searching(catalog), "zebra") == ["refunds"]


async def test_a_cancelled_build_starts_again(searching: Searching) -> None:
    catalog = Counting(OFFICE)
    index = searching(catalog)
    with anyio.CancelScope() as scope:
        catalog.before = scope.cancel
        await index.search("pdf")
    assert scope.cancelled_caught
    catalog.before = lambda: None
    assert await names(index, "pdf") == ["pdf-form-filling"]


async def test_a_skill_that_cannot_be_read_is_found_by_its_entry(searching: Searching) -> None:
    catalog = Counting(OFFICE)
    catalog.fails = True
    index = searching(catalog)
    assert await names(index, "money") == ["refunds"]
    assert await names(index, "invoice") == []


@rule("V5")
async def test_without_bodies_nothing_is_read(searching: Searching) -> None:
    catalog = Counting(OFFICE)
    index = searching(catalog, bodies=False)
    assert await names(index, "money") == ["refunds"]
    assert await names(index, "invoice") == []
    assert catalog.read == []


@rule("V7")
async def test_the_function_of_a_dynamic_skill_is_not_called_to_search(searching: Searching) -> None:
    """What it would say now is not what it will say."""
    catalog, calls = GeneratedCatalog(), list[str]()

    @catalog.skill("weather", dynamic=True)
    def weather() -> dict[str, bytes]:
        calls.append("called")
        return {"SKILL.md": skill_md("weather", "Tells the weather.", "Sunny.")}

    index = searching(catalog)
    assert await names(index, "weather") == ["weather"]
    assert await names(index, "sunny") == []
    assert calls == ["called"]  # to list it


@rule("S1")
async def test_a_folder_is_searched_as_it_is_now(searching: Searching, tmp_path: Path) -> None:
    catalog = DirectoryCatalog(write_tree(tmp_path, {"refunds/SKILL.md": skill_md("refunds", body="Invoice.")}))
    index = searching(catalog)
    assert await names(index, "invoice") == ["refunds"]
    write_tree(tmp_path, {"refunds/SKILL.md": skill_md("refunds", body="Zebra.")})
    await catalog.refresh()
    assert await names(index, "invoice") == []
    assert await names(index, "zebra") == ["refunds"]


@rule("S1", "N1")
async def test_a_combined_catalog_is_followed_under_its_own_names(searching: Searching) -> None:
    first, second = MemoryCatalog([skill("refunds", "Of one.")]), GeneratedCatalog()
    index = searching(CombinedCatalog([Mount(first, "one"), Mount(second, "two")]))
    assert [hit.uri for hit in await index.search("refunds")] == ["skill://refunds/SKILL.md"]
    second.add("refunds", lambda: {"SKILL.md": skill_md("refunds", "Of two.")})
    await anext(second.entries())  # it is made, and then it is news
    found = {hit.uri for hit in await index.search("refunds")}
    assert found == {"skill://one/refunds/SKILL.md", "skill://two/refunds/SKILL.md"}
    second.discard("refunds")
    assert [hit.uri for hit in await index.search("refunds")] == ["skill://refunds/SKILL.md"]


@rule("S1")
async def test_what_one_caller_sees_can_have_an_index_of_its_own(searching: Searching) -> None:
    inner = MemoryCatalog([skill("a/x", "About pdf."), skill("b/y", "About pdf.")])
    index = searching(VisibleCatalog(inner, ["a"]))
    assert await names(index, "pdf") == ["x"]
    inner.put(skill("a/z", "About pdf."))
    inner.put(skill("b/z", "About pdf."))
    assert sorted(await names(index, "pdf")) == ["x", "z"]


async def test_searches_go_on_while_the_index_is_written(searching: Searching) -> None:
    catalog = MemoryCatalog([skill(f"s{n}", "About pdf.") for n in range(30)])
    index = searching(catalog)
    await index.search("pdf")

    async def change(number: int) -> None:
        catalog.put(skill(f"s{number}", "About pdf and more."))
        assert len(await index.search("pdf", 100)) == 30

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(change, number)


async def test_only_the_beginning_of_a_long_body_is_indexed(searching: Searching) -> None:
    catalog = MemoryCatalog([skill("long", body="early " + "x " * 100 + "late")])
    index = searching(catalog, limits=Limits(max_indexed_text=100))
    assert await names(index, "early") == ["long"]
    assert await names(index, "late") == []


async def test_a_closed_index_refuses(searching: Searching) -> None:
    index = searching(MemoryCatalog(OFFICE))
    await index.search("pdf")
    index.close()
    index.close()
    with pytest.raises(StoreError) as caught:
        await index.search("pdf")
    assert caught.value.reference == "search-closed"


async def test_an_index_that_is_closed_while_it_is_built_refuses(searching: Searching) -> None:
    catalog = Counting(OFFICE)
    index = searching(catalog)
    catalog.before = index.close
    with pytest.raises(StoreError) as caught:
        await index.search("pdf")
    assert caught.value.reference == "search-closed"


async def test_a_python_without_full_text_search_is_told_what_to_do(
    searching: Searching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fts5, "_SCHEMA", "CREATE VIRTUAL TABLE texts USING fts5_is_not_here(body);")
    with pytest.raises(StoreError) as caught:
        await searching(MemoryCatalog(OFFICE)).search("pdf")
    assert caught.value.reference == "search-unavailable"
    assert sqlite3.sqlite_version in caught.value.message
    assert caught.value.hint


async def test_a_disk_that_is_full_is_an_error_of_ours(
    searching: Searching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fts5, "_SCHEMA", f"PRAGMA max_page_count = 20; {fts5._SCHEMA}")
    index = searching(MemoryCatalog([skill("large", body="".join(f"word{n} " for n in range(20_000)))]))
    with pytest.raises(StoreError) as caught:
        await index.search("pdf")
    assert (caught.value.reference, "SQLITE_FULL" in caught.value.message) == ("search-failed", True)
