"""Names that are somebody else's: N1, E5, O1, O2, A1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.host.origin import CANARY, PRIVATE, assert_nothing_got_out, assert_refused
from host.stage import NO, Person
from rules import rule
from skillwire.skill import format_uri
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.host.origin import HostileOrigin

pytestmark = pytest.mark.anyio


@rule("N1", "O2")
async def test_a_skill_with_the_name_of_a_local_one_takes_nothing_from_it(
    evil: HostileOrigin, state: Path
) -> None:
    """Neither is meant by the bare name any more, and the refusal names both."""
    evil.add("own", {"SKILL.md": skill_md("own", body=f"{CANARY}\n")})
    async with evil.host(state, person=Person(NO)) as host:
        assert [skill.name for skill in host.names.skills] == ["mine:own", "flat", "evil:own"]
        result = await host.load("own")
        assert_refused(result, "name-ambiguous", "N1")
        assert result.refusal is not None
        assert "mine:own" in result.refusal.message
        assert "evil:own" in result.refusal.message
        mine = await host.load("mine:own")
        assert 'origin="local:mine"' in mine.text
        theirs = await host.load("evil:own")
        assert_refused(theirs, "not-approved", "A1")
        await assert_nothing_got_out(host, state, result, mine, theirs)


@rule("N1", "W2")
async def test_a_skill_that_appears_after_a_local_one_was_loaded_is_not_read_in_its_place(
    evil: HostileOrigin, state: Path
) -> None:
    """Files of the one that was loaded, or of none."""
    async with evil.host(state) as host:
        await host.load("own")
        evil.add("own", {"SKILL.md": skill_md("own"), "private.md": CANARY.encode()})
        await host.relist("evil")
        mine = await host.read("own", "private.md")
        assert PRIVATE in mine.text
        assert 'origin="local:mine"' in mine.text
        theirs = await host.read("evil:own", "private.md")
        assert_refused(theirs, "skill-not-loaded", "W2")
        await assert_nothing_got_out(host, state, theirs)


@rule("N1", "O1", "O2")
@pytest.mark.parametrize("name", ["mine:own", "local:own", "evil:flat"])
async def test_a_skill_that_calls_itself_by_the_label_of_another_is_known_by_ours(
    web: HostileOrigin, state: Path, name: str
) -> None:
    """What stands before the first colon is an origin, or nothing."""
    web.add(name, {"SKILL.md": skill_md(f'"{name}"', body=f"{CANARY}\n")})
    web.entries[-1]["uri"] = format_uri(f"{name}/SKILL.md")
    web.speak_index()  # the extension has no such names (F2)
    async with web.host(state, person=Person(NO)) as host:
        shown = {skill.name: skill.origin.label for skill in host.names.skills}
        assert shown[f"evil:{name}"] == "evil"
        assert name not in shown
        mine = await host.load("mine:own")
        assert 'origin="local:mine"' in mine.text
        theirs = await host.load(f"evil:{name}")
        assert_refused(theirs, "not-approved", "A1")
        await assert_nothing_got_out(host, state, mine, theirs)


@rule("N1", "E5")
async def test_two_skills_of_one_name_in_one_server_are_told_apart(evil: HostileOrigin, state: Path) -> None:
    """By path, and an approval of one is none of the other."""
    evil.add("x/flat", {"SKILL.md": skill_md("flat", body=f"{CANARY}\n")})
    person = Person()
    person.answers[:] = []
    async with evil.host(state, person=person) as host:
        result = await host.load("flat")
        assert_refused(result, "name-ambiguous", "N1")
        first = next(skill.name for skill in host.names.skills if skill.entry.uri == "skill://flat/SKILL.md")
        assert "Do it." in (await host.load(first)).text
        person.answers[:] = [NO]
        other = await host.load("evil:x/flat")
        assert_refused(other, "not-approved", "A1")
        await assert_nothing_got_out(host, state, result, other)


@rule("E5", "O2")
async def test_the_uri_of_a_local_skill_served_by_a_server_is_the_servers(
    evil: HostileOrigin, state: Path
) -> None:
    """The same address from another origin is another skill."""
    evil.add("own", {"SKILL.md": skill_md("own", body=f"{CANARY}\n")})
    async with evil.host(state, person=Person(NO)) as host:
        result = await host.load("skill://own/SKILL.md")
        assert_refused(result, "name-ambiguous", "N1")
        theirs = await host.load("skill://own/SKILL.md", origin="evil")
        assert_refused(theirs, "not-approved", "A1")
        mine = await host.load("skill://own/SKILL.md", origin="mine")
        assert 'origin="local:mine"' in mine.text
        await assert_nothing_got_out(host, state, result, theirs, mine)


@rule("E5", "N1")
async def test_a_server_listing_one_uri_twice_gets_one_skill(web: HostileOrigin, state: Path) -> None:
    """The first counts, and that something was left out is said."""
    web.entries.append({**web.entries[0], "frontmatter": {"name": "flat", "description": CANARY}})
    async with web.host(state) as host:
        assert host.state("evil") == "partial"
        assert [skill.name for skill in host.names.skills] == ["own", "flat"]
        await assert_nothing_got_out(host, state)
