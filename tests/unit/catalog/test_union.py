"""Several catalogs as one: prefixes, and collisions where nobody wins (N1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules import rule
from skillwire import CombinedCatalog, MemoryCatalog, Mount, Skill
from skillwire.errors import FormatError, NotFoundError, UpstreamError
from skillwire.lowlevel import GeneratedCatalog
from skillwire.skill import digest_of
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillwire import SkillEntry

pytestmark = pytest.mark.anyio


def skill(path: str, text: str = "x", **files: str) -> Skill:
    return Skill(path, {"SKILL.md": skill_md(path.rpartition("/")[2], text), **files})


def combined(**sources: Iterable[Skill]) -> CombinedCatalog:
    return CombinedCatalog([Mount(MemoryCatalog(skills), label) for label, skills in sources.items()])


async def listing(catalog: CombinedCatalog) -> dict[str, str]:
    return {entry.path: entry.description async for entry in catalog.entries()}


@rule("N1", "E5")
async def test_a_collision_leaves_both_reachable_under_their_labels() -> None:
    catalog = combined(a=[skill("refunds", "from a")], b=[skill("refunds", "from b"), skill("other")])
    assert await listing(catalog) == {"a/refunds": "from a", "b/refunds": "from b", "other": "x"}
    for label in "ab":
        entry = await catalog.get_skill(f"skill://{label}/refunds/SKILL.md")
        assert entry.description == f"from {label}"
        file = await catalog.read_file(entry.files[0].uri)
        assert digest_of(file.data) == entry.files[0].digest
        children = [child.uri async for child in catalog.children(f"skill://{label}/refunds")]
        assert children == [f"skill://{label}/refunds/SKILL.md"]


@rule("N1")
async def test_the_bare_name_of_a_collision_names_the_candidates() -> None:
    """Nothing is preferred."""
    catalog = combined(a=[skill("refunds")], b=[skill("refunds")])
    for ask in (catalog.get_skill, catalog.read_file):
        with pytest.raises(NotFoundError) as caught:
            await ask("skill://refunds/SKILL.md")
        assert caught.value.reference == "skill-ambiguous"
        for label in "ab":
            assert f"skill://{label}/refunds/SKILL.md" in caught.value.hint


@rule("N1")
async def test_a_collision_is_reported_on_both_sides() -> None:
    catalog = combined(a=[skill("refunds")], b=[skill("refunds")])
    problems = await catalog.problems()
    assert [(problem.reference, problem.skill) for problem in problems] == [("catalog-collision", "refunds")] * 2
    assert "a/refunds" in problems[0].message
    assert "b/refunds" in problems[1].message


async def test_prefixes_keep_sources_apart() -> None:
    one, two = MemoryCatalog([skill("refunds", "one")]), MemoryCatalog([skill("refunds", "two")])
    catalog = CombinedCatalog([Mount(one, "a", prefix="team/one"), Mount(two, "b")])
    assert await listing(catalog) == {"team/one/refunds": "one", "refunds": "two"}
    assert await catalog.problems() == []


@rule("N1", "E4")
async def test_a_skill_inside_a_skill_of_another_source_is_qualified() -> None:
    """No file's URI means two things."""
    catalog = combined(
        a=[skill("outer", "outer", **{"inner/notes.md": "from a"})],
        b=[skill("outer/inner", "inner", **{"notes.md": "from b"})],
    )
    assert await listing(catalog) == {"outer": "outer", "b/outer/inner": "inner"}
    assert (await catalog.read_file("skill://outer/inner/notes.md")).data == b"from a"
    assert (await catalog.read_file("skill://b/outer/inner/notes.md")).data == b"from b"


@rule("N1")
async def test_a_label_that_looks_like_a_path_is_qualified_again() -> None:
    """The qualified name is itself taken."""
    catalog = combined(a=[skill("x", "a")], b=[skill("x", "b"), skill("a/x", "trap")])
    found = await listing(catalog)
    assert sorted(found.values()) == ["a", "b", "trap"]
    for path, description in found.items():
        assert (await catalog.get_skill(f"skill://{path}/SKILL.md")).description == description


@rule("S1", "N1")
async def test_a_collision_that_comes_and_goes_tells_what_moved() -> None:
    one, two = MemoryCatalog([skill("x")]), MemoryCatalog()
    catalog = CombinedCatalog([Mount(one, "a"), Mount(two, "b")])
    with catalog.changes() as changes, anyio.fail_after(60):
        two.put(skill("x"))
        change = await anext(changes)
        assert change.removed == {"skill://x/SKILL.md"}
        assert change.added == {"skill://a/x/SKILL.md", "skill://b/x/SKILL.md"}
        two.put(skill("x", "new"))
        assert (await anext(changes)).changed == {"skill://b/x/SKILL.md"}
        two.remove("x")
        change = await anext(changes)
        assert change.added == {"skill://x/SKILL.md"}
        assert change.removed == {"skill://a/x/SKILL.md", "skill://b/x/SKILL.md"}


