"""Responses of dialects have the same checks and the same fields as those of the SDK."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.subscriptions import ResourcesListChanged, ToolsListChanged
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.server.skills import Skills
from trees import skill_md

pytestmark = pytest.mark.anyio
PATIENCE = 20


def catalog() -> MemoryCatalog:
    return MemoryCatalog([Skill("one", {"SKILL.md": skill_md("one")})])


@rule("L1")
@pytest.mark.parametrize("method", ["skills/list", "resources/list", "tools/list"])
async def test_a_request_before_the_handshake_is_refused(method: str) -> None:
    server = Skills(catalog()).attach(Server("x"))
    to_server, requests = anyio.create_memory_object_stream[Any](1)
    responses, from_server = anyio.create_memory_object_stream[Any](1)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(server.run, requests, responses, server.create_initialization_options())
            request = JSONRPCRequest(jsonrpc="2.0", id=1, method=method, params={})
            async with to_server, from_server:
                await to_server.send(SessionMessage(request))
                error: Any = (await from_server.receive()).message.error
                assert (error.code, error.message) == (-32602, "Invalid request parameters")
            group.cancel_scope.cancel()


@rule("S1")
async def test_a_stream_has_the_events_of_the_server_and_ours() -> None:
    skills, server = catalog(), MCPServer("x")

    @server.tool()
    async def change(ctx: Context) -> str:
        await ctx.notify_tools_changed()
        return "done"

    Skills(skills).attach(server)
    heard: list[type] = []
    with anyio.fail_after(PATIENCE):
        async with (
            Client(server) as client,
            client.listen(tools_list_changed=True, resources_list_changed=True) as events,
        ):
            skills.put(Skill("two", {"SKILL.md": skill_md("two")}))
            heard.append(type(await anext(cast("Any", events))))
            await client.call_tool("change")
            heard.append(type(await anext(cast("Any", events))))
    assert heard == [ResourcesListChanged, ToolsListChanged]
