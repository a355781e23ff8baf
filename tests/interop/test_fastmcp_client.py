"""FastMCP's client, which reads skills in the modern era only and refuses a page for any entry it dislikes."""

from __future__ import annotations

from base64 import b64decode
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.skills import SkillsClientExtension
from mcp_types import TextResourceContents
from pydantic import ValidationError

from interop.cells import NASTY, ONE_TRAIT
from interop.honest import CORE_SCHEMA, hashes, path_of, samples, skills_of
from interop.running import VERSIONS
from rules import rule

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from interop.cells import Record
    from interop.running import Serve, Served, Transport

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def connected(served: Served, transport: Transport, mode: str = "auto") -> AsyncIterator[Client]:
    command, *words = served.command
    target = served.url if transport == "http" else StdioTransport(command, words, keep_alive=False)
    async with Client(target, mode=mode, extensions=[SkillsClientExtension()]) as client:
        yield client


async def read_bytes(client: Client, uri: str) -> bytes:
    [content] = await client.read_resource(uri)
    return content.text.encode() if isinstance(content, TextResourceContents) else b64decode(content.blob)


async def check_all_read(client: Client, served: Served, only: Collection[str] | None = None) -> None:
    """Everything is listed, got and read, and is what the entries and the disk say; or ``only`` some of it is."""
    wanted = hashes(served.tree)
    if only is not None:
        wanted = {path: digest for path, digest in wanted.items() if path in only}
    assert client.protocol_version == VERSIONS["modern"]
    read: dict[str, str] = {}
    listed = await client.list_skills()
    for skill in (each for each in listed if path_of(each.uri) in wanted):
        assert await client.get_skill(skill.uri) == skill
        assert skill.resources != "dynamic"
        for resource in (each for each in skill.resources if path_of(each.uri) in wanted):
            data = await read_bytes(client, resource.uri)
            read[path_of(resource.uri)] = sha256(data).hexdigest()
            assert (resource.digest, resource.size) == (f"sha256:{sha256(data).hexdigest()}", len(data))
    assert sorted(path_of(skill.uri).removesuffix("/SKILL.md") for skill in listed) == skills_of(served.tree)
    assert read == wanted


@rule("K1", "K3", "L1", "G1", "R1", "E2", "E3", "E4", "F4", "F6", "U4", "U7", "V1")
@pytest.mark.parametrize(("transport", "name"), [("stdio", "examples"), ("http", "nasty")])
async def test_every_file_is_read(cell: Record, serve: Serve, name: str, transport: Transport) -> None:
    cell("server", "fastmcp", transport, "modern", "skills", *(NASTY if name == "nasty" else ()))
    served = serve(name)
    async with connected(served, transport) as client:
        await check_all_read(client, served)


@rule("F4")
async def test_fields_mean_what_yaml_1_2_says(serve: Serve) -> None:
    """Not booleans, octals, sexagesimals, dates or thousands."""
    async with connected(serve("nasty"), "http") as client:
        fields = (await client.get_skill("skill://core-schema/SKILL.md")).frontmatter.root
    for index, (text, meaning) in enumerate(CORE_SCHEMA):
        value = fields[f"field-{index}"]
        assert (value, isinstance(value, bool)) == (meaning, isinstance(meaning, bool)), text
    assert fields["metadata"] == {"quoted": "yes", "octal": "012", "date": "2026-01-01", "on": "off"}


@rule("L1", "L3", "E6", "F5", "F6")
@pytest.mark.parametrize("name", ONE_TRAIT)
async def test_pages_a_byte_order_mark_a_kept_block_and_large_skills_are_read(
    cell: Record, serve: Serve, name: str
) -> None:
    """It compares no frontmatter, so it has no quarrel with any."""
    cell("server", "fastmcp", "http", "modern", *ONE_TRAIT[name])
    served = serve(name)
    async with connected(served, "http") as client:
        await check_all_read(client, served, samples(served.tree))


@rule("F7")
@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("metadata", "metadata must map string keys to string values"),
        ("tools", "allowed-tools must be a string"),
    ],
)
async def test_fastmcp_refuses_the_page_for_one_loose_entry_but_gets_the_others(
    serve: Serve, name: str, complaint: str
) -> None:
    """The peer's way: it wants the letter of F3, and one entry that differs costs it the whole page."""
    served = serve(name)
    async with connected(served, "http") as client:
        with pytest.raises(ValidationError, match=complaint) as caught:
            await client.list_skills()
        assert caught.value.error_count() == 1
        with pytest.raises(ValidationError, match=complaint):
            await client.get_skill("skill://loose/SKILL.md")
        assert (await client.get_skill("skill://clean/SKILL.md")).frontmatter.name == "clean"
        assert await read_bytes(client, "skill://loose/SKILL.md") == served.tree["loose/SKILL.md"]


@rule("K2")
async def test_fastmcp_asks_for_skills_in_the_modern_era_only(
    cell: Record, serve: Serve, transport: Transport
) -> None:
    """The peer's way: in the handshake era it does not ask. Plain reads work."""
    cell("server", "fastmcp", transport, "legacy", "skills", notes={"skills": "fastmcp-modern-only"})
    served = serve("examples")
    async with connected(served, transport, mode="legacy") as client:
        assert client.protocol_version == VERSIONS["legacy"]
        with pytest.raises(RuntimeError, match="requires a modern MCP connection"):
            await client.list_skills()
        listed = {path_of(str(resource.uri)) for resource in await client.list_resources()}
        assert listed == {"index.json", *(f"{skill}/SKILL.md" for skill in skills_of(served.tree))}
        assert await read_bytes(client, "skill://release/SKILL.md") == served.tree["release/SKILL.md"]


@rule("K1", "K3", "L1", "G1", "R1")
async def test_skills_attached_to_a_fastmcp_server_are_read_by_its_own_client(
    attached: Served, transport: Transport
) -> None:
    async with connected(attached, transport) as client:
        await check_all_read(client, attached)
