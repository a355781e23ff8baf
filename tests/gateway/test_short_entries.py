"""Skills that an older dialect lists short, in ``admit`` mode: approved ones are fetched in full."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest

from gateway.stage import SECONDS, gateway_of, hostile, paths, source, until
from gateway.test_approval_gate import ADMIT, FLAT, NOTES, approve
from host.short import speak_archive, speak_digest, speak_manifest
from rules import rule
from skillwire.errors import NotFoundError
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from skillwire.gateway.gateway import Gateway

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def approved_archive(state: Path) -> AsyncIterator[Gateway]:
    """A gateway of a server whose only skill is packed, listed short, and approved."""
    server = hostile()
    speak_archive(server)
    async with server.serving() as url:
        await approve(state, url)
        async with gateway_of(state, {"acme": url}, ADMIT) as gateway:
            yield gateway


@rule("A2", "L2")
async def test_a_short_listing_revokes_no_approval(state: Path) -> None:
    """An index has no files of a packed skill; the full entry is the approved one."""
    async with approved_archive(state) as gateway:
        await source(gateway, "acme").refresh()
        await gateway.upstreams["acme"].gate.waiting()
        assert len(await gateway.store.approvals()) == 1
        assert (await gateway.catalog.get_skill(FLAT)).is_complete
        assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"


@rule("A1", "A2", "L2")
async def test_what_is_approved_and_listed_short_is_listed(state: Path) -> None:
    """The approval covers the whole skill, which an older dialect describes only in the full entry."""
    server = hostile()
    speak_archive(server)
    async with server.serving() as url, gateway_of(state, {"acme": url}, ADMIT) as gateway:
        [problem] = await gateway.catalog.problems()
        assert problem.hint == "skillwire approvals show acme:skill://flat/SKILL.md"
        assert server.read_uris().count("skill://flat.zip") == 0
        await approve(state, url)
        await until(gateway.catalog, lambda: is_listed(gateway))
        assert list(await gateway.catalog.problems()) == []
        assert [entry.is_complete async for entry in gateway.catalog.entries()] == [True]
        speak_archive(server, {"SKILL.md": skill_md("flat"), "notes.md": b"rotated\n"})
    async with server.serving() as url, gateway_of(state, {"acme": url}, ADMIT) as gateway:
        with anyio.fail_after(SECONDS):
            while await gateway.store.approvals():
                await anyio.lowlevel.checkpoint()
        assert await paths(gateway.catalog) == []


async def is_listed(gateway: Gateway) -> bool:
    return await paths(gateway.catalog) == ["acme/flat"]


@rule("A1", "V2")
async def test_an_approval_counts_if_only_the_skill_md_has_a_digest(state: Path) -> None:
    """It covers the SKILL.md. Other files are not promised, so they are not served."""
    server = hostile()
    speak_digest(server)
    async with server.serving() as url, gateway_of(state, {"acme": url}, ADMIT) as gateway:
        await approve(state, url)
        await until(gateway.catalog, lambda: is_listed(gateway))
        assert (await gateway.catalog.read_file(FLAT)).data == skill_md("flat")
        with pytest.raises(NotFoundError):
            await gateway.catalog.read_file(NOTES)
        assert list(await gateway.catalog.problems()) == []


@rule("A1", "L2")
async def test_a_gateway_lists_what_its_upstream_lists_whatever_a_host_saved(state: Path) -> None:
    """They share one store. The host's fuller entry must not pass for the upstream's listing."""
    server = hostile()
    speak_digest(server)
    async with server.serving() as url, gateway_of(state, {"acme": url}, ADMIT) as gateway:
        await approve(state, url)
        seen = await gateway.store.entries("acme")
        assert seen is not None
        assert [entry.is_complete for entry in seen.entries] == [False]
        assert [entry.is_complete for entry in seen.asked] == [True]


@rule("A2", "L2")
async def test_an_approval_is_not_revoked_because_of_an_older_full_entry(state: Path) -> None:
    """The short listing is newer than the approval; the full entry is older."""
    server = hostile()
    speak_manifest(server)
    async with server.serving() as url, gateway_of(state, {"acme": url}, ADMIT) as gateway:
        with pytest.raises(NotFoundError):
            await gateway.catalog.get_skill(FLAT)
        speak_manifest(server, {"SKILL.md": skill_md("flat"), "notes.md": b"rotated\n"})
        await approve(state, url)
        await source(gateway, "acme").refresh()
        await gateway.approval_view.refresh()
        await gateway.upstreams["acme"].gate.waiting()
        assert len(await gateway.store.approvals()) == 1


@rule("A1", "V1")
async def test_a_file_of_what_is_approved_and_listed_short_can_be_read_at_once(state: Path) -> None:
    async with approved_archive(state) as gateway:
        assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"


@rule("A1", "L2")
async def test_what_cannot_be_had_in_full_spoils_no_other_and_waits(state: Path) -> None:
    """Of two that are approved, the archive of one is gone."""
    server = hostile()
    speak_archive(server)
    fields = {"name": "lost", "description": "Does one thing well.", "type": "archive", "url": "skill://lost.zip"}
    yes = '[[approved]]\nupstream = "acme"\npath = "lost"\nfingerprint = "sha256:' + "0" * 64 + '"\n'
    index = json.loads(server.files["skill://index.json"])["skills"]
    server.add_index(*index, fields)
    async with server.serving() as url:
        await approve(state, url)
        async with gateway_of(state, {"acme": url}, ADMIT + yes) as gateway:
            await until(gateway.catalog, lambda: is_listed(gateway))
            with anyio.fail_after(SECONDS):
                while not (problems := await gateway.catalog.problems()):
                    await anyio.lowlevel.checkpoint()
            assert [problem.skill for problem in problems] == ["acme/lost"]
