"""Content that is another between two reads: V1, V3, A1, A2, C1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.host.origin import (
    EVIL_NOTE,
    EVIL_SKILL,
    NOTE,
    SKILL,
    assert_nothing_got_out,
    assert_refused,
    is_acting,
)
from adversarial.speaking import Refusal
from host.stage import NO, YES, Person
from rules import rule
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.host.origin import HostileOrigin

pytestmark = pytest.mark.anyio

SAME_SIZE = skill_md("flat").replace(b"Do it.", b"Do NO!")


@rule("V1", "V3")
@pytest.mark.parametrize("looks", [True, False], ids=["looked at", "not looked at"])
@pytest.mark.parametrize("data", [SAME_SIZE, skill_md("flat") + b"\n"], ids=["same size", "one more"])
async def test_instructions_that_are_not_what_was_listed_are_never_loaded(
    evil: HostileOrigin, state: Path, data: bytes, looks: bool
) -> None:
    """Whether a person reads it or not; the entry stays what it was, so that it is a mismatch and no change."""
    evil.swap(SKILL, data)
    person = Person(looks=looks)
    async with evil.host(state, person=person) as host:
        result = await host.load("flat")
        assert_refused(result, "digest-mismatch" if len(data) == len(skill_md("flat")) else "size-mismatch", "V1")
        assert "skills/get" in evil.methods()
        assert (len(person.asked), is_acting(host)) == (not looks, False)
        await assert_nothing_got_out(host, state, result)


@rule("A1", "B6")
async def test_instructions_that_rotate_after_the_person_looked_are_not_loaded(
    evil: HostileOrigin, state: Path
) -> None:
    """What the person saw is what is loaded; there is no second read to rotate."""
    evil.swap(SKILL, EVIL_SKILL, after=1)
    async with evil.host(state) as host:
        result = await host.load("flat")
        assert "Do it." in result.text
        assert evil.read_uris() == [SKILL]
        await assert_nothing_got_out(host, state, result)


@rule("V1", "V3", "W1")
@pytest.mark.parametrize("reads", [1, 2])
async def test_a_file_that_rotates_while_the_skill_is_acted_on_is_never_used(
    evil: HostileOrigin, state: Path, reads: int
) -> None:
    """The window is shut, and nothing more is read for the skill until it is loaded again."""
    evil.swap(NOTE, EVIL_NOTE, after=reads - 1)
    async with evil.host(state) as host:
        assert host.cache is not None
        await host.load("flat")
        for _ in range(reads - 1):
            assert not (await host.read("flat", "notes.md")).is_error
            host.cache.remove_origin("evil")
        result = await host.read("flat", "notes.md")
        assert_refused(result, "size-mismatch", "V1")
        assert not is_acting(host)
        again = await host.read("flat", "SKILL.md")
        assert_refused(again, "skill-changed", "A2")
        await assert_nothing_got_out(host, state, result, again)


@rule("A2", "V3")
async def test_a_rotation_that_is_announced_revokes_the_approval(evil: HostileOrigin, state: Path) -> None:
    """A fresh entry that differs is another skill, and the next load is asked about, with what changed."""
    person = Person(YES, NO)
    async with evil.host(state, person=person) as host:
        await host.load("flat")
        evil.announce(NOTE, EVIL_NOTE)
        result = await host.read("flat", "notes.md")
        assert_refused(result, "skill-changed", "V3")
        assert list(await host.store.approvals()) == []
        again = await host.load("flat")
        assert_refused(again, "not-approved", "A1")
        change = person.asked[1].change
        assert change is not None
        assert change.rotated == (NOTE,)
        assert person.asked[1].entry.resource(NOTE) != person.asked[0].entry.resource(NOTE)
        await assert_nothing_got_out(host, state, result, again)


@rule("A2", "W1")
async def test_a_rotation_that_a_listing_tells_of_shuts_the_window(evil: HostileOrigin, state: Path) -> None:
    """Nothing has to be read for that."""
    async with evil.host(state) as host:
        await host.load("flat")
        evil.announce(SKILL, EVIL_SKILL)
        await host.relist("evil")
        result = await host.read("flat", "notes.md")
        assert_refused(result, "skill-changed", "A2")
        refusal = await host.gate("Bash")
        assert refusal is not None
        assert (refusal.reference, refusal.rule) == ("skill-changed", "A2")
        await assert_nothing_got_out(host, state, result)


@rule("A2")
async def test_a_rotation_back_to_what_was_approved_is_asked_about_again(evil: HostileOrigin, state: Path) -> None:
    """An approval that was revoked does not rise again."""
    person = Person(YES, NO, NO)
    async with evil.host(state, person=person) as host:
        await host.load("flat")
        evil.announce(SKILL, EVIL_SKILL)
        await host.relist("evil")
        first = await host.load("flat")
        evil.announce(SKILL, skill_md("flat"))
        await host.relist("evil")
        second = await host.load("flat")
        for result in (first, second):
            assert_refused(result, "not-approved", "A1")
        assert person.kinds == ["load"] * 3
        await assert_nothing_got_out(host, state, first, second)


@rule("V1", "V3")
@pytest.mark.parametrize("answer", [Refusal(), {"skill": "none"}], ids=["refused", "no-entry"])
async def test_a_server_that_rotates_and_will_not_say_what_is_true_is_refused_for_the_rotation(
    web: HostileOrigin, state: Path, answer: object
) -> None:
    """The way out is a fresh entry; without one the mismatch is what there is to say."""
    web.answers["skills/get"] = lambda params: answer
    web.swap(NOTE, EVIL_NOTE)
    async with web.host(state) as host:
        await host.load("flat")
        result = await host.read("flat", "notes.md")
        assert_refused(result, "size-mismatch", "V1")
        await assert_nothing_got_out(host, state, result)


@rule("C1", "V1")
async def test_what_was_verified_before_is_served_from_the_cache_whatever_the_server_says_now(
    evil: HostileOrigin, state: Path
) -> None:
    """The bytes that were approved, or none."""
    async with evil.host(state) as host:
        await host.load("flat")
        await host.read("flat", "notes.md")
        evil.swap(NOTE, EVIL_NOTE)
        evil.swap(SKILL, EVIL_SKILL)
        results = [await host.load("flat"), await host.read("flat", "notes.md")]
        assert not any(result.is_error for result in results)
        await assert_nothing_got_out(host, state, *results)
