"""Which skills are served: globs, denials, approvals of content, and the messages for the operator."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from gateway.stage import (
    SECONDS,
    client_of,
    flat_skill,
    gateway_of,
    hostile,
    paths,
    small_catalog,
    source,
    until,
)
from host.stage import make_dynamic, rotate
from rules import rule
from skillwire import MemoryCatalog, Skill, SkillHost
from skillwire.catalog.contract import no_directory, no_file, no_skill
from skillwire.errors import NotFoundError, UpstreamError
from skillwire.server.skills import Skills, build_server
from skillwire.skill.approval import contents_of, fingerprint
from trees import SMALL_TREE_SKILLS, skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.gateway.gateway import Gateway

pytestmark = pytest.mark.anyio
FLAT, NOTES = "skill://acme/flat/SKILL.md", "skill://acme/flat/notes.md"
ADMIT = 'mode = "admit"\n'


async def approve(state: Path, target: Any, name: str = "acme:skill://flat/SKILL.md", label: str = "acme") -> str:
    """Approve like ``skillwire approve``: another host with the same store."""
    async with SkillHost.open(servers={label: target}, state=state) as host:
        await host.settle(SECONDS)
        return await host.approve(name)


async def refused(gateway: Gateway) -> None:
    """Every method answers as if the skill did not exist."""
    catalog = gateway.catalog
    for ask, uri, like in (
        (catalog.get_skill, FLAT, no_skill),
        (catalog.read_file, FLAT, no_file),
        (catalog.read_file, NOTES, no_file),
        (catalog.read_directory, "skill://acme/flat", no_directory),
    ):
        with pytest.raises(NotFoundError) as caught:
            await ask(uri)
        assert (caught.value.reference, caught.value.message, caught.value.hint) == (
            like(uri).reference,
            like(uri).message,
            like(uri).hint,
        )
    assert await catalog.peek_skill(FLAT) is None
    assert "acme/flat" not in await paths(catalog)
    assert list(await catalog.suggest("acme/fl")) == []


async def test_globs_and_denials_hold_in_every_mode(state: Path) -> None:
    policy = """
        [upstream.acme]
        skills = ["acme/*", "flat"]
        deny = ["acme/release"]
        [[deny]]
        path = "acme/release/*"
    """
    async with gateway_of(state, {"acme": small_catalog()}, policy) as gateway:
        assert await paths(gateway.catalog) == ["acme/acme/billing/refunds", "acme/flat"]
        for uri in ("skill://acme/windows/SKILL.md", "skill://acme/acme/release/notes.md"):
            with pytest.raises(NotFoundError):
                await gateway.catalog.read_file(uri)
        assert (await gateway.catalog.read_file(FLAT)).data == small_tree()["flat/SKILL.md"]
        assert list(await gateway.catalog.problems()) == []


@rule("A1")
async def test_only_approved_skills_are_admitted(state: Path) -> None:
    """The operator sees the waiting skills with the command to run."""
    server = hostile()
    async with gateway_of(state, {"acme": server}, ADMIT) as gateway:
        await refused(gateway)
        assert server.read_uris() == []
        [problem] = await gateway.catalog.problems()
        assert (problem.reference, problem.rule, problem.skill) == ("approval-missing", "A1", "acme/flat")
        assert problem.hint == "skillwire approvals show acme:skill://flat/SKILL.md"


@rule("A1")
async def test_an_approval_by_skillwire_approve_takes_effect_at_once(state: Path) -> None:
    """The store is shared, so nothing has to be restarted."""
    server = hostile()
    async with server.serving() as url, gateway_of(state, {"acme": url}, ADMIT) as gateway:
        await refused(gateway)
        with gateway.catalog.changes() as changes, anyio.fail_after(SECONDS):
            await approve(state, url)
            assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"
            assert (await anext(changes)).added == {FLAT}
        assert await paths(gateway.catalog) == ["acme/flat"]
        assert list(await gateway.catalog.problems()) == []


@rule("A2")
async def test_a_revoked_approval_takes_effect(state: Path) -> None:
    server = hostile()
    async with server.serving() as url:
        await approve(state, url)
        async with gateway_of(state, {"acme": url}, ADMIT) as gateway:
            assert await paths(gateway.catalog) == ["acme/flat"]
            await gateway.approvals.revoke("acme", "skill://flat/SKILL.md", by="ada", why="asked to")
            await gateway.approval_view.refresh()  # as it does every second
            await until(gateway.catalog, lambda: is_gone(gateway))
            await refused(gateway)


async def is_gone(gateway: Gateway) -> bool:
    return "acme/flat" not in await paths(gateway.catalog)


@rule("A2", "V3")
async def test_a_skill_that_changed_disappears_until_it_is_approved_again(state: Path) -> None:
    """The approval is revoked, in the store too, and does not come back with the old content."""
    server = hostile()
    async with server.serving() as url:
        await approve(state, url)
        async with gateway_of(state, {"acme": url}, ADMIT) as gateway:
            assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"
            rotate(server, "skill://flat/notes.md", b"rotated\n")
            await source(gateway, "acme").refresh()
            await refused(gateway)
            assert await gateway.store.approvals() == []
            assert "revoked" in [line.what for line in await gateway.store.lines()]
            rotate(server, "skill://flat/notes.md", b"notes\n")
            await source(gateway, "acme").refresh()
            await refused(gateway)
            await approve(state, url)
            assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"


@rule("A2", "V1", "V3")
async def test_bytes_that_changed_before_the_listing_did_are_not_served(state: Path) -> None:
    """A mismatch leads to a fresh entry, which is not approved."""
    server = hostile()
    async with server.serving() as url:
        await approve(state, url)
        async with gateway_of(state, {"acme": url}, ADMIT) as gateway:
            assert await paths(gateway.catalog) == ["acme/flat"]
            rotate(server, "skill://flat/notes.md", b"rotated\n")
            with pytest.raises(NotFoundError):
                await gateway.catalog.read_file(NOTES)
            await refused(gateway)


@rule("A2")
async def test_an_approval_of_newer_content_than_the_gateway_has_listed_is_not_revoked(state: Path) -> None:
    """A person may see a change before the gateway does."""
    server = hostile()
    async with server.serving() as url, gateway_of(state, {"acme": url}, ADMIT) as gateway:
        await gateway.catalog.problems()
        acme = source(gateway, "acme")
        held = [entry async for entry in acme.entries()]
        rotate(server, "skill://flat/notes.md", b"rotated\n")
        await approve(state, url)
        acme._table.replace(held)
        acme.seen_at = time.time() - 1000
        await gateway.approval_view.refresh()
        await gateway.upstreams["acme"].gate.waiting()
        assert len(await gateway.store.approvals()) == 1
        await acme.refresh()
        assert (await gateway.catalog.read_file(NOTES)).data == b"rotated\n"


@rule("A1", "A2")
async def test_a_fingerprint_in_the_policy_approves_that_content(state: Path) -> None:
    server = hostile()
    async with gateway_of(state / "look", {"acme": server}) as gateway:
        [entry] = [entry async for entry in source(gateway, "acme").entries()]
        content = fingerprint(contents_of(entry))
    policy = f'{ADMIT}[[approved]]\nupstream = "acme"\npath = "flat"\nfingerprint = "{content}"\n'
    async with gateway_of(state, {"acme": server}, policy) as gateway:
        assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"
        rotate(server, "skill://flat/notes.md", b"rotated\n")
        await source(gateway, "acme").refresh()
        await refused(gateway)


async def test_a_denial_overrides_an_approval(state: Path) -> None:
    server = hostile()
    async with server.serving() as url:
        await approve(state, url)
        async with gateway_of(state, {"acme": url}, f'{ADMIT}[[deny]]\npath = "flat"') as gateway:
            await refused(gateway)
            assert list(await gateway.catalog.problems()) == []


@rule("V7")
async def test_a_dynamic_skill_is_served_when_observing_and_never_admitted(state: Path) -> None:
    """No digests are invented, and no approval can be stored."""
    server = hostile()
    make_dynamic(server)
    async with gateway_of(state, {"acme": server}) as gateway, client_of(gateway) as client:
        [entry] = (await client.connection.request("skills/list"))["skills"]
        assert entry["resources"] == "dynamic"
        assert (await gateway.catalog.read_file(FLAT)).data == skill_md("flat")
        server.files["skill://flat/SKILL.md"] = skill_md("flat", "Made anew.")
        assert (await gateway.catalog.read_file(FLAT)).data == skill_md("flat", "Made anew.")
    async with gateway_of(state, {"acme": server}, ADMIT) as gateway:
        await refused(gateway)
        [problem] = await gateway.catalog.problems()
        assert "materialize" in problem.hint


@rule("A3", "E4")
async def test_a_nested_skill_needs_its_own_approval_and_is_part_of_the_one_around_it(state: Path) -> None:
    catalog = build_server(Skills(small_catalog()))
    await approve(state, catalog, "acme:skill://acme/release/SKILL.md")
    async with gateway_of(state, {"acme": small_catalog()}, ADMIT) as gateway:
        assert await paths(gateway.catalog) == ["acme/acme/release"]
        nested = "skill://acme/acme/release/changelog/SKILL.md"
        with pytest.raises(NotFoundError):
            await gateway.catalog.get_skill(nested)
        assert (await gateway.catalog.read_file(nested)).data == small_tree()["acme/release/changelog/SKILL.md"]
        children = [child.name async for child in gateway.catalog.children("skill://acme/acme/release/changelog")]
        assert children == ["SKILL.md", "templates"]


async def test_a_folder_is_the_operators_own(state: Path, tmp_path: Path) -> None:
    root = write_tree(tmp_path / "tree", small_tree())
    async with gateway_of(state, {"acme": hostile()}, ADMIT, folders={"mine": root}) as gateway:
        assert await paths(gateway.catalog) == [f"mine/{path}" for path in SMALL_TREE_SKILLS]


async def test_each_served_content_is_logged_once(state: Path) -> None:
    """The log has the skill, the upstream, the content and the first time."""
    catalog = MemoryCatalog([flat_skill()])
    for _ in range(2):
        async with gateway_of(state, {"acme": catalog}) as gateway:
            for _ in range(3):
                await gateway.catalog.read_file(NOTES)
            await written(gateway, 1)
    async with gateway_of(state, {"acme": catalog}) as gateway:
        catalog.put(flat_skill(description="Another."))
        await source(gateway, "acme").refresh()
        await gateway.catalog.get_skill(FLAT)
        lines = await written(gateway, 2)
    assert {line.what for line in lines} == {"served"}
    assert len({line.facts["fingerprint"] for line in lines}) == 2
    assert {(line.origin, line.uri) for line in lines} == {("acme", "skill://flat/SKILL.md")}


async def written(gateway: Gateway, count: int) -> list[Any]:
    await gateway.audit.flush()
    lines = await gateway.store.lines()
    assert len(lines) == count
    return list(lines)


@rule("L2")
async def test_an_upstream_that_is_away_answers_as_that_also_in_admit_mode(state: Path) -> None:
    async with gateway_of(state, {"acme": {"url": "http://127.0.0.1:1/mcp"}}, ADMIT) as gateway:
        for ask in (gateway.catalog.get_skill, gateway.catalog.read_file):
            with pytest.raises(UpstreamError, match="'acme'"):
                await ask(FLAT)


async def test_many_that_wait_are_counted(state: Path) -> None:
    skills = [Skill(f"s{n:03}", {"SKILL.md": skill_md(f"s{n:03}")}) for n in range(25)]
    async with gateway_of(state, {"acme": MemoryCatalog(skills)}, ADMIT) as gateway:
        problems = await gateway.catalog.problems()
        assert len(problems) == 21
        assert re.search(r"\b5\b", problems[-1].message)
