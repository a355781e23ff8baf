"""Skills that promise nothing, so that nothing can be held against them: V7, A1, C1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.host.origin import EVIL_NOTE, NOTE, SKILL, assert_nothing_got_out, assert_refused
from host.stage import NO, YES, Person, on_disk
from rules import rule
from skillwire.host.approvals import Answer, Policy, Rule
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.host.origin import HostileOrigin

pytestmark = pytest.mark.anyio

ASK = Policy([Rule("ask", kind="dynamic")])


@rule("V7", "A2")
async def test_a_skill_that_turns_dynamic_to_escape_its_digests_is_declined(
    evil: HostileOrigin, state: Path
) -> None:
    """And its approval is gone."""
    async with evil.host(state) as host:
        await host.load("flat")
        evil.make_dynamic()
        evil.swap(NOTE, EVIL_NOTE)
        await host.relist("evil")
        result = await host.read("flat", "notes.md")
        assert_refused(result, "skill-changed", "A2")
        again = await host.load("flat")
        assert_refused(again, "not-approved", "V7")
        assert list(await host.store.approvals()) == []
        await assert_nothing_got_out(host, state, result, again)


@rule("V7")
async def test_a_rule_that_allows_loading_does_not_allow_dynamic_skills(web: HostileOrigin, state: Path) -> None:
    """An explicit choice is one for this kind."""
    web.make_dynamic()
    async with web.host(state, policy=Policy([Rule("allow"), Rule("allow", kind="execute")])) as host:
        assert_refused(await host.load("flat"), "not-approved", "V7")
        assert web.read_uris() == []


@rule("V7", "C1")
async def test_a_yes_to_a_dynamic_skill_is_for_once_and_leaves_nothing(evil: HostileOrigin, state: Path) -> None:
    """Whatever the answer says about remembering; no byte of it is on disk."""
    evil.make_dynamic()
    evil.files[SKILL] = skill_md("flat", body="made up just now\n")
    person = Person(Answer(yes=True, remember=True), NO)
    async with evil.host(state, person=person, policy=ASK) as host:
        assert "made up just now" in (await host.load("flat")).text
        assert "notes" in (await host.read("flat", "notes.md")).text
        assert_refused(await host.load("flat"), "not-approved", "V7")
        assert list(await host.store.approvals()) == []
        assert b"made up just now" not in on_disk(state)


@rule("V7", "A5")
async def test_code_for_a_dynamic_skill_is_granted_for_the_window_only(evil: HostileOrigin, state: Path) -> None:
    """There is no content to bind a grant to."""
    evil.make_dynamic()
    person = Person(YES, YES, YES, NO)
    async with evil.host(state, person=person, policy=ASK) as host:
        await host.load("flat")
        assert await host.gate("Bash") is None
        assert await host.gate("Bash") is None
        host.leave()
        await host.load("flat")
        declined = await host.gate("Bash")
        assert declined is not None
        assert declined.rule == "A5"
        assert person.kinds == ["dynamic", "execute", "dynamic", "execute"]


@rule("E2", "V7")
@pytest.mark.parametrize("field", ["digest", "resources"])
async def test_an_entry_that_leaves_out_what_it_promised_is_none(
    web: HostileOrigin, state: Path, field: str
) -> None:
    """A server whose entries have digests and sizes does not get to leave one out."""
    web.add("other", {"SKILL.md": skill_md("other")})
    broken = web.entries[0]
    if field == "digest":
        del broken["resources"][1]["digest"]
    else:
        del broken["resources"]
    async with web.host(state) as host:
        assert host.state("evil") == "partial"
        assert [skill.name for skill in host.names.skills] == ["own", "other"]


@rule("V4", "V7")
async def test_a_dynamic_skill_is_still_held_to_its_frontmatter(web: HostileOrigin, state: Path) -> None:
    """What was listed is what is loaded, as far as anything was said."""
    web.make_dynamic()
    web.claim(description="Harmless.")
    async with web.host(state, policy=Policy([Rule("allow", kind="dynamic")])) as host:
        assert_refused(await host.load("flat"), "frontmatter-mismatch", "V4")
