"""Every dialect from one catalog: the same skills, the same bytes, whatever is spoken and over whatever.

One journey for each dialect, done by this project's own client (by plain tools for the fallback), over memory,
stdio and HTTP, in both eras; ``make test`` prints the table.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from http_server import serving_http
from matrix import PROPERTY
from rotation import every_setting
from rules import rule
from skillwire import connect
from skillwire.errors import NotFoundError
from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills, build_server
from skillwire.skill.uri import parse_uri
from starting import skillwire_command
from trees import SMALL_TREE_SKILLS, small_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from interaction.conftest import Setting
    from skillwire.client.skills import SkillsClient

pytestmark = [pytest.mark.anyio, every_setting]
TREE = small_tree()
REFUNDS = "acme/billing/refunds"
REPLY = f"{REFUNDS}/templates/reply.md"
BODY = "Do it."
NAMES = {path.rpartition("/")[2] for path in SMALL_TREE_SKILLS}
ENDPOINT_OF = {"sep-2076": "sep-2076", "native": "native"}  # the others share one


@asynccontextmanager
async def place(setting: Setting, root: Path, endpoint: Any) -> AsyncIterator[Any]:
    """Where a client finds ``endpoint`` of a server of the skills in ``root``."""
    if setting.transport == "memory":
        yield build_server(Skills(root, dialects=Dialects(endpoint)))
    elif setting.transport == "stdio":
        yield [*skillwire_command(), "serve", str(root), "--dialect", endpoint]
    else:
        async with serving_http(build_server(Skills(root))) as url:
            yield url if endpoint == "extension" else f"{url}/{endpoint}"


@pytest.fixture
async def target(setting: Setting, root: Path, dialect: str) -> AsyncIterator[Any]:
    async with place(setting, root, ENDPOINT_OF.get(dialect, "extension")) as found:
        yield found


async def by_digest(client: SkillsClient) -> None:
    """``extension`` and ``index``: complete entries, verified reads."""
    entries = {entry.path: entry async for entry in client.list_skills()}
    assert sorted(entries) == SMALL_TREE_SKILLS
    for path in SMALL_TREE_SKILLS:
        entry = await client.get_skill(entries[path].uri)
        assert not entry.gaps
        for file in entry.files:
            read = await client.read_resource(entry, file.uri)
            assert read.data == TREE[_path(file.uri)]
    with pytest.raises(NotFoundError):
        await client.get_skill("skill://acme/billing/nobody/SKILL.md")


async def by_name(client: SkillsClient) -> None:
    """``sep-2076``: instructions by name, files verified by the digests that go with them."""
    assert {entry.name async for entry in client.list_skills()} == NAMES
    skill = await client.get_named("refunds")
    assert skill.instructions.strip() == BODY
    entry = await client.get_skill("named://refunds/SKILL.md")
    assert {file.uri for file in entry.files if file.digest and file.size is not None} == {
        f"skill://{path}" for path in TREE if path.startswith(f"{REFUNDS}/") and not path.endswith("/SKILL.md")
    }
    assert (await client.read_resource(entry, f"skill://{REPLY}")).data == TREE[REPLY]
    with pytest.raises(NotFoundError) as refused:
        await client.get_named("refnds")
    assert "refunds" in refused.value.hint  # what the server says to do next is passed on


async def by_activation(client: SkillsClient) -> None:
    """``native``: nested skills and files can be used while the skill is active; no list has them (M3)."""
    assert {entry.name async for entry in client.list_skills()} == NAMES - {"changelog"}
    active = await client.activate("refunds")
    assert active.instructions.strip() == BODY
    read = await active.read_resource(f"skill://{REPLY}")
    assert read["contents"][0]["text"].encode() == TREE[REPLY]
    await client.deactivate("refunds")
    with pytest.raises(NotFoundError, match="refunds"):
        await active.read_resource(f"skill://{REPLY}")
    assert [skill["name"] for skill in (await client.activate("release")).skills] == ["changelog"]
    assert {entry.name async for entry in client.list_skills()} == NAMES - {"changelog"}
    assert (await client.activate("changelog")).instructions


async def by_tools(client: Client) -> None:
    """``fallback``: a host that knows only tools, and one with slash commands."""
    found = await client.call_tool("search_skills", {"query": "refunds"})
    assert f"skill://{REFUNDS}/SKILL.md" in found.content[0].text
    loaded = await client.call_tool("load_skill", {"skill": "refunds"})
    assert loaded.content[-1].text.encode() == TREE[f"{REFUNDS}/SKILL.md"]
    read = await client.call_tool("read_skill_file", {"skill": "refunds", "path": "templates/reply.md"})
    assert read.content[-1].text.encode() == TREE[REPLY]
    assert {prompt.name for prompt in (await client.list_prompts()).prompts} == NAMES
    prompt = await client.get_prompt("refunds")
    assert prompt.messages[-1].content.text.encode() == TREE[f"{REFUNDS}/SKILL.md"]


JOURNEYS = {"extension": by_digest, "index": by_digest, "sep-2076": by_name, "native": by_activation}


@rule("I1", "I2", "K2", "P1", "P2", "P4", "M1", "M2", "M3")
@pytest.mark.parametrize("dialect", JOURNEYS)
async def test_the_client_gets_the_same_skills_in_every_dialect(dialect, setting, target, record_property) -> None:
    """The client finds out which dialect an endpoint speaks; the index it has to be told of."""
    record_property(PROPERTY, [dialect, *setting])
    named = {"dialect": "index"} if dialect == "index" else {}
    async with connect(target, mode=_mode(setting), **named) as client:
        assert await client.dialect() == dialect
        await JOURNEYS[dialect](client)
        assert client.problems == []


@rule("X1", "X2")
@pytest.mark.parametrize("dialect", ["fallback"])
async def test_a_host_that_knows_only_tools_gets_them_too(dialect, setting, target, record_property) -> None:
    record_property(PROPERTY, [dialect, *setting])
    async with Client(_transport(target), mode=_mode(setting)) as client:
        await by_tools(client)


def _mode(setting: Setting) -> str:
    return "legacy" if setting.era == "legacy" else "auto"


def _transport(target: Any) -> Any:
    if isinstance(target, list):
        return stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    return target


def _path(uri: str) -> str:
    return parse_uri(uri).path
