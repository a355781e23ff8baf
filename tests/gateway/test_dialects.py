"""Whatever an upstream speaks, the gateway serves it in every dialect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gateway.stage import client_of, flat_skill, gateway_of, hostile, paths, source
from rules import rule
from skillwire import MemoryCatalog, connect
from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills, build_server
from skillwire.skill import parse_skill_md
from skillwire.wire import meta as provenance
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
FLAT = "skill://acme/flat/SKILL.md"


def named(dialect: Any) -> Any:
    """A server of ours that speaks a dialect in which skills have names only."""
    return build_server(Skills(MemoryCatalog([flat_skill()]), dialects=Dialects(dialect, "never")))


def indexed() -> Any:
    server = hostile()
    server.entries.clear()
    server.add_index(
        {"name": "flat", "type": "skill-md", "description": "Does one thing well.", "url": "skill://flat/SKILL.md"}
    )
    return server


def plain() -> Any:
    """Nothing but resources."""
    server = hostile()
    server.capabilities = {"resources": {}}
    server.entries.clear()
    server.answers["resources/list"] = {
        "resources": [{"uri": uri, "name": uri, "description": "Does one thing well."} for uri in server.files]
    }
    server.answers["skills/list"] = None  # type: ignore[assignment]
    return server


UPSTREAMS = {
    "extension": lambda: MemoryCatalog([flat_skill()]),
    "index": indexed,
    "fallback": plain,
    "sep-2076": lambda: named("sep-2076"),
    "native": lambda: named("native"),
}


@rule("E1", "E2", "V7", "P2", "M2")
@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_upstreams_of_any_dialect_are_served_by_the_extension(state: Path, upstream: str) -> None:
    """Conforming entries; what was not promised is dynamic, and its bytes are a SKILL.md."""
    async with gateway_of(state, {"acme": UPSTREAMS[upstream]()}) as gateway, client_of(gateway) as client:
        assert await paths(gateway.catalog) == ["acme/flat"]
        assert source(gateway, "acme").dialect == upstream
        assert await client.dialect() == "extension"
        entry = await client.get_skill(FLAT)
        assert (entry.name, entry.description) == ("flat", "Does one thing well.")
        assert entry.is_dynamic is (upstream != "extension")
        data = (await client.read_unverified(FLAT)).data
        document = parse_skill_md(data)
        assert document.frontmatter["name"] == "flat"
        assert document.body.strip() == "Do it."
        [resource, _] = (await client.connection.request("resources/list"))["resources"]
        assert resource["_meta"][provenance.DIALECT] == upstream


@rule("I1", "P1", "M1", "I4")
@pytest.mark.parametrize(
    ("upstream", "dialect"),
    [
        ("extension", "index"),
        ("extension", "sep-2076"),
        ("extension", "native"),
        ("extension", "fallback"),
        ("index", "sep-2076"),
        ("fallback", "native"),
        ("sep-2076", "index"),
        ("native", "fallback"),
    ],
    ids="-as-".join,
)
async def test_and_in_every_other_dialect(state: Path, upstream: str, dialect: Any) -> None:
    """The gateway's catalog stands between the two, so that each is there once, and not each pair."""
    async with gateway_of(state, {"acme": UPSTREAMS[upstream]()}) as gateway:
        endpoint = dialect if dialect in ("sep-2076", "native") else "extension"
        server = build_server(Skills(gateway.catalog, watch=False, dialects=Dialects(endpoint)))
        async with connect(server, dialect=dialect) as client:
            found = [entry async for entry in client.list_skills()]
            assert [entry.name for entry in found] == ["flat"]
            data = (await client.read_unverified(found[0].uri)).data
            assert b"Do it." in data


@rule("X1")
@pytest.mark.parametrize("upstream", ["extension", "native"])
async def test_a_host_that_only_knows_tools_can_use_it(state: Path, upstream: str) -> None:
    async with gateway_of(state, {"acme": UPSTREAMS[upstream]()}) as gateway:
        server = build_server(Skills(gateway.catalog, watch=False, dialects=Dialects(fallback="always")))
        async with connect(server) as client:
            listed = await client.connection.request("tools/call", name="list_skills", arguments={})
            assert "flat" in json.dumps(listed)
            loaded = await client.connection.request("tools/call", name="load_skill", arguments={"skill": "flat"})
            assert not loaded.get("isError"), loaded
            assert "Do it." in json.dumps(loaded)


@rule("X1", "X2")
async def test_the_files_of_an_extension_server_are_read_through_tools(state: Path) -> None:
    """The same bytes."""
    async with gateway_of(state, {"acme": MemoryCatalog([flat_skill()])}) as gateway:
        server = build_server(Skills(gateway.catalog, watch=False, dialects=Dialects(fallback="always")))
        async with connect(server) as client:
            arguments = {"skill": "flat", "path": "notes.md"}
            read = await client.connection.request("tools/call", name="read_skill_file", arguments=arguments)
            assert read["content"][-1]["text"] == "notes\n"
        assert (await gateway.catalog.read_file(FLAT)).data == skill_md("flat")
