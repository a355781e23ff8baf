"""The extension's methods as a client meets them, over every transport and in both eras."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

from rotation import every_setting
from rules import rule
from skillwire.skill import digest_of, format_uri, parse_entry
from trees import SMALL_TREE_SKILLS, small_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from interaction.conftest import Wire

    Connect = Callable[..., AbstractAsyncContextManager[Wire]]

pytestmark = pytest.mark.anyio

EXTENSION = "io.modelcontextprotocol/skills"


def check_freshness(result: dict[str, Any], era: str) -> None:
    """The cache attributes exist in the modern era only."""
    if era == "modern":
        assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (0, "private", "complete")
    else:
        assert not {"ttlMs", "cacheScope", "resultType"} & set(result)


@every_setting
@rule("K1", "L1", "L2", "G1", "R1", "E1", "E2", "E3")
async def test_every_skill_is_listed_got_and_read_byte_for_byte(connect: Connect) -> None:
    async with connect() as wire:
        capabilities = wire.client.server_capabilities
        assert (capabilities.extensions or {})[EXTENSION] == {"directoryRead": True}
        assert capabilities.resources is not None
        listing = await wire.call("skills/list")
        check_freshness(listing, wire.era)
        assert [parse_entry(entry).path for entry in listing["skills"]] == SMALL_TREE_SKILLS
        tree = small_tree()
        for listed in listing["skills"]:
            got = await wire.call("skills/get", uri=listed["uri"])
            check_freshness(got, wire.era)
            assert got["skill"] == listed
            assert set(listed) == {"uri", "frontmatter", "resources"}
            for resource in listed["resources"]:
                content = (await wire.call("resources/read", uri=resource["uri"]))["contents"][0]
                data = content["text"].encode() if "text" in content else b64decode(content["blob"])
                assert (digest_of(data), len(data)) == (resource["digest"], resource["size"])
                assert resource["uri"] in {format_uri(path) for path in tree}


@rule("D1", "R3")
async def test_a_directory_is_read(connect: Connect) -> None:
    async with connect() as wire:
        result = await wire.call("resources/directory/read", uri="skill://odd-names/assets")
        check_freshness(result, wire.era)
        assert [(item["name"], item["mimeType"], item["size"]) for item in result["resources"]] == [
            ("100%.bin", "application/octet-stream", 256),
            ("empty", "application/octet-stream", 0),
        ]
        root = await wire.call("resources/directory/read", uri="skill://odd-names")
        kinds = {item["name"]: item["mimeType"] for item in root["resources"]}
        assert kinds["assets"] == "inode/directory"


@rule("R1", "R3")
async def test_skills_are_resources_with_their_own_name_and_description(connect: Connect) -> None:
    async with connect() as wire:
        resources = (await wire.client.list_resources()).resources
        flat = next(resource for resource in resources if resource.uri == "skill://flat/SKILL.md")
        assert (flat.name, flat.description, flat.mime_type) == ("flat", "Does one thing well.", "text/markdown")
        assert flat.size == len(small_tree()["flat/SKILL.md"])
        assert flat.annotations is not None
        assert (flat.annotations.audience, flat.annotations.priority) == (["assistant"], 1.0)


BAD_REQUESTS: list[tuple[str, dict[str, str]]] = [
    ("skills/get", {"uri": "skill://nothing/SKILL.md"}),
    ("skills/get", {"uri": "skill://flat/%2e%2e/flat/SKILL.md"}),
    ("skills/get", {}),
    ("skills/list", {"cursor": "garbage"}),
    ("resources/list", {"cursor": "garbage"}),
    ("resources/list", {"cursor": "skillwire.garbage"}),
    ("resources/templates/list", {"cursor": "garbage"}),
    ("resources/read", {"uri": "skill://flat/../../etc/passwd"}),
    ("resources/read", {"uri": "file:///etc/passwd"}),
    ("resources/directory/read", {"uri": "skill://flat/SKILL.md"}),
]


@rule("G1", "L3", "D1", "U7")
async def test_bad_requests_are_refused_and_the_server_lives(connect: Connect, root: Path) -> None:
    """-32602, and no path of the machine in the message."""
    async with connect() as wire:
        for method, params in BAD_REQUESTS:
            with pytest.raises(MCPError) as caught:
                await wire.call(method, **params)
            assert caught.value.error.code == -32602, (method, params)
            assert str(root) not in str(caught.value.error)
        assert len((await wire.call("skills/list"))["skills"]) == len(SMALL_TREE_SKILLS)
