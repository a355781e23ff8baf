"""The ``index`` dialect of a server: one document for both generations, and packed skills; every transport."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from rules import rule
from skillwire import MemoryCatalog, Skill, Skills
from skillwire.client.skills import SkillsClient
from skillwire.server.skills import build_server
from skillwire.skill.archive import archive_uri, unpack
from skillwire.skill.entry import digest_of
from skillwire.skill.uri import skill_md_uri
from trees import SMALL_TREE_SKILLS, files_of, skill_md, small_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from interaction.conftest import Wire

    Connect = Callable[..., AbstractAsyncContextManager[Wire]]

pytestmark = pytest.mark.anyio
INDEX = "skill://index.json"
SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"


async def index_of(wire: Wire) -> dict[str, Any]:
    [content] = (await wire.call("resources/read", uri=INDEX))["contents"]
    assert (content["uri"], content["mimeType"]) == (INDEX, "application/json")
    return json.loads(content["text"])


@rule("I1")
async def test_the_index_has_every_listed_skill_for_both_generations(connect: Connect) -> None:
    """What each of them needs, and what it promises."""
    tree = small_tree()
    async with connect() as wire:
        document = await index_of(wire)
        listing = {entry["uri"]: entry for entry in (await wire.call("skills/list"))["skills"]}
    assert document["$schema"] == SCHEMA
    assert [item["url"] for item in document["skills"]] == [skill_md_uri(path) for path in SMALL_TREE_SKILLS]
    for item in document["skills"]:
        entry = listing[item["url"]]
        assert item["type"] == "skill-md"
        assert item["frontmatter"] == entry["frontmatter"]
        assert (item["name"], item["description"]) == (
            entry["frontmatter"]["name"],
            entry["frontmatter"]["description"],
        )
        assert item["digest"] == digest_of(tree[item["url"].removeprefix("skill://")])
        assert [archive["mimeType"] for archive in item["archives"]] == ["application/gzip", "application/zip"]


@rule("I2")
async def test_every_archive_holds_the_skill_and_hashes_to_what_the_index_says(connect: Connect) -> None:
    """Nested skills in the enclosing ones' too, every name and every byte."""
    tree = small_tree()
    async with connect() as wire:
        for path, item in zip(SMALL_TREE_SKILLS, (await index_of(wire))["skills"], strict=True):
            for archive, form in zip(item["archives"], ("tar.gz", "zip"), strict=True):
                assert archive["url"] == archive_uri(path, form)
                [content] = (await wire.call("resources/read", uri=archive["url"]))["contents"]
                assert (content["uri"], content["mimeType"]) == (archive["url"], archive["mimeType"])
                data = b64decode(content["blob"])
                assert digest_of(data) == archive["digest"]
                assert unpack(data, form) == files_of(tree, path)


@rule("I1", "I2", "V1", "V4")
async def test_our_client_gets_by_the_index_what_it_gets_by_the_extension(connect: Connect) -> None:
    """Complete through the archives. `test_dialect_matrix.py` reads every file."""
    async with connect() as wire:
        client = SkillsClient(wire.client, dialect="index")
        entries = [entry async for entry in client.list_skills()]
        assert [entry.path for entry in entries] == SMALL_TREE_SKILLS
        for listed in entries:
            assert listed.gaps == {"manifest", "size"}
            entry = await client.get_skill(listed.uri)
            assert (entry.is_complete, entry.gaps) == (True, set())
            assert entry == await SkillsClient(wire.client, dialect="extension").get_skill(entry.uri)
            assert (await client.read_skill(entry)).data == small_tree()[f"{entry.path}/SKILL.md"]


UNKNOWN = [
    "skill://nothing.zip",
    "skill://flat.tar",
    "skill://flat.tgz",
    "skill://flat.ZIP",
    "skill://acme.zip",
    "skill://flat/.zip",
    "skill://flat/SKILL.md.zip",
    "skill://index.json.zip",
    "skill://acme/index.json",
    "skill://%2e%2e/flat.zip",
]


@rule("I2", "R1")
async def test_what_is_no_archive_of_a_skill_is_unknown(connect: Connect) -> None:
    """-32602, and the URI as the only data, which is how readers of the index tell."""
    async with connect() as wire:
        for uri in UNKNOWN:
            with pytest.raises(MCPError) as caught:
                await wire.call("resources/read", uri=uri)
            assert caught.value.error.code == -32602, uri
            if "%" not in uri:
                assert caught.value.error.data == {"uri": uri}


@rule("I1", "U7")
async def test_every_spelling_of_the_index_is_the_index(connect: Connect) -> None:
    async with connect() as wire:
        wanted = await wire.call("resources/read", uri=INDEX)
        for uri in ("SKILL://index.json", "skill://%69ndex.json"):
            result = await wire.call("resources/read", uri=uri)
            assert result["contents"][0]["text"] == wanted["contents"][0]["text"]


@rule("I1")
async def test_archives_are_not_among_the_resources_that_people_browse(connect: Connect) -> None:
    async with connect() as wire:
        listed = {resource["uri"] for resource in (await wire.call("resources/list"))["resources"]}
    assert listed == {"skill://index.json", *(skill_md_uri(path) for path in SMALL_TREE_SKILLS)}


@rule("B1")
async def test_an_entry_with_very_long_words_is_not_in_the_index(caplog: pytest.LogCaptureFixture) -> None:
    """One upstream with 1,900 descriptions of 60 KB made an index of 228 MB."""
    catalog = MemoryCatalog(
        [
            Skill(name, {"SKILL.md": skill_md(name, description="d" * size)})
            for name, size in (("large", 60_000), ("small", 1024))
        ]
    )
    async with Client(build_server(Skills(catalog))) as client:
        [content] = (await client.read_resource(INDEX)).contents
        assert isinstance(content, TextResourceContents)
        assert [item["name"] for item in json.loads(content.text)["skills"]] == ["small"]
    assert "only in skills/list: 1" in caplog.text
