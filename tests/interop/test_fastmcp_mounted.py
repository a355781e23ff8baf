"""Skills of a FastMCP server that is mounted into another one are found and verified, if they are visible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP

from rules import rule
from skillwire import MemoryCatalog, Skill, Skills, connect
from trees import skill_md

pytestmark = pytest.mark.anyio
EXAMPLES = Path(__file__).parents[2] / "examples/skills"


def mounted(skills: Skills, namespace: str | None = None) -> FastMCP:
    child: FastMCP = FastMCP("child")
    skills.attach(child)
    parent: FastMCP = FastMCP("parent")
    parent.mount(child, **({} if namespace is None else {"namespace": namespace}))
    return parent


@rule("I4", "V1")
@pytest.mark.parametrize("namespace", [None, "shop"])
async def test_every_file_of_every_skill_is_verified_through_the_parent(namespace: str | None) -> None:
    prefix = "" if namespace is None else f"{namespace}/"
    async with connect(Skills(EXAMPLES)) as direct, connect(mounted(Skills(EXAMPLES), namespace)) as client:
        expected = {f"{prefix}{entry.path}": entry for entry in (await direct.list_all()).entries}
        found = {entry.path: entry for entry in (await client.list_all()).entries}
        assert found.keys() == expected.keys()
        for path in found:
            entry = await client.get(path)
            assert entry.is_complete
            claims = [(file.path, file.digest, file.size) for file in expected[path].files]
            assert [(file.path, file.digest, file.size) for file in entry.files] == claims
            for file in entry.files:
                await client.read(path, file.path)


async def test_the_servers_own_clients_see_each_resource_once() -> None:
    child: FastMCP = FastMCP("child")
    Skills(EXAMPLES).attach(child)
    async with connect(child) as client:
        assert await client.dialect() == "extension"
        listed = (await client.connection.request("resources/list"))["resources"]
        uris = [item["uri"] for item in listed]
        assert len(uris) == len(set(uris))
        assert [uri for uri in uris if uri.endswith("_manifest")] == []


async def test_a_parent_with_skills_of_its_own_serves_both() -> None:
    parent = mounted(Skills(EXAMPLES), "shop")
    Skills(MemoryCatalog([Skill("own", {"SKILL.md": skill_md("own")})])).attach(parent)
    async with connect(parent) as client:
        assert [entry.path for entry in (await client.list_all()).entries] == ["own"]
        listed = (await client.connection.request("resources/list"))["resources"]
        assert "skill://shop/csv-profile/SKILL.md" in [item["uri"] for item in listed]


async def test_a_skill_that_a_caller_may_not_see_is_not_in_the_parent() -> None:
    def visible(_: Any) -> list[str]:
        return ["csv-profile"]

    async with connect(mounted(Skills(EXAMPLES, visible=visible))) as client:
        assert [entry.path for entry in (await client.list_all()).entries] == ["csv-profile"]
        for uri in ("skill://brand-slides/SKILL.md", "skill://brand-slides/_manifest"):
            with pytest.raises(Exception, match="brand-slides"):
                await client.read_unverified(uri)
