"""Skills that point at other origins: O3, V2, U6."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.host.origin import PRIVATE, SKILL, HostileOrigin, assert_nothing_got_out, assert_refused
from host.stage import NO, YES, Person
from rules import rule
from skillwire.host.approvals import Policy, Rule
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

SECRET = "skill://bank/secret.md"
ASK_ACROSS = Policy([Rule("ask", kind="cross-origin")])
OUTSIDE, INVALID, NO_FILE = ("file-outside", "V2"), ("uri-invalid", "U7"), ("file-unknown", "U6")
SPELLINGS = {
    SECRET: OUTSIDE,
    "SKILL://bank/secret.md": OUTSIDE,
    "skill://bank/%73ecret.md": OUTSIDE,
    "skill://bank@flat/secret.md": OUTSIDE,
    "https://127.0.0.1/secret.md": OUTSIDE,
    "github://flat/notes.md": OUTSIDE,
    "skill://flat/../bank/secret.md": INVALID,
    "skill://flat/%2e%2e/bank/secret.md": INVALID,
    "bank:skill://bank/secret.md": INVALID,
    "victim:skill://bank/secret.md": INVALID,
    "victim:bank": NO_FILE,
    "//bank/secret.md": NO_FILE,
    "http:secret.md": NO_FILE,
    "skill:/bank/secret.md": NO_FILE,
    "skill:bank/secret.md": NO_FILE,
    "../bank/secret.md": ("link-outside", "U6"),
    "\\\\bank\\secret.md": ("machine-file", "O3"),
}


@pytest.fixture
def victim() -> HostileOrigin:
    """Another server of the same person's, with a skill that they approved."""
    bank = HostileOrigin()
    bank.entries.clear()
    bank.add("bank", {"SKILL.md": skill_md("bank"), "secret.md": PRIVATE.encode()})
    return bank


@rule("O3", "V2", "U6")
@pytest.mark.parametrize("kind", ["listed", "dynamic"])
async def test_no_spelling_of_a_place_elsewhere_reads_it(
    evil: HostileOrigin, victim: HostileOrigin, state: Path, kind: str
) -> None:
    """Nothing reaches the other server, and nothing outside the skill is asked of this one."""
    if kind == "dynamic":
        evil.make_dynamic()
    policy = Policy([Rule("allow"), Rule("allow", kind="dynamic")])
    async with victim.serving() as target, evil.host(state, policy=policy) as host:
        await host.add_server("victim", target)
        await host.calm("victim")
        await host.load("bank")
        await host.load("flat")
        for path, expected in SPELLINGS.items():
            result = await host.read("flat", path)
            elsewhere = kind == "dynamic" and expected == OUTSIDE
            assert_refused(result, *(("cross-origin", "O3") if elsewhere else expected))
            assert (evil.read_uris(), victim.read_uris()) == ([SKILL], ["skill://bank/SKILL.md"]), path
            await assert_nothing_got_out(host, state, result)


@rule("O3")
async def test_naming_the_other_origin_is_declined_unless_somebody_says_yes_to_both(
    evil: HostileOrigin, victim: HostileOrigin, state: Path
) -> None:
    """By default without a question; else with one that names both."""
    async with victim.serving() as target, evil.host(state) as host:
        await host.add_server("victim", target)
        await host.calm("victim")
        await host.load("flat")
        result = await host.read("flat", SECRET, origin="victim")
        assert_refused(result, "not-approved", "O3")
        assert victim.read_uris() == []
        await assert_nothing_got_out(host, state, result)


@rule("O3")
async def test_a_no_to_reading_elsewhere_is_a_no(web: HostileOrigin, victim: HostileOrigin, state: Path) -> None:
    """Asked with the skill, its origin, the other origin and the file."""
    person = Person()
    async with victim.serving() as target, web.host(state, person=person, policy=ASK_ACROSS) as host:
        await host.add_server("victim", target)
        await host.calm("victim")
        await host.load("flat")
        person.answers[:] = [NO]
        result = await host.read("flat", SECRET, origin="victim")
        assert_refused(result, "not-approved", "O3")
        request = person.asked[-1]
        assert (request.kind, request.origin, request.target) == ("cross-origin", "evil", f"victim {SECRET}")
        assert victim.read_uris() == []
        await assert_nothing_got_out(host, state, result)


@rule("O3")
async def test_a_skill_cannot_read_the_persons_own_folder(evil: HostileOrigin, state: Path) -> None:
    """A local skill needs no approval, and reading it for a server's skill does."""
    path = "skill://own/private.md"
    async with evil.host(state) as host:
        await host.load("flat")
        results = [await host.read("flat", path, origin="mine"), await host.read("flat", path)]
        assert_refused(results[0], "not-approved", "O3")
        assert_refused(results[1], "file-outside", "V2")
        await assert_nothing_got_out(host, state, *results)


@rule("O1", "O3")
@pytest.mark.parametrize(
    ("origin", "expected"),
    [("nobody", ("origin-unknown", "O1")), ("", ("origin-unknown", "O1")), ("mine", ("file-unknown", "O3"))],
    ids=["unknown", "empty", "no-such-file"],
)
async def test_an_origin_or_a_file_that_is_not_there_is_not_guessed(
    web: HostileOrigin, state: Path, origin: str, expected: tuple[str, str]
) -> None:
    """Before anybody is asked."""
    person = Person()
    async with web.host(state, person=person, policy=ASK_ACROSS) as host:
        await host.load("flat")
        result = await host.read("flat", "skill://own/nothing.md", origin=origin)
        assert_refused(result, *expected)
        assert person.kinds == ["load"]


@rule("O3", "A1", "W2")
async def test_a_yes_to_read_elsewhere_does_not_load_what_is_there(
    web: HostileOrigin, victim: HostileOrigin, state: Path
) -> None:
    """The other skill needs an approval of its own; a no to that is a no to the read."""
    person = Person()
    async with victim.serving() as target, web.host(state, person=person, policy=ASK_ACROSS) as host:
        await host.add_server("victim", target)
        await host.calm("victim")
        await host.load("flat")
        person.answers[:] = [YES, NO]
        result = await host.read("flat", SECRET, origin="victim")
        assert_refused(result, "not-approved", "A1")
        assert SECRET not in victim.read_uris()
        await assert_nothing_got_out(host, state, result)


@rule("O3", "V1")
async def test_a_victim_that_lies_does_not_shut_the_skill_that_asked(
    web: HostileOrigin, victim: HostileOrigin, state: Path
) -> None:
    """A mismatch over there says nothing of what was loaded here."""
    victim.swap(SECRET, b"rotated")
    policy = Policy([Rule("allow"), Rule("allow", kind="cross-origin")])
    async with victim.serving() as target, web.host(state, policy=policy) as host:
        await host.add_server("victim", target)
        await host.calm("victim")
        await host.load("flat")
        assert_refused(await host.read("flat", SECRET, origin="victim"), "size-mismatch", "V1")
        assert not (await host.read("flat", "notes.md")).is_error
