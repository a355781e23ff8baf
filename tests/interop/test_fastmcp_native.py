"""The ``native`` dialect on a FastMCP server: its decorators, its lists, its refusals (M1–M5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from interop import fastmcp_native_server
from interop.fastmcp_native_server import build
from interop.running import fastmcp_command
from rotation import every_setting, settings
from rules import rule
from skillwire import connect
from skillwire.errors import NotFoundError
from skillwire.server.dialect import Dialects
from skillwire.server.sdk_compat import lowlevel_server
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from interop.running import Era
    from skillwire.types import SkillsClient

pytestmark = pytest.mark.anyio

TREE = {
    "acme/refunds/SKILL.md": skill_md("refunds", body="Pay back.\n"),
    "acme/refunds/reply.md": b"Dear customer,\n",
}
SCOPED = ["http://example.com/", "rules://refunds", "orders://a/b/c"]


@pytest.fixture(params=settings([("memory",), ("stdio",)]))
async def client(request: pytest.FixtureRequest, tmp_path: Path, era: Era) -> AsyncIterator[SkillsClient]:
    root = str(write_tree(tmp_path / "skills", TREE))
    target: Any = lowlevel_server(build(root))
    if request.param == ("stdio",):
        target = fastmcp_command(fastmcp_native_server.__file__, root)
    async with connect(target, mode="legacy" if era == "legacy" else "auto") as opened:
        yield opened


async def names(client: SkillsClient, kind: str) -> list[str]:
    result = await client.connection.request(f"{kind}/list")
    return [item["name"] for item in result[kind]]


@rule("M1", "M2", "M3")
@every_setting
async def test_the_whole_round(client: SkillsClient) -> None:
    """What is bound is in no list, is called, and is refused again."""
    assert await client.dialect() == "native"
    assert [entry.name async for entry in client.list_skills()] == ["refunds"]
    assert (await names(client, "tools"), await names(client, "prompts")) == (["add"], [])
    refunds = await client.activate("refunds")
    assert refunds.instructions.strip() == "Pay back."
    assert [tool["name"] for tool in refunds.tools] == ["pay"]
    assert refunds.tools[0]["inputSchema"]["required"] == ["order"]
    assert [item["uriTemplate"] for item in refunds.templates] == ["orders://{path*}"]
    assert (await refunds.call_tool("pay", {"order": "7"}))["content"][0]["text"] == "paid 7"
    assert (await refunds.get_prompt("apologise", {"to": "Ada"}))["messages"][0]["content"][
        "text"
    ] == "Sorry, Ada."
    texts = [(await refunds.read_resource(uri))["contents"][0]["text"] for uri in SCOPED]
    assert texts == ["home", "No refunds on Sundays.", "order a/b/c"]
    assert await names(client, "tools") == ["add"]
    await client.deactivate("refunds")
    assert (await names(client, "tools"), await names(client, "resources")) == (["add"], [])


@rule("M3")
async def test_what_is_hidden_says_which_skill_to_activate(client: SkillsClient) -> None:
    for uri in (*SCOPED, "http://example.com", "orders://a?x=1", "orders://a#b", "skill://acme/refunds/reply.md"):
        with pytest.raises(NotFoundError, match="'refunds', which is not active"):
            await client.connection.request("resources/read", uri=uri)
    result = await client.connection.request("tools/call", name="pay", arguments={"order": "7"})
    assert result["isError"] is True
    assert "'refunds', which is not active" in result["content"][0]["text"]
    with pytest.raises(NotFoundError, match="'refunds', which is not active"):
        await client.connection.request("prompts/get", name="apologise", arguments={"to": "Ada"})


@rule("M5")
async def test_everything_can_stay_listed(tmp_path: Path, era: Era) -> None:
    server = build(str(write_tree(tmp_path, TREE)), Dialects("native", keep_listed=True))
    async with connect(lowlevel_server(server), mode="legacy" if era == "legacy" else "auto") as client:
        assert await names(client, "tools") == ["add", "pay"]
        result = await client.connection.request("tools/call", name="pay", arguments={"order": "7"})
        assert result["content"][0]["text"] == "paid 7"
