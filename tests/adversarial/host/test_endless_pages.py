"""Listings that never end: B3, B2, L2."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import SMALL
from adversarial.host.origin import assert_nothing_got_out, assert_refused
from rules import rule
from skillwire.host.approvals import Policy, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.host.origin import HostileOrigin

pytestmark = pytest.mark.anyio


def endless(skills: list[Any], *, cursors: Any = None) -> Any:
    """A page, and always another with something new that is of no use."""
    numbers, others = cursors or map(str, count()), count()

    def page(params: dict[str, Any]) -> dict[str, Any]:
        found = [{"uri": f"no{next(others)}"}] if params.get("cursor") else skills
        return {"skills": found, "nextCursor": next(numbers)}

    return page


def failed(host: Any) -> tuple[str, str]:
    error = host.registry.get("evil").error
    assert error is not None
    assert error.hint
    return error.reference, error.rule


@rule("B3", "L2")
async def test_pages_without_end_are_cut_off_and_what_came_before_counts(evil: HostileOrigin, state: Path) -> None:
    """The origin says that it is partial and why, and its honest skill can be used."""
    evil.answers["skills/list"] = endless(evil.entries)
    async with evil.host(state) as host:
        assert (host.state("evil"), failed(host)) == ("partial", ("listing-too-long", "B3"))
        assert evil.methods().count("skills/list") <= 2 * SMALL.max_pages
        assert not (await host.load("flat")).is_error


@rule("B3")
async def test_a_cursor_that_comes_twice_ends_the_listing(evil: HostileOrigin, state: Path) -> None:
    evil.answers["skills/list"] = endless(evil.entries, cursors=map(str, [1, 2, 1] * 5))
    async with evil.host(state) as host:
        assert (host.state("evil"), failed(host)) == ("partial", ("cursor-repeats", "B3"))


@rule("B3", "L2")
async def test_pages_of_nothing_are_no_listing(web: HostileOrigin, state: Path) -> None:
    """Nothing is known of it; the person's own skills are not kept waiting."""
    web.answers["skills/list"] = endless([])
    async with web.host(state, calm=False) as host:
        await host.until(lambda: host.state("evil") == "partial")
        assert failed(host) == ("page-repeats", "B3")
        assert host.registry.get("evil").known == ()
        assert not (await host.load("own")).is_error
        assert_refused(await host.load("flat"), "skill-unknown", "N1")


@rule("B3")
async def test_more_skills_than_anybody_has_are_not_listed(web: HostileOrigin, state: Path) -> None:
    """What came within the bound is, and it is said that there was more."""
    crowd = [
        {
            "uri": f"skill://s{number}/SKILL.md",
            "frontmatter": {"name": f"s{number}", "description": "x"},
            "resources": "dynamic",
        }
        for number in range(SMALL.max_entries)
    ]
    pages = {None: {"skills": web.entries, "nextCursor": "2"}, "2": {"skills": crowd}}
    web.answers["skills/list"] = lambda params: pages[params.get("cursor")]
    async with web.host(state) as host:
        assert (host.state("evil"), failed(host)) == ("partial", ("listing-too-long", "B3"))
        within = [f"s{number}" for number in range(SMALL.max_entries - 1)]
        assert {skill.name for skill in host.names.skills} == {"own", "flat", *within}


@rule("L3", "B3")
@pytest.mark.parametrize("cursor", ["x" * 101, 7], ids=["too-long", "no-text"])
async def test_a_cursor_that_is_no_short_text_ends_the_listing(
    web: HostileOrigin, state: Path, cursor: Any
) -> None:
    """It would be sent back."""
    web.answers["skills/list"] = {"skills": web.entries, "nextCursor": cursor}
    async with web.host(state) as host:
        assert (host.state("evil"), failed(host)) == ("partial", ("answer-invalid", "L3"))


@rule("B3", "D1")
async def test_directories_without_end_are_cut_off(web: HostileOrigin, state: Path) -> None:
    """Where a server has to be asked for them."""
    web.make_dynamic()
    web.list_directories()
    numbers = count()
    web.answers["resources/directory/read"] = lambda params: {"resources": [], "nextCursor": str(next(numbers))}
    async with web.host(state, policy=Policy([Rule("allow", kind="dynamic")])) as host:
        await host.load("flat")
        result = await host.ls("flat")
        assert_refused(result, "page-repeats", "B3")
        await assert_nothing_got_out(host, state, result)


@rule("B2")
async def test_a_listing_that_eats_the_servers_budget_is_stopped(web: HostileOrigin, state: Path) -> None:
    """Pages below every other bound, and too much together."""
    numbers = count()
    padding = "x" * 900_000

    def page(params: dict[str, Any]) -> dict[str, Any]:
        number = next(numbers)
        entry = {**web.entries[0], "x": padding}
        found = {"uri": f"no{number}"} if params.get("cursor") else entry
        return {"skills": [found], "x": padding, "nextCursor": f"{number}"}

    web.answers["skills/list"] = page
    limits = SMALL.__class__(
        **{**{name: getattr(SMALL, name) for name in SMALL.__slots__}, "max_message_bytes": 4 << 20}
    )
    async with web.host(state, calm=False, limits=limits) as host:
        await host.until(lambda: host.registry.get("evil").error is not None)
        assert failed(host) == ("server-budget", "B2")
        assert web.sent < 16 << 20