@rule("N1", "S1")
async def test_a_skill_inside_a_skill_of_another_source_is_removed_under_its_label() -> None:
    inner = MemoryCatalog([skill("acme/billing")])
    catalog = CombinedCatalog([Mount(inner, "a"), Mount(MemoryCatalog([skill("acme")]), "b")])
    with catalog.changes() as changes, anyio.fail_after(60):
        inner.remove("acme/billing")
        assert (await anext(changes)).removed == {"skill://a/acme/billing/SKILL.md"}


async def test_labels_must_differ_and_be_one_segment() -> None:
    with pytest.raises(FormatError):
        CombinedCatalog([Mount(MemoryCatalog(), "a/b")])
    with pytest.raises(FormatError):
        CombinedCatalog([Mount(MemoryCatalog(), "a"), Mount(MemoryCatalog(), "a")])
    with pytest.raises(FormatError):
        CombinedCatalog([Mount(MemoryCatalog(), "..")])
    with pytest.raises(FormatError):
        CombinedCatalog([Mount(MemoryCatalog(), "a", prefix="../x")])


@rule("B1")
async def test_a_path_made_of_labels_costs_bounded_work() -> None:
    """Names are settled once a request, however they are stacked."""
    asked: list[str] = []

    class Counting(MemoryCatalog):
        async def get_skill(self, uri: str) -> SkillEntry:
            asked.append(uri)
            return await super().get_skill(uri)

    catalog = CombinedCatalog([Mount(Counting([skill("x")]), label) for label in "ab"])
    with pytest.raises(NotFoundError):
        await catalog.get_skill("skill://" + "a/" * 100 + "x/SKILL.md")
    assert len(asked) <= 2 * 100


PATHS = st.lists(st.sampled_from(["x", "y", "a/x", "b/x", "a/b/x", "x/y", "y/x"]), unique=True, max_size=4)


@rule("N1", "E5")
@settings(max_examples=30)
@given(st.lists(PATHS, min_size=2, max_size=3))
async def test_every_skill_has_exactly_one_uri_and_is_found_by_it(sources: list[list[str]]) -> None:
    """Whatever collides with whatever."""
    labels = ["a", "b", "c"]
    mounts = [
        Mount(MemoryCatalog([skill(path, f"{label}:{path}") for path in sorted(paths)]), label)
        for label, paths in zip(labels, sources, strict=False)
    ]
    catalog = CombinedCatalog(mounts)
    entries = [entry async for entry in catalog.entries()]
    assert len({entry.uri for entry in entries}) == len(entries)
    expected: list[str] = []
    for mount in mounts:
        expected += [entry.description async for entry in mount.catalog.entries()]
    assert sorted(entry.description for entry in entries) == sorted(expected)
    for entry in entries:
        assert await catalog.get_skill(entry.uri) == entry
        for resource in entry.files:
            assert digest_of((await catalog.read_file(resource.uri)).data) == resource.digest


@rule("S1")
async def test_a_change_whose_name_could_not_be_resolved_is_reported_later() -> None:
    class Away(MemoryCatalog):
        away = False

        async def peek_skill(self, uri: str) -> SkillEntry | None:
            if self.away:
                raise UpstreamError("connection-lost", "gone", "come back")
            return await super().peek_skill(uri)

    first, second = MemoryCatalog([skill("one")]), Away([skill("two")])
    with CombinedCatalog([Mount(first, "a"), Mount(second, "b")]).changes() as changes:
        second.away = True
        first.put(skill("three"))
        with pytest.raises(UpstreamError):
            await changes.pending()
        first.put(skill("four"))
        second.away = False
        told = await changes.pending()
        assert told.added == {"skill://three/SKILL.md", "skill://four/SKILL.md"}
        assert not await changes.pending()


@rule("E2")
async def test_peeking_does_not_generate_a_dynamic_skill() -> None:
    """A function runs when somebody reads, not when somebody looks."""
    calls: list[str] = []
    made = GeneratedCatalog()

    @made.skill("today", dynamic=True)
    def today() -> dict[str, bytes]:
        calls.append("made")
        return {"SKILL.md": skill_md("today")}

    catalog = CombinedCatalog([Mount(MemoryCatalog([skill("one")]), "a"), Mount(made, "b")])
    assert await listing(catalog) == {"one": "x", "today": "Does one thing well."}
    before = len(calls)
    assert (await catalog.peek_skill("skill://today/SKILL.md") or pytest.fail("it is there")).is_dynamic
    assert await catalog.peek_skill("skill://nobody/SKILL.md") is None
    assert await catalog.peek_skill("other://one/SKILL.md") is None
    assert len(calls) == before
