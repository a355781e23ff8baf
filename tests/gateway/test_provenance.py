"""Provenance: sent where the protocol has a place that strict peers accept."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from gateway.stage import client_of, flat_skill, gateway_of, hostile, source, until_state
from rules import rule
from skillwire import MemoryCatalog
from skillwire.skill.version_status import VERSIONS
from skillwire.wire import meta as provenance
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.anyio
FLAT, NOTES = "skill://acme/flat/SKILL.md", "skill://acme/flat/notes.md"
SAID = {
    provenance.ORIGIN: "acme",
    provenance.UPSTREAM_URI: "skill://flat/SKILL.md",
    provenance.DIALECT: "extension",
}


def ours(said: Mapping[str, Any]) -> dict[str, Any]:
    """The keys with our prefix: the SDK adds the name of the server to a result."""
    prefix = provenance.ORIGIN.rpartition("/")[0]
    return {key: value for key, value in said.items() if key.startswith(prefix)}


@rule("R4", "O2", "E1")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_provenance_is_sent_beside_a_skill_and_never_in_its_entry(state: Path, mode: str) -> None:
    """With resources, with the result of skills/get, and with file contents."""
    servers = {"acme": MemoryCatalog([flat_skill()])}
    async with gateway_of(state, servers) as gateway, client_of(gateway, mode) as client:
        ask = client.connection.request
        [resource, _] = (await ask("resources/list"))["resources"]
        got = await ask("skills/get", uri=FLAT)
        contents = [(await ask("resources/read", uri=uri))["contents"][0] for uri in (FLAT, NOTES)]
        [child, _] = (await ask("resources/directory/read", uri="skill://acme/flat"))["resources"]
        [entry] = (await ask("skills/list"))["skills"]
    assert [ours(said["_meta"]) for said in (resource, got, *contents, child)] == [SAID] * 5
    assert got["skill"] == entry
    assert entry.keys() == {"uri", "frontmatter", "resources"}


@rule("R4")
async def test_a_folder_is_named_too(state: Path, tmp_path: Path) -> None:
    root = write_tree(tmp_path / "tree", small_tree())
    async with gateway_of(state, {}, folders={"mine": root}) as gateway, client_of(gateway) as client:
        ask = client.connection.request
        got = await ask("skills/get", uri="skill://mine/flat/SKILL.md")
        [content] = (await ask("resources/read", uri="skill://mine/flat/SKILL.md"))["contents"]
    assert ours(got["_meta"]) == content["_meta"] == {provenance.ORIGIN: "mine"}


@rule("R4", "L2")
async def test_skills_of_an_unavailable_upstream_are_marked_stale(state: Path) -> None:
    """Also with bytes from the cache."""
    server = hostile()
    async with AsyncExitStack() as serving:
        url = await serving.enter_async_context(server.serving())
        async with gateway_of(state, {"acme": url}) as gateway, client_of(gateway) as client:
            ask = client.connection.request
            [content] = (await ask("resources/read", uri=NOTES))["contents"]
            assert provenance.STALE_SINCE not in content["_meta"]
            await serving.aclose()
            source(gateway, "acme")._link.refresh_soon()
            await until_state(source(gateway, "acme"), "stale")
            [content] = (await ask("resources/read", uri=NOTES))["contents"]
            got = await ask("skills/get", uri=FLAT)
    assert content["_meta"][provenance.STALE_SINCE] == got["_meta"][provenance.STALE_SINCE]


@rule("R4")
async def test_what_a_registry_states_about_a_version_is_passed_on_without_its_uri(state: Path) -> None:
    """The gateway does not serve exact versions, and paths begin with the label of the upstream there."""
    server = hostile()
    told = {"number": "1.0.0", "uri": "skill://@1.0.0/flat/SKILL.md", "deprecated": "moved", "instead": "b/flat"}
    server.answers["skills/list"] = {
        "skills": server.entries,
        "_meta": {VERSIONS: {"skill://flat/SKILL.md": told}},
    }
    async with server.serving() as url, gateway_of(state, {"acme": url}) as gateway, client_of(gateway) as client:
        listing = await client.connection.request("skills/list")
    passed = {"number": "1.0.0", "deprecated": "moved", "instead": "acme/b/flat"}
    assert listing["_meta"][VERSIONS] == {FLAT: passed}
