"""Files that are added and removed: V2, V3, A2, W3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.host.origin import NOTE, assert_nothing_got_out, assert_refused, is_acting
from host.stage import NO, YES, Person
from rules import rule

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.host.origin import HostileOrigin

pytestmark = pytest.mark.anyio


@rule("V2")
async def test_a_file_that_is_served_but_not_listed_is_not_read(evil: HostileOrigin, state: Path) -> None:
    """It equals a mismatch, and is not even asked for."""
    evil.add_file("extra.md", tell=False)
    async with evil.host(state) as host:
        await host.load("flat")
        reads = evil.read_uris()
        result = await host.read("flat", "extra.md")
        assert_refused(result, "file-unlisted", "V2")
        assert evil.read_uris() == reads
        await assert_nothing_got_out(host, state, result)


@rule("A2", "V2")
async def test_a_file_that_is_added_to_the_entry_revokes(evil: HostileOrigin, state: Path) -> None:
    """Also if the model asks for it by the name that it heard."""
    person = Person(YES, NO)
    async with evil.host(state, person=person) as host:
        await host.load("flat")
        added = evil.add_file("extra.md")
        before = await host.read("flat", "extra.md")
        assert_refused(before, "file-unlisted", "V2")
        await host.relist("evil")
        result = await host.read("flat", "extra.md")
        assert_refused(result, "skill-changed", "A2")
        again = await host.load("flat")
        assert_refused(again, "not-approved", "A1")
        change = person.asked[1].change
        assert change is not None
        assert (change.added, change.removed, change.rotated) == ((added,), (), ())
        await assert_nothing_got_out(host, state, before, result, again)


@rule("A2")
async def test_a_file_that_is_removed_from_the_entry_revokes(evil: HostileOrigin, state: Path) -> None:
    """A skill without its warnings is another skill."""
    person = Person(YES, NO)
    async with evil.host(state, person=person) as host:
        await host.load("flat")
        evil.remove_file(NOTE)
        await host.relist("evil")
        result = await host.read("flat", "notes.md")
        assert_refused(result, "skill-changed", "A2")
        again = await host.load("flat")
        assert_refused(again, "not-approved", "A1")
        change = person.asked[1].change
        assert change is not None
        assert (change.added, change.removed, change.rotated) == ((), (NOTE,), ())


@rule("V1")
async def test_a_listed_file_that_is_not_served_is_refused(evil: HostileOrigin, state: Path) -> None:
    """And nothing else is offered in its place."""
    evil.remove_file(NOTE, tell=False)
    async with evil.host(state) as host:
        await host.load("flat")
        result = await host.read("flat", "notes.md")
        assert_refused(result, "not-served", "")


@rule("L2", "V2")
async def test_a_skill_that_vanishes_from_the_listing_keeps_its_meaning(evil: HostileOrigin, state: Path) -> None:
    """A listing proves nothing; what was approved may be read as it was, and nothing new."""
    async with evil.host(state) as host:
        await host.load("flat")
        evil.entries.clear()
        evil.files["skill://flat/extra.md"] = b"extra\n"
        await host.relist("evil")
        assert not (await host.read("flat", "notes.md")).is_error
        assert_refused(await host.read("flat", "extra.md"), "file-unlisted", "V2")
        assert_refused(await host.load("flat"), "skill-unknown", "N1")


@rule("E2", "V2")
async def test_a_manifest_without_its_skill_md_is_no_skill(web: HostileOrigin, state: Path) -> None:
    """It is left out, and the listing says that it is partial."""
    web.entries[0]["resources"].pop(0)
    async with web.host(state) as host:
        assert host.state("evil") == "partial"
        result = await host.load("flat")
        assert_refused(result, "skill-unknown", "N1")
        assert not is_acting(host)


@rule("E2", "V1")
async def test_a_file_listed_twice_with_two_contents_is_no_skill(web: HostileOrigin, state: Path) -> None:
    """Nobody chooses between them."""
    web.add_file("notes.md")
    async with web.host(state) as host:
        result = await host.load("flat")
        assert_refused(result, "skill-unknown", "N1")
        await assert_nothing_got_out(host, state, result)
