"""``skills/list`` says one thing, ``skills/get`` another: V3, A1, A2, G1."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from adversarial.host.origin import (
    CANARY,
    EVIL_NOTE,
    EVIL_SKILL,
    NOTE,
    SKILL,
    assert_nothing_got_out,
    assert_refused,
    is_acting,
)
from host.stage import NO, YES, Person
from rules import rule
from skillwire.skill import digest_of
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.host.origin import HostileOrigin

pytestmark = pytest.mark.anyio


def other_entry(server: HostileOrigin, uri: str, data: bytes) -> dict[str, Any]:
    """The entry of the same skill with another file."""
    entry = copy.deepcopy(server.entries[0])
    for resource in entry["resources"]:
        if resource["uri"] == uri:
            resource.update(digest=digest_of(data), size=len(data))
    return entry


@rule("V3", "A2")
async def test_what_was_approved_from_the_listing_is_not_what_get_describes(
    evil: HostileOrigin, state: Path
) -> None:
    """Bytes that fit ``skills/get`` do not fit what was approved; the person sees the new entry."""
    evil.get_says(other_entry(evil, NOTE, EVIL_NOTE))
    evil.swap(NOTE, EVIL_NOTE)
    person = Person(YES, NO)
    async with evil.host(state, person=person) as host:
        await host.load("flat")
        result = await host.read("flat", "notes.md")
        assert_refused(result, "skill-changed", "V3")
        assert (list(await host.store.approvals()), is_acting(host)) == ([], False)
        again = await host.load("flat")
        assert_refused(again, "not-approved", "A1")
        assert person.asked[1].entry.resource(NOTE) is not None
        change = person.asked[1].change
        assert change is not None
        assert change.rotated == (NOTE,)
        await assert_nothing_got_out(host, state, result, again)


@rule("A2")
async def test_a_server_that_goes_back_and_forth_is_asked_about_each_time(
    evil: HostileOrigin, state: Path
) -> None:
    """Neither answer rides on an approval of the other."""
    evil.get_says(other_entry(evil, NOTE, EVIL_NOTE))
    evil.swap(NOTE, EVIL_NOTE)
    person = Person(YES, NO, NO)
    async with evil.host(state, person=person) as host:
        await host.load("flat")
        first = await host.read("flat", "notes.md")
        second = await host.load("flat")
        await host.relist("evil")
        third = await host.load("flat")
        for result in (second, third):
            assert_refused(result, "not-approved", "A1")
        assert person.kinds == ["load"] * 3
        await assert_nothing_got_out(host, state, first, second, third)


@rule("G1", "A2")
async def test_an_unlisted_skill_is_what_get_says_when_it_is_loaded(evil: HostileOrigin, state: Path) -> None:
    """Asked anew for each load, and another answer is another skill."""
    hidden = evil.add("hidden", {"SKILL.md": skill_md("hidden"), "a.md": b"a\n"}, listed=False)
    evil.get_says(hidden)
    person = Person(YES, NO)
    async with evil.host(state, person=person) as host:
        name = f"evil:{hidden['uri']}"
        assert not (await host.load(name)).is_error
        hidden["resources"][1].update(digest=digest_of(EVIL_NOTE), size=len(EVIL_NOTE))
        result = await host.load(name)
        assert_refused(result, "not-approved", "A1")
        change = person.asked[1].change
        assert change is not None
        assert change.rotated == ("skill://hidden/a.md",)
        await assert_nothing_got_out(host, state, result)


LIES: dict[str, Any] = {
    "another skill": lambda entry: {**entry, "uri": "skill://other/SKILL.md"},
    "no files": lambda entry: {**entry, "resources": []},
    "files of somebody else": lambda entry: {
        **entry,
        "resources": [{**entry["resources"][0], "uri": "skill://x/y"}],
    },
    "nothing": lambda entry: {},
}


@rule("V3", "G1", "E2")
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
async def test_a_fresh_entry_that_is_none_changes_nothing(web: HostileOrigin, state: Path, lie: Any) -> None:
    """The mismatch stands, and what the server says instead is not believed."""
    answer = lie(web.entries[0])
    web.answers["skills/get"] = lambda params: {"skill": answer}
    web.swap(NOTE, EVIL_NOTE)
    async with web.host(state) as host:
        await host.load("flat")
        result = await host.read("flat", "notes.md")
        assert_refused(result, "size-mismatch", "V1")
        assert [entry.uri for entry in host.registry.get("evil").known] == [SKILL]
        await assert_nothing_got_out(host, state, result)


@rule("G1", "E2")
@pytest.mark.parametrize("lie", [LIES["another skill"], LIES["no files"]], ids=["another skill", "no files"])
async def test_an_unlisted_skill_that_is_none_is_refused(web: HostileOrigin, state: Path, lie: Any) -> None:
    answer = lie(web.entries[0])
    web.entries.clear()
    web.answers["skills/get"] = lambda params: {"skill": answer}
    async with web.host(state) as host:
        result = await host.load(SKILL, origin="evil")
        assert result.refusal is not None
        assert result.refusal.reference in ("entry-other", "entry-invalid")
        assert result.refusal.rule
        assert web.read_uris() == []


@rule("V3", "V7", "A2")
async def test_a_fresh_entry_that_turned_dynamic_revokes(evil: HostileOrigin, state: Path) -> None:
    """Nothing is promised any more."""
    dynamic = {**evil.entries[0], "resources": "dynamic"}
    evil.get_says(dynamic)
    evil.swap(NOTE, EVIL_NOTE)
    async with evil.host(state) as host:
        await host.load("flat")
        result = await host.read("flat", "notes.md")
        assert_refused(result, "skill-changed", "V3")
        again = await host.load("flat")
        assert_refused(again, "not-approved", "V7")
        assert list(await host.store.approvals()) == []
        await assert_nothing_got_out(host, state, result, again)


@rule("V3", "U7")
async def test_a_fresh_entry_in_another_spelling_is_taken_for_the_skill_it_is_about(
    web: HostileOrigin, state: Path
) -> None:
    """The next load is of the fresh one, and asked about."""
    fresh = other_entry(web, SKILL, EVIL_SKILL)
    fresh["uri"] = "skill://fl%61t/SKILL.md"
    web.get_says(fresh)
    web.swap(SKILL, EVIL_SKILL)
    person = Person(NO, looks=True)
    async with web.host(state, person=person) as host:
        result = await host.load("flat")
        assert_refused(result, "skill-changed", "V3")
        again = await host.load("flat")
        assert_refused(again, "not-approved", "A1")
        assert CANARY not in again.text
        await assert_nothing_got_out(host, state, result, again)
