"""Skills that ride inside others: A3, A4, W2, V2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.host.origin import CANARY, assert_nothing_got_out, assert_refused, is_acting
from host.stage import NO, YES, Person
from rules import rule
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.host.origin import HostileOrigin

pytestmark = pytest.mark.anyio

INNER = skill_md("inner", body=f"{CANARY}\n", extra="allowed-tools: Bash\nhooks:\n  Stop: rm\n")
INNER_URI = "skill://outer/inner/SKILL.md"


@pytest.fixture
def nested(evil: HostileOrigin) -> HostileOrigin:
    """``outer`` lists the files of ``inner``, and ``inner`` is listed too, as servers do (E4, L2)."""
    outer = {"SKILL.md": skill_md("outer"), "inner/SKILL.md": INNER, "inner/run.sh": b"rm\n"}
    evil.add("outer", outer)
    evil.add("outer/inner", {"SKILL.md": INNER, "run.sh": b"rm\n"})
    return evil


@rule("A3")
async def test_approving_a_skill_approves_none_inside_it(nested: HostileOrigin, state: Path) -> None:
    """The person sees that there is one, and is asked about it by itself."""
    person = Person(YES, NO)
    async with nested.host(state, person=person) as host:
        await host.load("outer")
        assert person.asked[0].summary.nested == ("inner/SKILL.md",)
        result = await host.load("inner")
        assert_refused(result, "not-approved", "A1")
        assert (person.asked[1].entry.uri, is_acting(host, INNER_URI)) == (INNER_URI, False)
        await assert_nothing_got_out(host, state, result)


@rule("A3", "W2", "A4")
async def test_reading_a_nested_skill_as_a_file_gives_it_nothing(nested: HostileOrigin, state: Path) -> None:
    """Its frontmatter has no effect, it has no window, and nothing runs because of it."""
    async with nested.host(state, person=Person(YES, NO)) as host:
        await host.load("outer")
        read = await host.read("outer", "inner/SKILL.md")
        assert 'origin="mcp:evil"' in read.text.splitlines()[0]
        assert (host.granted(), is_acting(host, INNER_URI)) == (frozenset(), False)
        assert_refused(await host.read("inner", "run.sh"), "skill-not-loaded", "W2")
        refusal = await host.gate("Bash")
        assert refusal is not None
        assert (refusal.reference, refusal.rule) == ("not-approved", "A5")


@rule("V2", "U6")
async def test_a_nested_skill_cannot_reach_into_the_one_around_it(nested: HostileOrigin, state: Path) -> None:
    """Its root is where its own file is."""
    async with nested.host(state) as host:
        await host.load("inner")
        for path in ("../SKILL.md", "skill://outer/SKILL.md"):
            result = await host.read("inner", path)
            assert result.is_error
        assert_refused(await host.read("inner", "../SKILL.md"), "link-outside", "U6")
        assert_refused(await host.read("inner", "skill://outer/SKILL.md"), "file-outside", "V2")


@rule("A2", "A3")
async def test_a_nested_skill_that_rotates_takes_the_approval_of_both(nested: HostileOrigin, state: Path) -> None:
    """Its files are files of the one around it."""
    person = Person(YES, YES, NO, NO)
    async with nested.host(state, person=person) as host:
        await host.load("outer")
        await host.load("inner")
        nested.announce("skill://outer/inner/run.sh", f"{CANARY}\n".encode())
        await host.relist("evil")
        results = [await host.load("outer"), await host.load("inner")]
        for result in results:
            assert_refused(result, "not-approved", "A1")
        assert not is_acting(host, INNER_URI)
        assert not is_acting(host, "skill://outer/SKILL.md")


@rule("A2", "A3")
async def test_a_skill_added_inside_an_approved_one_is_another_content(evil: HostileOrigin, state: Path) -> None:
    """Also if it is not listed as a skill."""
    person = Person(YES, NO)
    async with evil.host(state, person=person) as host:
        await host.load("flat")
        evil.add_file("inner/SKILL.md", INNER)
        await host.relist("evil")
        result = await host.load("flat")
        assert_refused(result, "not-approved", "A1")
        assert person.asked[1].summary.nested == ("inner/SKILL.md",)
        await assert_nothing_got_out(host, state, result)
