"""Streams are notified once of each change, and of skills that are declared while the server runs."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.subscriptions import ResourcesListChanged, ToolsListChanged

from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.server.skills import Skills
from trees import skill_md

pytestmark = pytest.mark.anyio
PATIENCE = 20


@rule("S1")
async def test_a_change_is_sent_once_however_many_connections_run_the_server() -> None:
    catalog, server = MemoryCatalog([]), MCPServer("x")

    @server.tool()
    async def change(ctx: Context) -> str:
        await ctx.notify_tools_changed()
        return "done"

    Skills(catalog).attach(server)
    heard: list[type] = []
    with anyio.fail_after(PATIENCE):
        async with (
            Client(server) as client,
            Client(server),
            client.listen(tools_list_changed=True, resources_list_changed=True) as events,
            anyio.create_task_group() as group,
        ):
            first = anyio.Event()

            async def collect() -> None:
                async for event in cast("Any", events):  # a client merges events that nothing waits for
                    heard.append(type(event))
                    first.set()
                    if isinstance(event, ToolsListChanged):
                        return

            group.start_soon(collect)
            catalog.put(Skill("one", {"SKILL.md": skill_md("one")}))
            await first.wait()
            await client.call_tool("change")
    assert heard == [ResourcesListChanged, ToolsListChanged]


@rule("S1")
async def test_a_skill_that_is_declared_while_the_server_runs_is_a_change() -> None:
    skills = Skills(MemoryCatalog([Skill("one", {"SKILL.md": skill_md("one")})]))
    server = skills.attach(Server("x"))
    with anyio.fail_after(PATIENCE):
        async with Client(server) as client, client.listen(resources_list_changed=True) as events:
            skills.skill("two")(lambda: {"SKILL.md": skill_md("two")})
            listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
            assert isinstance(await anext(cast("Any", events)), ResourcesListChanged)
    assert listed[:2] == ["skill://one/SKILL.md", "skill://two/SKILL.md"]
