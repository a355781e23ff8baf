"""When a gateway may send a cached response again: while nothing that it depends on has changed."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from gateway.stage import SECONDS, flat_skill, gateway_of, hostile, source, until_state
from rules import rule
from skillwire import MemoryCatalog
from skillwire.catalog import safe_open
from skillwire.skill.approval import Approval, contents_of
from skillwire.store.records import LogLine
from skillwire.wire import meta as provenance
from trees import replace_file, skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
FLAT, NOTES = "skill://acme/flat/SKILL.md", "skill://acme/flat/notes.md"


@rule("R2")
async def test_nothing_changed_until_the_upstream_reports_it(state: Path) -> None:
    """The answer about a skill is kept while others change, and the listing is not."""
    server = hostile()
    async with gateway_of(state, {"acme": server}) as gateway:
        await gateway.catalog.read_file(NOTES)
        about_all, about_one = await kept_tests(gateway)
        await source(gateway, "acme").refresh()
        assert (about_all(), about_one()) == (False, True)  # a new listing, with the same skill in it
        about_all, about_one = await kept_tests(gateway)
        assert (about_all(), about_one()) == (True, True)
        server.add("second", {"SKILL.md": skill_md("second")})
        await source(gateway, "acme").refresh()
        assert (about_all(), about_one()) == (False, True)
        server.add("flat", {"SKILL.md": skill_md("flat"), "notes.md": b"other notes\n"})
        server.entries.pop(0)
        await source(gateway, "acme").refresh()
        assert not about_one()
        assert (await gateway.catalog.read_file(NOTES)).data == b"other notes\n"


async def kept_tests(gateway: Any) -> list[Any]:
    found = [await gateway.catalog.unchanged(), await gateway.catalog.unchanged(NOTES)]
    assert None not in found
    return found


@rule("L2", "R4")
async def test_listings_mark_an_unavailable_upstream_and_end_cached_responses(state: Path) -> None:
    """When it went, and when it is back."""
    server = hostile()
    async with AsyncExitStack() as serving:
        target = await serving.enter_async_context(server.serving())
        async with gateway_of(state, {"acme": target}) as gateway:
            acme, kept = source(gateway, "acme"), await kept_tests(gateway)
            await serving.aclose()
            acme._link.refresh_soon()
            await until_state(acme, "stale")
            assert [is_same() for is_same in kept] == [False, False]
            assert await stale(gateway) == [True, True]
            kept = await kept_tests(gateway)
            async with server.serving() as url:
                acme._link._target = url
                await until_state(acme, "complete")
                assert [is_same() for is_same in kept] == [False, False]
                assert await stale(gateway) == [False, False]


async def stale(gateway: Any) -> list[bool]:
    [listed] = [entry async for entry in gateway.catalog.entries()]
    return [provenance.STALE_SINCE in entry.meta.meta for entry in (listed, await gateway.catalog.get_skill(FLAT))]


@rule("A2", "R2")
async def test_a_revoked_approval_ends_cached_responses(state: Path) -> None:
    line = LogLine("approved", "acme", "skill://flat/SKILL.md", "me", 0.0, {})
    servers = {"acme": MemoryCatalog([flat_skill()])}
    async with gateway_of(state, servers, 'mode = "admit"') as gateway:
        assert await gateway.catalog.unchanged(NOTES) is None
        [entry] = await gateway.upstreams["acme"].gate.waiting()
        approval = Approval("acme", entry.uri, contents_of(entry), "me", 1e12)
        await gateway.store.put_approval(approval, line)
        await gateway.approval_view.refresh()
        await gateway.catalog.read_file(NOTES)
        kept = await kept_tests(gateway)
        with anyio.fail_after(SECONDS):
            while not all(is_same() for is_same in kept):
                kept = await kept_tests(gateway)  # it was listed once more just then, as when a line is open
        await gateway.store.remove_approval("acme", "skill://flat/SKILL.md", line)
        await gateway.approval_view.refresh()
        assert [is_same() for is_same in kept] == [False, False]


@rule("V7")
async def test_dynamic_files_are_never_cached(state: Path) -> None:
    """Nor is a listing beside it, which also stands for folders; another upstream's skill is."""
    server = hostile()
    server.entries[0]["resources"] = "dynamic"
    async with gateway_of(state, {"acme": server, "other": MemoryCatalog([flat_skill()])}) as gateway:
        for uri in (FLAT, NOTES, None, "skill://nobody/flat/SKILL.md", "skill://index.json", "nonsense"):
            assert await gateway.catalog.unchanged(uri) is None
        assert await gateway.catalog.unchanged("skill://other/flat/notes.md") is not None


@rule("R2")
async def test_a_file_of_a_folder_that_is_written_to_is_not_as_it_was(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anybody noticed."""
    monkeypatch.setattr(safe_open, "_SETTLED_NS", 0)  # the files are new, and nobody writes one twice in a tick
    root = write_tree(tmp_path / "tree", small_tree())
    async with gateway_of(state, {}, folders={"mine": root}) as gateway:
        uri = "skill://mine/acme/release/notes.md"
        await gateway.catalog.read_file(uri)
        is_same = await gateway.catalog.unchanged(uri)
        assert is_same is not None
        assert is_same()
        replace_file(root / "acme/release/notes.md", b"written since\n")
        assert not is_same()
