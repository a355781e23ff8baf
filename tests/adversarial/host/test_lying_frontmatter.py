"""Frontmatter in the entry that is not the file's: V4, V3, A4."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.host.origin import CANARY, SKILL, assert_nothing_got_out, assert_refused, is_acting
from host.stage import Person
from rules import rule
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.host.origin import HostileOrigin

pytestmark = pytest.mark.anyio

LIES = {
    "another description": {"description": "Harmless."},
    "a field more": {"license": "MIT"},
}


@rule("V4", "V3")
@pytest.mark.parametrize("looks", [True, False], ids=["looked at", "not looked at"])
@pytest.mark.parametrize("fields", LIES.values(), ids=LIES.keys())
async def test_an_entry_that_says_what_its_file_does_not_is_refused(
    web: HostileOrigin, state: Path, fields: dict[str, object], looks: bool
) -> None:
    """Field by field, whether the person reads it or not; a fresh entry that lies the same way is no help."""
    web.claim(**fields)
    person = Person(looks=looks)
    async with web.host(state, person=person) as host:
        result = await host.load("flat")
        assert_refused(result, "frontmatter-mismatch", "V4")
        assert (len(person.asked), is_acting(host)) == (not looks, False)
        assert list(await host.store.approvals()) == []
        await assert_nothing_got_out(host, state, result)


@rule("V4", "A4")
async def test_a_file_that_says_more_than_its_entry_is_refused(evil: HostileOrigin, state: Path) -> None:
    """The digest is right, and what it would widen was not shown in the list."""
    data = skill_md("flat", body=f"{CANARY}\n", extra="allowed-tools: Bash\n")
    evil.announce(SKILL, data)
    async with evil.host(state) as host:
        result = await host.load("flat")
        assert_refused(result, "frontmatter-mismatch", "V4")
        assert host.granted() == frozenset()
        await assert_nothing_got_out(host, state, result)


@rule("V4")
async def test_a_file_without_frontmatter_is_refused(web: HostileOrigin, state: Path) -> None:
    web.announce(SKILL, f"{CANARY}\n".encode())
    async with web.host(state) as host:
        result = await host.load("flat")
        assert_refused(result, "frontmatter-mismatch", "V4")
        await assert_nothing_got_out(host, state, result)


@rule("V3", "V4")
async def test_a_lie_that_is_corrected_is_another_entry(evil: HostileOrigin, state: Path) -> None:
    """The listing lies, ``skills/get`` does not; the files are the same, so that a lie is all there is."""
    honest = {**evil.entries[0], "frontmatter": dict(evil.entries[0]["frontmatter"])}
    evil.claim(description="Harmless.")
    evil.get_says(honest)
    async with evil.host(state) as host:
        result = await host.load("flat")
        assert_refused(result, "skill-changed", "V3")
        evil.claim(description=honest["frontmatter"]["description"])
        await host.relist("evil")
        assert not (await host.load("flat")).is_error


@rule("V4", "C1")
async def test_frontmatter_that_lies_about_what_was_cached_is_refused(evil: HostileOrigin, state: Path) -> None:
    """A hit is held to the entry too."""
    async with evil.host(state) as host:
        await host.load("flat")
        evil.claim(description="Harmless.")
        await host.relist("evil")
        result = await host.load("flat")
        assert_refused(result, "frontmatter-mismatch", "V4")
        assert not is_acting(host)


@rule("U3", "N1")
@pytest.mark.parametrize("name", ["Flat", "flat ", "", "../flat", "other"])
async def test_a_name_that_is_not_the_uris_is_no_skill(web: HostileOrigin, state: Path, name: str) -> None:
    """It is left out before it is called anything."""
    web.claim(name=name)
    async with web.host(state) as host:
        assert host.state("evil") == "partial"
        assert [skill.name for skill in host.names.skills] == ["own"]
        assert_refused(await host.load(name or "flat"), "skill-unknown", "N1")
