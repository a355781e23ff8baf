"""Servers that drip, or say nothing: B4. The one clock here is the host's own bound."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from adversarial.adversary import content
from adversarial.expecting import hasty
from adversarial.host.origin import NOTE, SKILL, assert_nothing_got_out, assert_refused, is_acting
from adversarial.speaking import Raw, drip, silence
from host.stage import Person
from rotation import every_setting
from rules import rule

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.host.origin import HostileOrigin

pytestmark = pytest.mark.anyio


@rule("B4", "B6")
@every_setting
@pytest.mark.parametrize("answer", [Raw(drip), silence], ids=["drips", "is silent"])
async def test_instructions_that_never_arrive_are_given_up(
    evil: HostileOrigin, state: Path, answer: object
) -> None:
    """Within the bound; a person who wanted to read it is not asked to decide."""
    person = Person(looks=True)
    async with evil.host(state, person=person) as host:
        evil.answers["resources/read"] = answer  # type: ignore[assignment]
        with hasty(host.client("evil")):
            result = await host.load("flat")
        assert_refused(result, "timed-out", "B4")
        assert (person.asked, is_acting(host), list(await host.store.approvals())) == ([], False, [])
        await assert_nothing_got_out(host, state, result)


@rule("B4")
async def test_a_file_that_never_arrives_leaves_the_skill_as_it_was(web: HostileOrigin, state: Path) -> None:
    """Slow is not changed."""
    async with web.host(state) as host:
        await host.load("flat")
        web.answers["resources/read"] = silence
        with hasty(host.client("evil")):
            assert_refused(await host.read("flat", "notes.md"), "timed-out", "B4")
        assert is_acting(host)
        del web.answers["resources/read"]
        assert not (await host.read("flat", "notes.md")).is_error


@rule("B4", "L2")
async def test_a_listing_that_drips_keeps_nobody_waiting(evil: HostileOrigin, state: Path) -> None:
    """The person's own skills, and what was loaded before, are there."""
    async with evil.host(state) as host:
        await host.load("flat")
    evil.answers["skills/list"] = Raw(drip)
    async with evil.host(state, calm=False) as host:
        assert host.state("evil") == "stale"
        assert not (await host.load("own")).is_error
        assert not (await host.load("flat")).is_error
        assert evil.read_uris() == [SKILL]


@rule("B4", "V3", "V1")
async def test_a_fresh_entry_that_never_arrives_leaves_a_mismatch(web: HostileOrigin, state: Path) -> None:
    """The answer that would explain it is given up too."""
    web.answers["skills/get"] = silence
    async with web.host(state) as host, AsyncExitStack() as stack:
        await host.load("flat")

        def rotated(params: object) -> dict[str, object]:
            """From now on a call has little time: the one that is answered here began before."""
            stack.enter_context(hasty(host.client("evil")))
            return content(NOTE, b"rotated\n")

        web.answers["resources/read"] = rotated
        assert_refused(await host.read("flat", "notes.md"), "size-mismatch", "V1")
        assert not is_acting(host)
