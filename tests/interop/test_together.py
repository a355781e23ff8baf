"""One running server, and everybody at once: each client speaks the dialect it knows, and all get the same bytes.

Microsoft Agent Framework reads the index, FastMCP and the TypeScript client the extension, a plain MCP client
calls tools, our own client speaks the two dialects that know skills by name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from agent_framework import MCPSkillsSource
from agent_framework import SkillsSourceContext as Context
from anyio import to_thread
from fastmcp import Client as FastClient
from fastmcp.skills import SkillsClientExtension
from mcp import Client

from interop.honest import by_path, hashes, skills_of
from interop.test_fastmcp_client import check_all_read
from rules import rule
from skillwire import connect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interop.running import Node, Serve, Served

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # how the framework says "experimental"
]
NAMES = {"extension": "", "sep-2076": "/sep-2076", "native": "/native"}


async def agent_framework(served: Served) -> None:
    """I1: the older generation of the index; supporting files are read beside the ``SKILL.md``."""
    async with Client(served.url) as client:
        skills = await MCPSkillsSource(client=client).get_skills(cast("Context", None))
        assert sorted(skill.frontmatter.name for skill in skills) == sorted(
            path.rpartition("/")[2] for path in skills_of(served.tree)
        )
        refunds = next(skill for skill in skills if skill.frontmatter.name == "refunds")
        root = "acme/billing/refunds"
        assert (await refunds.get_content()).encode() == served.tree[f"{root}/SKILL.md"]
        reply = await refunds.get_resource("templates/customer-reply.md")
        assert reply is not None
        assert (await reply.read()).encode() == served.tree[f"{root}/templates/customer-reply.md"]
        assert await refunds.get_resource("templates/nobody.md") is None


async def fastmcp(served: Served) -> None:
    """The extension, by a client that refuses whatever it does not know."""
    async with FastClient(served.url, mode="auto", extensions=[SkillsClientExtension()]) as client:
        await check_all_read(client, served)


def typescript(node: Node, era: str) -> Callable[[Served], Awaitable[None]]:
    async def run(served: Served) -> None:
        """The extension, every file verified."""
        done = await to_thread.run_sync(node.run, "read_all.mjs", era, "http", served.url)
        assert done.returncode == 0, done.stderr
        assert by_path(json.loads(done.stdout)["read"]) == hashes(served.tree)

    return run


async def tools_only(served: Served) -> None:
    """X1: a host that has never heard of skills."""
    async with Client(served.url) as client:
        found = await client.call_tool("search_skills", {"query": "a customer wants their money back"})
        assert "skill://acme/billing/refunds/SKILL.md" in cast("Any", found.content[0]).text
        loaded = await client.call_tool("load_skill", {"skill": "refunds"})
        text = cast("Any", loaded.content[-1]).text
        assert text.encode() == served.tree["acme/billing/refunds/SKILL.md"]


def ours(endpoint: str) -> Callable[[Served], Awaitable[None]]:
    async def run(served: Served) -> None:
        """P1, M1: our own client finds out what is spoken there."""
        async with connect(served.url + NAMES[endpoint]) as client:
            assert await client.dialect() == endpoint
            names = {entry.name async for entry in client.list_skills()}
            nested = {"changelog"} if endpoint == "native" else set[str]()  # M3: activating its own names it
            assert names == {path.rpartition("/")[2] for path in skills_of(served.tree)} - nested

    return run


@rule("I1", "P1", "M1", "X1", "K1")
async def test_everybody_is_served_by_one_server_at_the_same_time(node: Node, serve: Serve) -> None:
    """Two rounds of seven clients; the TypeScript client in one era, and then in the other."""
    served = serve("examples")
    clients = [agent_framework, fastmcp, tools_only, *(ours(endpoint) for endpoint in NAMES)]
    for era in ("modern", "legacy"):
        async with anyio.create_task_group() as group:
            for client in (*clients, typescript(node, era)):
                group.start_soon(client, served)
