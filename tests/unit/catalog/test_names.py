"""N1: names are labels; what several skills have is told apart by the path, and refused alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from rules import rule
from skillwire.catalog.memory import MemoryCatalog, Skill
from skillwire.catalog.names import SkillNames, find_skill
from skillwire.catalog.visibility import VisibleCatalog
from skillwire.errors import NotFoundError
from skillwire.limits import Limits
from skillwire.skill.entry import SkillMeta, build_entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from skillwire import SkillEntry

pytestmark = pytest.mark.anyio


def skill(path: str, *, listed: bool = True) -> Skill:
    name = path.rpartition("/")[2]
    text = f"---\nname: {name}\ndescription: About {path}.\n---\nDo it.\n"
    return Skill(path, {"SKILL.md": text}, SkillMeta(listed=listed))


def catalog() -> MemoryCatalog:
    return MemoryCatalog(
        [skill("acme/refunds"), skill("globex/refunds"), skill("weather"), skill("drafts/new", listed=False)]
    )


async def test_a_name_a_path_or_a_uri_finds_a_skill() -> None:
    for name in ("weather", "skill://weather/SKILL.md", "weather/SKILL.md", "/weather/"):
        assert (await SkillNames(catalog()).find(name)).uri == "skill://weather/SKILL.md"


@rule("N1")
async def test_an_ambiguous_name_is_refused_with_the_candidates() -> None:
    with pytest.raises(NotFoundError) as refused:
        await SkillNames(catalog()).find("refunds")
    assert refused.value.reference == "skill-ambiguous"
    assert "acme/refunds" in refused.value.hint
    assert "globex/refunds" in refused.value.hint
    assert (await SkillNames(catalog()).find("globex/refunds")).path == "globex/refunds"


@rule("N1")
async def test_labels_are_names_or_paths() -> None:
    held = catalog()
    names = SkillNames(held)
    assert [await names.label(entry) async for entry in held.entries()] == [
        "acme/refunds",
        "globex/refunds",
        "weather",
    ]


async def test_an_unlisted_skill_is_found_by_its_path_and_never_suggested() -> None:
    names = SkillNames(catalog())
    assert (await names.find("drafts/new")).name == "new"
    for name in ("new", "drafts/ne"):
        with pytest.raises(NotFoundError) as refused:
            await names.find(name)
        assert "drafts/new" not in refused.value.hint


async def test_names_follow_the_catalog() -> None:
    held = catalog()
    names = SkillNames(held)
    with pytest.raises(NotFoundError):
        await names.find("refunds")
    held.remove("globex/refunds")
    assert (await names.find("refunds")).path == "acme/refunds"
    held.put(skill("globex/refunds"))
    with pytest.raises(NotFoundError):
        await names.find("refunds")


@rule("N1")
async def test_the_label_of_a_skill_finds_it_whatever_others_are_called() -> None:
    """One at the top and one below with the same name; one unlisted whose path is another's name."""
    held = MemoryCatalog(
        [skill("refunds"), skill("acme/refunds"), skill("solo", listed=False), skill("zeta/solo"), skill("x/own")]
    )
    names = SkillNames(held)
    labels = {}
    for path in ("refunds", "acme/refunds", "solo", "zeta/solo", "x/own"):
        entry = await held.get_skill(f"skill://{path}/SKILL.md")
        labels[path] = await names.label(entry)
        assert (await names.find(labels[path])).path == path
    assert labels == {
        "refunds": "refunds",
        "acme/refunds": "acme/refunds",
        "solo": "skill://solo/SKILL.md",
        "zeta/solo": "zeta/solo",
        "x/own": "own",
    }
    with pytest.raises(NotFoundError) as refused:
        await names.find("solo")
    assert refused.value.reference == "skill-ambiguous"
    assert "zeta/solo" in refused.value.hint
    assert "skill://solo/SKILL.md" in refused.value.hint


async def test_among_very_many_names_those_with_the_same_beginning_are_suggested() -> None:
    class Many(MemoryCatalog):
        async def entries(self) -> AsyncIterator[SkillEntry]:
            for name in ("weather", *(f"other-{number}" for number in range(600))):
                yield build_entry(name, {"name": name}, [])

    with pytest.raises(NotFoundError) as refused:
        await SkillNames(Many()).find("weathr")
    assert "weather" in refused.value.hint


async def test_any_other_text_is_unknown_and_similar_names_are_suggested() -> None:
    names = SkillNames(catalog())
    for name in ("", "/", "..", "x\0y", "\N{SNOWMAN}" * 5000, "wether"):
        with pytest.raises(NotFoundError) as refused:
            await names.find(name)
        assert refused.value.reference == "skill-unknown"
        assert ("weather" in refused.value.hint) == (name == "wether")


async def test_names_of_what_a_caller_may_see_follow_the_catalog_too() -> None:
    held = MemoryCatalog([skill("acme/one"), skill("globex/two")])
    names = SkillNames(VisibleCatalog(held, ["acme"]))
    assert (await names.find("one")).path == "acme/one"
    held.put(skill("globex/one"))
    assert (await names.find("one")).path == "acme/one"  # the other one is not visible
    held.put(skill("acme/more/one"))
    with pytest.raises(NotFoundError) as refused:
        await names.find("one")
    assert refused.value.reference == "skill-ambiguous"


@rule("B3")
async def test_a_name_is_found_in_a_listing_that_never_ends() -> None:
    class Endless(MemoryCatalog):
        async def incoming(self) -> AsyncIterator[SkillEntry]:
            async for entry in self.entries():
                yield entry
            await anyio.sleep_forever()

    endless = Endless([skill("team/hit"), skill("other")])
    with anyio.fail_after(60):
        found = await find_skill(endless, "hit", Limits(after_match_seconds=0.01))
    assert found.uri == "skill://team/hit/SKILL.md"
