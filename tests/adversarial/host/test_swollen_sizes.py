"""Sizes that swell: B1, B2, V1, E6, C1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adversarial.adversary import KIB, MIB, SMALL
from adversarial.expecting import memory_below
from adversarial.host.origin import (
    CANARY,
    NOTE,
    SKILL,
    assert_nothing_got_out,
    assert_refused,
    is_acting,
)
from adversarial.speaking import Raw, endless
from host.stage import ALLOW, Person
from rotation import every_setting
from rules import rule
from skillwire.host.approvals import Policy, Rule
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.host.origin import HostileOrigin

pytestmark = pytest.mark.anyio

SWOLLEN = (CANARY + "\n").encode() * 5000


@rule("B1")
async def test_a_file_that_claims_too_much_is_not_asked_for(evil: HostileOrigin, state: Path) -> None:
    """The claim alone is enough."""
    evil.entries[0]["resources"][1]["size"] = 64 * KIB + 1
    async with evil.host(state) as host:
        await host.load("flat")
        result = await host.read("flat", "notes.md")
        assert_refused(result, "file-too-large", "B1")
        assert evil.read_uris() == [SKILL]


@rule("B1")
async def test_instructions_that_claim_too_much_are_not_asked_for(web: HostileOrigin, state: Path) -> None:
    """Nor is a person."""
    web.entries[0]["resources"][0]["size"] = 1 << 40
    person = Person()
    async with web.host(state, person=person) as host:
        assert_refused(await host.load("flat"), "file-too-large", "B1")
        assert (web.read_uris(), person.asked) == ([], [])


@rule("V1")
@pytest.mark.parametrize("size", [5, 7])  # of 6
async def test_a_size_that_is_not_the_bytes_is_refused(web: HostileOrigin, state: Path, size: int) -> None:
    """The digest is right, the size is not."""
    web.entries[0]["resources"][1]["size"] = size
    async with web.host(state) as host:
        await host.load("flat")
        result = await host.read("flat", "notes.md")
        assert_refused(result, "size-mismatch", "V1")
        assert not is_acting(host)


@rule("V1", "B1")
async def test_a_file_that_swells_after_approval_is_refused(evil: HostileOrigin, state: Path) -> None:
    """More than promised is a mismatch before it is decoded."""
    async with evil.host(state) as host:
        await host.load("flat")
        evil.swap(NOTE, SWOLLEN[: 50 * KIB])
        result = await host.read("flat", "notes.md")
        assert_refused(result, "size-mismatch", "V1")
        await assert_nothing_got_out(host, state, result)


@rule("B1")
@every_setting
@pytest.mark.parametrize("uri", [SKILL, NOTE], ids=["SKILL.md", "notes.md"])
async def test_an_unbounded_answer_is_cut_off(evil: HostileOrigin, state: Path, uri: str) -> None:
    """While it is read; the host stays small, and nobody is asked about half a skill."""
    person = Person()
    async with evil.host(state, person=person) as host:
        if uri == NOTE:
            await host.load("flat")
        evil.answers["resources/read"] = Raw(endless)
        with memory_below(32 * MIB):
            result = await (host.load("flat") if uri == SKILL else host.read("flat", "notes.md"))
        assert_refused(result, "message-too-large", "B1")
        assert is_acting(host) == (uri == NOTE)
        await assert_nothing_got_out(host, state, result)


@rule("B1")
async def test_a_dynamic_file_is_bounded_too(web: HostileOrigin, state: Path) -> None:
    """Where nothing is promised."""
    web.make_dynamic()
    async with web.host(state, policy=Policy([Rule("allow", kind="dynamic")])) as host:
        await host.load("flat")
        web.swap(NOTE, SWOLLEN + b"x" * 64 * KIB)
        result = await host.read("flat", "notes.md")
        assert_refused(result, "file-too-large", "B1")
        await assert_nothing_got_out(host, state, result)


@rule("B2")
@every_setting
async def test_the_budget_of_a_server_is_for_one_question(evil: HostileOrigin, state: Path) -> None:
    """All answers together exceed it: a host that runs for days reads many files."""
    limits = replace(SMALL, max_server_bytes=512 * KIB)
    pad = "x" * 50_000
    evil.add("fat", {"SKILL.md": skill_md("fat"), **{f"{n}.md": (pad + str(n)).encode() for n in range(20)}})
    async with evil.host(state, policy=ALLOW, limits=limits) as host:
        await host.load("fat")
        results = [await host.read("fat", f"{number}.md") for number in range(20)]
        assert [result.refusal for result in results] == [None] * 20


@rule("E6", "B1")
async def test_a_skill_of_too_many_files_is_left_out(web: HostileOrigin, state: Path) -> None:
    """And the origin says that something was."""
    for number in range(SMALL.max_resources):
        web.add_file(f"{number}.md")
    async with web.host(state) as host:
        assert host.state("evil") == "partial"
        assert_refused(await host.load("flat"), "skill-unknown", "N1")


@rule("B1", "F3")
async def test_frontmatter_that_swells_fills_nobodys_context(web: HostileOrigin, state: Path) -> None:
    """The list of skills stays as small as the format says."""
    web.claim(description="x" * 900_000, more="y" * 50_000)
    async with web.host(state) as host:
        assert len(host.catalog_prompt()) < 4000


@rule("B1")
@pytest.mark.parametrize("path", ["x" * 100_000, "skill://flat/" + "x" * 100_000], ids=["path", "uri"])
async def test_a_path_that_swells_is_refused_in_few_words(web: HostileOrigin, state: Path, path: str) -> None:
    """Models repeat what skills tell them to; a log keeps what fits."""
    async with web.host(state, policy=ALLOW) as host:
        await host.load("flat")
        for result in (await host.read("flat", path), await host.ls("flat", path), await host.load(path)):
            assert result.refusal is not None
            assert len(result.refusal.message) < 1000
        assert all(len(line.facts.get("what", "")) <= 300 for line in await host.lines())


@rule("B1", "C1")
async def test_the_cache_stays_within_its_bound(web: HostileOrigin, state: Path) -> None:
    """A skill that fills the disk is used and not kept."""
    from skillwire.store.content_cache import ContentCache

    big = b"x" * 50_000
    web.add("fat", {"SKILL.md": skill_md("fat"), **{f"{number}.md": big + b"%d" % number for number in range(20)}})
    async with web.host(state, policy=ALLOW) as host:
        small = ContentCache(state / "small", forbidden=(), max_bytes=500_000)
        host.registry.get("evil")._cache = small  # type: ignore[union-attr]
        await host.load("fat")
        for number in range(20):
            assert not (await host.read("fat", f"{number}.md")).is_error
        assert small.usage().bytes <= 500_000
