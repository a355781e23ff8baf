"""Skills without digests: dynamic, or snapshots of the gateway if the policy selects them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from adversarial.adversary import EXTENSION
from gateway.stage import SECONDS, client_of, gateway_of, hostile, paths, source, until
from host.short import speak_manifest
from host.stage import make_dynamic
from rules import rule
from skillwire.catalog.verification import verify_catalog
from skillwire.errors import NotFoundError
from skillwire.gateway.snapshots import snapshot_label
from skillwire.host.state import open_cache, open_store
from skillwire.skill import digest_of
from skillwire.wire import meta as provenance
from starting import skillwire_command
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.gateway.gateway import Gateway

pytestmark = pytest.mark.anyio
FLAT, NOTES = "skill://acme/flat/SKILL.md", "skill://acme/flat/notes.md"
WANTED = '[upstream.acme]\nmaterialize = ["flat"]\n'


def dynamic_server() -> Any:
    """A generated skill on a server that reads directories."""
    server = hostile()
    make_dynamic(server)
    server.capabilities["extensions"][EXTENSION] = {"directoryRead": True}
    children = [{"uri": uri, "name": uri.rpartition("/")[2]} for uri in server.files]
    server.answers["resources/directory/read"] = lambda params: {"resources": children}
    return server


async def has_snapshot(gateway: Gateway) -> bool:
    return provenance.SNAPSHOT in (await gateway.catalog.get_skill(FLAT)).meta.meta


async def taken(gateway: Gateway) -> None:
    await until(gateway.catalog, lambda: has_snapshot(gateway))


@rule("V1", "V4", "V7", "R4")
async def test_a_snapshot_has_digests_that_are_marked_as_the_gateways(state: Path) -> None:
    """To a client it is a skill like any other."""
    server = dynamic_server()
    async with gateway_of(state, {"acme": server}, WANTED) as gateway, client_of(gateway) as client:
        await taken(gateway)
        entry = await client.get_skill(FLAT)
        assert {file.uri: file.digest for file in entry.files} == {
            FLAT: digest_of(skill_md("flat")),
            NOTES: digest_of(b"notes\n"),
        }
        assert (await verify_catalog(gateway.catalog)).failures == []
        [resource, _] = (await client.connection.request("resources/list"))["resources"]
        said = resource["_meta"]
        assert said[provenance.SNAPSHOT].endswith("Z")
        assert said[provenance.ORIGIN] == "acme"
        assert "digest" in said[provenance.NOT_PROMISED]
        children = [child.name async for child in gateway.catalog.children("skill://acme/flat")]
        assert children == ["SKILL.md", "notes.md"]


@rule("R2")
async def test_a_snapshot_stays_while_the_upstream_makes_other_bytes(state: Path) -> None:
    """The snapshot is served, also after a restart while the upstream is unavailable."""
    server = dynamic_server()
    async with AsyncExitStack() as serving:
        url = await serving.enter_async_context(server.serving())
        async with gateway_of(state, {"acme": url}, WANTED) as gateway:
            await taken(gateway)
            server.files["skill://flat/SKILL.md"] = skill_md("flat", "Made anew.")
            await source(gateway, "acme").refresh()
            assert (await gateway.catalog.read_file(FLAT)).data == skill_md("flat")
        await serving.aclose()
        async with gateway_of(state, {"acme": url}, WANTED) as gateway:
            assert await has_snapshot(gateway)
            assert (await gateway.catalog.read_file(FLAT)).data == skill_md("flat")


async def test_snapshots_are_taken_again_on_request(state: Path) -> None:
    server = dynamic_server()
    async with server.serving() as url:
        async with gateway_of(state, {"acme": url}, WANTED) as gateway:
            await taken(gateway)
        server.files["skill://flat/SKILL.md"] = skill_md("flat", "Made anew.")
        async with gateway_of(state, {"acme": url}, WANTED, renews_snapshots=True) as gateway:
            await taken(gateway)
            assert (await gateway.catalog.get_skill(FLAT)).description == "Made anew."


@rule("A2", "S1")
async def test_a_new_snapshot_is_taken_when_the_upstream_changes_the_entry(state: Path) -> None:
    server = dynamic_server()
    async with gateway_of(state, {"acme": server}, WANTED) as gateway:
        await taken(gateway)
        server.files["skill://flat/SKILL.md"] = skill_md("flat", "Made anew.")
        server.entries[0]["frontmatter"]["description"] = "Made anew."
        await source(gateway, "acme").refresh()
        await until(gateway.catalog, lambda: is_described(gateway, "Made anew."))
        assert (await gateway.catalog.read_file(FLAT)).data == skill_md("flat", "Made anew.")


@rule("V1", "R2")
async def test_a_snapshot_is_over_when_the_upstream_promises_digests_itself(state: Path) -> None:
    """The bytes match the entry, also after a restart while the upstream is unavailable."""
    server = dynamic_server()
    text = skill_md("flat", "Promised.")
    async with AsyncExitStack() as serving:
        url = await serving.enter_async_context(server.serving())
        async with gateway_of(state, {"acme": url}, WANTED) as gateway:
            await taken(gateway)
            server.entries.clear()
            server.add("flat", {"SKILL.md": text})
            await source(gateway, "acme").refresh()
            assert (await gateway.catalog.get_skill(FLAT)).files[0].digest == digest_of(text)
            assert (await gateway.catalog.read_file(FLAT)).data == text
            children = [child.name async for child in gateway.catalog.children("skill://acme/flat")]
            assert children == ["SKILL.md"]
            with anyio.fail_after(SECONDS):
                while await kept_snapshots(gateway):
                    await anyio.lowlevel.checkpoint()
        await serving.aclose()
        async with gateway_of(state, {"acme": url}, WANTED) as gateway:
            assert (await gateway.catalog.read_file(FLAT)).data == text
            assert (await gateway.catalog.get_skill(FLAT)).files[0].digest == digest_of(text)


async def kept_snapshots(gateway: Gateway) -> int:
    seen = await gateway.store.entries(snapshot_label("acme"))
    return 0 if seen is None else len(seen.entries)


@rule("R2", "V7")
async def test_a_snapshot_is_over_when_the_policy_names_the_skill_no_more(state: Path) -> None:
    """The entry and the bytes are dynamic again."""
    server = dynamic_server()
    async with server.serving() as url:
        async with gateway_of(state, {"acme": url}, WANTED) as gateway:
            await taken(gateway)
        server.files["skill://flat/notes.md"] = b"made anew\n"
        other = '[upstream.acme]\nmaterialize = ["other"]\n'
        async with gateway_of(state, {"acme": url}, other) as gateway:
            assert (await gateway.catalog.get_skill(FLAT)).is_dynamic
            assert (await gateway.catalog.read_file(NOTES)).data == b"made anew\n"


@rule("R2")
async def test_a_skill_that_is_gone_does_not_come_back_with_its_snapshot(state: Path) -> None:
    """Also not after a restart."""
    server = dynamic_server()
    async with server.serving() as url:
        async with gateway_of(state, {"acme": url}, WANTED) as gateway:
            await taken(gateway)
            server.entries.clear()
            await source(gateway, "acme").refresh()
            with anyio.fail_after(SECONDS):
                while await kept_snapshots(gateway):
                    await anyio.lowlevel.checkpoint()
        async with gateway_of(state, {"acme": url}, WANTED) as gateway:
            with pytest.raises(NotFoundError):
                await gateway.catalog.get_skill(FLAT)


@rule("V7", "R2")
async def test_what_is_listed_short_and_promised_in_full_needs_no_snapshot(state: Path) -> None:
    """The full entry has its files; then the listing, the entry and the bytes agree."""
    server = hostile()
    speak_manifest(server)
    async with gateway_of(state, {"acme": server}, WANTED) as gateway:
        await until(gateway.catalog, lambda: is_listed_in_full(gateway))
        [listed] = [entry async for entry in gateway.catalog.entries()]
        assert listed == await gateway.catalog.get_skill(FLAT)
        assert provenance.SNAPSHOT not in listed.meta.meta
        assert (await verify_catalog(gateway.catalog)).failures == []


async def is_listed_in_full(gateway: Gateway) -> bool:
    return [entry.is_complete async for entry in gateway.catalog.entries()] == [True]


async def is_described(gateway: Gateway, text: str) -> bool:
    return (await gateway.catalog.get_skill(FLAT)).description == text


@rule("A1", "V7")
async def test_a_snapshot_can_be_approved_and_its_fingerprint_is_reported(state: Path) -> None:
    """The bytes are fixed, so an approval can be bound to them."""
    server = dynamic_server()
    async with server.serving() as url:
        async with gateway_of(state, {"acme": url}, f'mode = "admit"\n{WANTED}') as gateway:
            with anyio.fail_after(SECONDS):
                while "fingerprint" not in (hint := (await gateway.catalog.problems())[0].hint):
                    await gateway.upstreams["acme"].gate.decided().wait()
            assert await paths(gateway.catalog) == []
        content = hint.partition("'")[2].strip("'")
        yes = f'[[approved]]\nupstream = "acme"\npath = "flat"\nfingerprint = "{content}"\n'
        async with gateway_of(state, {"acme": url}, f'mode = "admit"\n{WANTED}{yes}') as gateway:
            assert await paths(gateway.catalog) == ["acme/flat"]
            assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"


@rule("V7", "V5")
async def test_what_the_policy_does_not_name_stays_dynamic(state: Path) -> None:
    """Nothing is invented, and nothing is read."""
    server = dynamic_server()
    async with gateway_of(state, {"acme": server}, '[upstream.acme]\nmaterialize = ["other"]') as gateway:
        assert (await gateway.catalog.get_skill(FLAT)).is_dynamic
        assert server.read_uris() == []


@rule("B1", "U3", "F1")
@pytest.mark.parametrize(
    "data",
    [b"no frontmatter", skill_md("another"), b"---\nname: flat\ndescription: x\n---\n" + b"x" * 70_000],
    ids=["no-frontmatter", "another-name", "too-large"],
)
async def test_a_skill_without_a_snapshot_stays_dynamic_and_is_reported(state: Path, data: bytes) -> None:
    server = dynamic_server()
    server.files["skill://flat/SKILL.md"] = data
    async with gateway_of(state, {"acme": server}, WANTED) as gateway:
        with anyio.fail_after(SECONDS):
            while not (problems := await gateway.catalog.problems()):
                await anyio.lowlevel.checkpoint()
        assert [problem.reference for problem in problems] == ["snapshot-failed"]
        assert (await gateway.catalog.get_skill(FLAT)).is_dynamic


@rule("I1", "E2")
async def test_an_index_becomes_a_conforming_server(state: Path) -> None:
    """An index-only upstream, whole."""
    server = hostile()
    server.entries.clear()
    server.add_index(
        {"name": "flat", "type": "skill-md", "description": "Does one thing well.", "url": "skill://flat/SKILL.md"}
    )
    async with gateway_of(state, {"acme": server}, WANTED) as gateway, client_of(gateway) as client:
        await taken(gateway)
        [entry] = [entry async for entry in client.list_skills()]
        assert entry.is_complete
        assert (await client.read_skill(entry)).text.encode() == skill_md("flat")


@rule("C1", "A2")
async def test_bytes_that_the_cache_lost_are_read_again_or_the_snapshot_is_over(state: Path) -> None:
    server = dynamic_server()
    async with gateway_of(state, {"acme": server}, WANTED) as gateway:
        await taken(gateway)
        cache = gateway.cache
        assert cache is not None
        cache.remove_origin("acme")
        assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"
        cache.remove_origin("acme")
        server.files["skill://flat/notes.md"] = b"other!"
        with pytest.raises(NotFoundError):
            await gateway.catalog.read_file(NOTES)
        await until(gateway.catalog, lambda: has_notes(gateway, b"other!"))


async def has_notes(gateway: Gateway, data: bytes) -> bool:
    if not await has_snapshot(gateway):
        return False
    return (await gateway.catalog.read_file(NOTES)).data == data


@rule("C3")
@pytest.mark.slow  # a process
async def test_an_upstream_that_is_removed_takes_its_snapshots_with_it(state: Path) -> None:
    """'skillwire origins remove' leaves nothing of it behind."""
    server = dynamic_server()
    async with gateway_of(state, {"acme": server}, WANTED) as gateway:
        await taken(gateway)
        assert await gateway.store.entries(snapshot_label("acme")) is not None
    await anyio.run_process([*skillwire_command(), "origins", "remove", "acme", "--state", str(state)])
    store = await open_store(state)
    try:
        assert await store.entries(snapshot_label("acme")) is None
    finally:
        await store.close()
    assert open_cache(state).usage().files == 0
