"""An upstream that dies, hangs, loops, lies or floods: nothing is lost or silently empty, and no request waits."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from adversarial.adversary import EXTENSION, SMALL
from adversarial.expecting import refused
from adversarial.speaking import Refusal
from gateway.stage import (
    SECONDS,
    flat_skill,
    gateway_of,
    hostile,
    paths,
    source,
    until,
    until_state,
)
from host.short import speak_plain
from host.stage import make_dynamic
from rules import rule
from skillwire import MemoryCatalog
from skillwire.client.bounds import too_slow
from skillwire.errors import LimitError, NotFoundError, UpstreamError
from skillwire.wire import meta as provenance
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
NOTES = "skill://acme/flat/notes.md"
NOWHERE = {"url": "http://127.0.0.1:1/mcp"}


async def references(gateway: Any) -> list[str]:
    return [problem.reference for problem in await gateway.catalog.problems()]


@rule("L2", "C1")
@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_an_upstream_that_dies_leaves_its_listing_and_what_was_read(state: Path, transport: str) -> None:
    """The last good listing, marked stale; content from the cache; other errors name the upstream."""
    server = hostile(transport=transport)
    async with AsyncExitStack() as serving:
        target = await serving.enter_async_context(server.serving())
        servers = {"acme": target, "other": MemoryCatalog([flat_skill("fine")])}
        async with gateway_of(state, servers) as gateway:
            await gateway.catalog.read_file(NOTES)
            await serving.aclose()
            with pytest.raises(UpstreamError, match="'acme'"):
                await gateway.catalog.read_file("skill://acme/flat/SKILL.md")
            await until_state(source(gateway, "acme"), "stale")
            assert await paths(gateway.catalog) == ["acme/flat", "other/fine"]
            assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"
            entry = await gateway.catalog.get_skill("skill://acme/flat/SKILL.md")
            assert entry.meta.meta[provenance.STALE_SINCE]
            [problem] = await gateway.catalog.problems()
            assert problem.reference == "upstream-stale"
            assert "connection-lost" in problem.message
            assert (await gateway.catalog.read_file("skill://other/fine/notes.md")).data == b"notes\n"


@rule("C1")
async def test_a_file_is_fetched_once(state: Path) -> None:
    server = hostile()
    async with gateway_of(state, {"acme": server}) as gateway:
        for _ in range(3):
            assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"
        assert gateway.cache.usage().files == 1
    assert len([ask for ask in server.asked if ask.method == "resources/read"]) == 1


@rule("L2")
async def test_a_restart_while_the_upstream_is_away_still_lists(state: Path) -> None:
    """From the store, marked stale since it was last heard."""
    async with gateway_of(state, {"acme": MemoryCatalog([flat_skill()])}) as gateway:
        await gateway.catalog.read_file(NOTES)
    async with gateway_of(state, {"acme": NOWHERE}) as gateway:
        assert await paths(gateway.catalog) == ["acme/flat"]
        assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"
        entry = await gateway.catalog.get_skill("skill://acme/flat/SKILL.md")
        assert str(entry.meta.meta[provenance.STALE_SINCE]).endswith("Z")
        assert await references(gateway) == ["upstream-stale"]


@rule("L2")
async def test_an_upstream_that_was_never_there_is_not_silently_empty(state: Path) -> None:
    """A problem for the operator, an error with its label for requests, and no effect on others."""
    async with gateway_of(state, {"acme": NOWHERE, "other": MemoryCatalog([flat_skill()])}) as gateway:
        await until_state(source(gateway, "acme"), "unreachable")
        assert await paths(gateway.catalog) == ["other/flat"]
        [problem] = await gateway.catalog.problems()
        assert (problem.reference, problem.file) == ("upstream-away", "acme")
        for ask in (gateway.catalog.get_skill, gateway.catalog.read_file):
            with pytest.raises(UpstreamError, match="'acme'"):
                await ask("skill://acme/flat/SKILL.md")
        with pytest.raises(UpstreamError, match="'acme'"):
            await gateway.catalog.read_directory("skill://acme/flat")
        with pytest.raises(NotFoundError):
            await gateway.catalog.get_skill("skill://nobody/flat/SKILL.md")


@rule("S1")
async def test_an_upstream_that_comes_back_is_served_again(state: Path) -> None:
    """Listeners are notified."""
    server = hostile()
    async with gateway_of(state, {"acme": NOWHERE}, settle=False) as gateway:
        await until_state(source(gateway, "acme"), "unreachable")
        async with server.serving() as url:
            source(gateway, "acme")._link._target = url
            await until(gateway.catalog, lambda: has(gateway, "acme/flat"))
            assert source(gateway, "acme").state == "complete"
            assert await references(gateway) == []


async def has(gateway: Any, path: str) -> bool:
    return path in await paths(gateway.catalog)


@rule("L2", "B3")
async def test_a_listing_that_breaks_off_does_not_take_the_place_of_a_whole_one(state: Path) -> None:
    """Pages that never end, and pages that fail, keep the last good listing."""
    server = hostile()
    server.add("second", {"SKILL.md": skill_md("second")})
    async with gateway_of(state, {"acme": server}) as gateway:
        acme = source(gateway, "acme")
        server.answers["skills/list"] = lambda params: {"skills": server.entries[:1], "nextCursor": "again"}
        await acme.refresh()
        assert await paths(gateway.catalog) == ["acme/flat", "acme/second"]
        assert acme.state == "stale"
        assert "cursor-repeats" in (await gateway.catalog.problems())[0].message
        del server.answers["skills/list"]
        await acme.refresh()
        assert acme.state == "complete"


@rule("L2", "B3")
async def test_a_listing_that_never_ends_does_not_take_the_place_of_a_whole_one(state: Path) -> None:
    """However many skills it invents; the one that was cut at first takes the next, cut as well."""
    server, numbers = hostile(), count()

    def invented(_: Any) -> dict[str, Any]:
        name = f"s{next(numbers)}"
        return {"skills": [{**server.add(name, {"SKILL.md": skill_md(name)}, listed=False)}], "nextCursor": name}

    limits = replace(SMALL, max_pages=5)
    async with server.serving() as url, gateway_of(state, {"acme": url}, limits=limits) as gateway:
        acme = source(gateway, "acme")
        server.answers["skills/list"] = invented
        await acme.refresh()
        assert await paths(gateway.catalog) == ["acme/flat"]
        assert acme.state == "stale"
        assert await references(gateway) == ["upstream-stale"]
    async with server.serving() as url, gateway_of(state / "other", {"acme": url}, limits=limits) as gateway:
        before = await paths(gateway.catalog)
        await source(gateway, "acme").refresh()
        assert before
        assert not set(before) & set(await paths(gateway.catalog))
        assert await references(gateway) == ["upstream-partial"]


@rule("B3")
@pytest.mark.parametrize("speak", ["pages", "one page", "index"])
async def test_skills_beyond_the_limit_of_the_policy_are_cut_off_and_reported(state: Path, speak: str) -> None:
    """It is our limit, so the skills before it are served."""
    server = hostile()
    for number in range(3):
        server.add(f"s{number}", {"SKILL.md": skill_md(f"s{number}")})
    pages = [{"skills": server.entries[:2], "nextCursor": "two"}, {"skills": server.entries[2:]}]
    if speak == "pages":
        server.answers["skills/list"] = lambda params: pages["cursor" in params]
    if speak == "index":
        server.add_index(*({"frontmatter": it["frontmatter"], "url": it["uri"]} for it in server.entries))
    async with gateway_of(state, {"acme": server}, "[upstream.acme]\nmax-skills = 3") as gateway:
        assert await paths(gateway.catalog) == ["acme/flat", "acme/s0", "acme/s1"]
        assert await references(gateway) == ["upstream-partial"]


@rule("B3")
async def test_a_bound_that_the_policy_lowers_holds_for_what_was_listed_whole(state: Path) -> None:
    """Also while the upstream is away."""
    server = hostile()
    server.add("second", {"SKILL.md": skill_md("second")})
    async with server.serving() as url:
        async with gateway_of(state, {"acme": url}) as gateway:
            assert await paths(gateway.catalog) == ["acme/flat", "acme/second"]
        async with gateway_of(state, {"acme": url}, "[upstream.acme]\nmax-skills = 1") as gateway:
            await until_state(source(gateway, "acme"), "partial")
            assert await paths(gateway.catalog) == ["acme/flat"]
    async with gateway_of(state, {"acme": url}, "[upstream.acme]\nmax-skills = 1") as gateway:
        assert await paths(gateway.catalog) == ["acme/flat"]


@rule("B3")
async def test_how_many_skills_there_may_be_is_no_bound_for_files(state: Path) -> None:
    """The resources of a server without a skill listing, and directories."""
    server = hostile()
    speak_plain(server)
    async with gateway_of(state, {"acme": server}, "[upstream.acme]\nmax-skills = 1") as gateway:
        assert await paths(gateway.catalog) == ["acme/flat"]
        assert list(await gateway.catalog.problems()) == []


@rule("B1", "B2")
async def test_bytes_are_bounded_for_each_upstream(state: Path) -> None:
    """One file, and everything that one question brings; the others are not affected."""
    big = b"---\nname: big\ndescription: x\n---\n" + b"x" * 20_000
    server, other = hostile(), hostile()
    server.add("big", {"SKILL.md": big, "a": b"a" * 9000, "b": b"b" * 9000, "c": b"c" * 9000})
    policy = "[upstream.acme]\nmax-file-bytes = 10000\nmax-bytes = 24000"
    async with gateway_of(state, {"acme": server, "other": other}, policy) as gateway:
        with pytest.raises(LimitError, match=r"skill://acme/big/SKILL\.md") as caught:
            await gateway.catalog.read_file("skill://acme/big/SKILL.md")
        assert caught.value.reference == "file-too-large"
        assert "max-file-bytes" in caught.value.hint
        assert "[upstream.acme]" in caught.value.hint
        assert "skill://big/SKILL.md" not in server.read_uris()
        for name in "abc":
            await gateway.catalog.read_file(f"skill://acme/big/{name}")
        server.answers["skills/list"] = {"skills": [], "_meta": {"x": "x" * 25_000}}
        source(gateway, "acme")._link.refresh_soon()
        await until_state(source(gateway, "acme"), "stale")
        assert (await gateway.catalog.read_file("skill://other/flat/notes.md")).data == b"notes\n"


@rule("B4")
async def test_an_upstream_that_hangs_is_left_alone_after_a_few_times(state: Path) -> None:
    """The circuit breaker. Listings and cached files are still served."""
    server = hostile()

    async def time_out(_: object) -> None:
        raise too_slow(30)

    limits = replace(SMALL, first_rest_seconds=1000.0, longest_rest_seconds=1000.0)
    async with gateway_of(state, {"acme": server}, limits=limits) as gateway:
        await gateway.catalog.read_file(NOTES)
        for _ in range(3):
            with pytest.raises(UpstreamError):
                await source(gateway, "acme")._link.ask(time_out)
        asked = len(server.read_uris())
        for _ in range(50):
            with pytest.raises(UpstreamError, match="'acme'"):
                await gateway.catalog.read_file("skill://acme/flat/SKILL.md")
        assert len(server.read_uris()) == asked
        assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"
        assert await paths(gateway.catalog) == ["acme/flat"]


@rule("B4", "L2")
async def test_an_upstream_that_hangs_during_listing_does_not_delay_others(state: Path) -> None:
    """Within its time limit it is one that was never there; the others are served."""
    server = hostile()

    async def never(params: dict[str, Any]) -> None:
        await anyio.sleep_forever()

    server.answers["skills/list"] = never
    servers = {"acme": server, "other": MemoryCatalog([flat_skill()])}
    async with gateway_of(state, servers, "[upstream.acme]\ntimeout = 0.2") as gateway:
        with anyio.fail_after(SECONDS):
            assert await paths(gateway.catalog) == ["other/flat"]
        await until_state(source(gateway, "acme"), "unreachable")
        assert "timed-out" in (await gateway.catalog.problems())[0].message


async def test_a_refusal_is_an_answer_and_does_not_trip_the_breaker(state: Path) -> None:
    server = hostile()
    server.answers["resources/read"] = Refusal(-32603, "broken")
    async with gateway_of(state, {"acme": server}) as gateway:
        for _ in range(5):
            with pytest.raises(UpstreamError):
                await gateway.catalog.read_file(NOTES)
        del server.answers["resources/read"]
        assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"


@rule("S1", "B4")
async def test_a_server_that_never_answers_to_listening_is_still_asked_for_news(state: Path) -> None:
    """A request to listen may be taken and never answered."""
    server = hostile()

    async def never(params: dict[str, Any]) -> None:
        await anyio.sleep_forever()

    server.answers["subscriptions/listen"] = never
    async with gateway_of(state, {"acme": server}) as gateway:
        server.add("second", {"SKILL.md": skill_md("second")})
        await server.until(lambda: "subscriptions/listen" in server.methods())
        await source(gateway, "acme").refresh()
        assert await has(gateway, "acme/second")


@rule("E1", "E5", "F7")
async def test_one_bad_entry_spoils_no_other_and_is_reported(state: Path) -> None:
    server = hostile()
    server.entries += [{"uri": "skill://bad/SKILL.md"}, dict(server.entries[0]), "nonsense"]
    async with gateway_of(state, {"acme": server}) as gateway:
        assert await paths(gateway.catalog) == ["acme/flat"]
        assert sorted(await references(gateway)) == ["entry-invalid", "entry-invalid", "entry-repeated"]


@rule("V3", "R2")
async def test_a_skill_that_is_gone_is_gone(state: Path) -> None:
    """Also between two listings."""
    server = hostile()
    async with gateway_of(state, {"acme": server}) as gateway:
        server.entries.clear()
        server.files.clear()
        with pytest.raises(NotFoundError):
            await gateway.catalog.read_file(NOTES)
        assert await paths(gateway.catalog) == []


@rule("B3", "D1")
async def test_pages_of_an_endless_directory_are_of_one_reading(state: Path) -> None:
    """A client that pages to the end is done, although the upstream has other names whenever it is asked."""
    server, numbers = hostile(), count()
    make_dynamic(server)
    server.capabilities["extensions"][EXTENSION] = {"directoryRead": True}

    def page(_: Any) -> dict[str, Any]:
        names = [f"f{next(numbers):04}" for _ in range(50)]
        return {"resources": [{"uri": f"skill://flat/{name}"} for name in names], "nextCursor": names[0]}

    server.answers["resources/directory/read"] = page
    limits = replace(SMALL, max_pages=5, max_entries=1000)
    async with gateway_of(state, {"acme": server}, limits=limits) as gateway:
        names = [child.name async for child in gateway.catalog.children("skill://acme/flat")]
    assert names == [f"f{number:04}" for number in range(250)]
    assert server.methods().count("resources/directory/read") == 5


BROKEN = {
    "another name": ({"frontmatter": {"name": "other", "description": "D"}}, "U3"),
    "another skill": (
        {"uri": "skill://other/SKILL.md", "frontmatter": {"name": "other", "description": "D"}},
        "G1",
    ),
    "no files": ({"resources": None}, "E2"),
}


@rule("U3", "G1", "E2", "F7")
@pytest.mark.parametrize("case", BROKEN)
async def test_an_entry_that_breaks_a_rule_is_reported_as_such(state: Path, case: str) -> None:
    """An unlisted skill, asked for by its URI. Its upstream is not away."""
    fields, broken = BROKEN[case]
    server = hostile()
    entry = {"uri": "skill://quiet/SKILL.md", "frontmatter": {"name": "quiet", "description": "D"}}
    server.answers["skills/get"] = {"skill": {**entry, "resources": "dynamic", **fields}}
    async with gateway_of(state, {"acme": server}) as gateway:
        with refused(NotFoundError, "skill-unknown"):
            await gateway.catalog.get_skill("skill://acme/quiet/SKILL.md")
        [problem] = await gateway.catalog.problems()
        assert problem.broken == broken
        assert (await gateway.catalog.read_file("skill://acme/flat/notes.md")).data == b"notes\n"


@rule("F3", "F7")
@pytest.mark.parametrize(
    ("description", "reference"),
    [("x" * 1025, "description-too-long"), (" ", "description-blank")],
    ids=["too long", "blank"],
)
async def test_a_description_that_breaks_the_format_is_served_and_reported(
    state: Path, description: str, reference: str
) -> None:
    server = hostile()
    server.entries[0]["frontmatter"]["description"] = description
    async with gateway_of(state, {"acme": server}) as gateway:
        [entry] = [entry async for entry in gateway.catalog.entries()]
        [problem] = await gateway.catalog.problems()
        assert (entry.description, problem.reference, problem.rule) == (description, reference, "F3")
        assert not problem.refuses
        assert source(gateway, "acme").state == "complete"


@rule("B2")
async def test_an_honest_upstream_may_be_listed_again_and_again(state: Path) -> None:
    """The budget is for one question: a gateway that runs for days asks many."""
    server = hostile()
    async with gateway_of(state, {"acme": server}, "[upstream.acme]\nmax-bytes = 10000") as gateway:
        remote = source(gateway, "acme")
        for _ in range(60):
            await remote.refresh()
        assert (remote.state, remote.error) == ("complete", None)
    assert server.methods().count("skills/list") >= 60


@rule("L2", "R2")
async def test_a_read_waits_for_the_first_listing(state: Path) -> None:
    """A client may ask as soon as the gateway listens."""
    async with gateway_of(state, {"acme": hostile()}, settle=False) as gateway:
        with anyio.fail_after(SECONDS):
            assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"


@rule("A1")
async def test_a_directory_of_a_skill_that_is_not_approved_is_hidden_before_the_first_listing(state: Path) -> None:
    async with gateway_of(state, {"acme": hostile()}, 'mode = "admit"', settle=False) as gateway:
        with anyio.fail_after(SECONDS), pytest.raises(NotFoundError):
            await gateway.catalog.read_directory("skill://acme/flat")
