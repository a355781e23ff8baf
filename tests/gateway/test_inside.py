"""What a gateway does not reveal: credentials in both directions, addresses, and everything but skills."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gateway.stage import gateway_of, hostile
from http_server import serving_http
from skillwire import SkillwireError, connect
from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills, build_server
from skillwire.wire.fallback import LIST, LOAD, READ, SEARCH

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
NOTES = "skill://acme/flat/notes.md"
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("skills/list", {}),
    ("skills/get", {"uri": "skill://acme/flat/SKILL.md"}),
    ("skills/get", {"uri": "skill://acme/nothing/SKILL.md"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": NOTES}),
    ("resources/read", {"uri": "skill://acme/flat/nothing"}),
    ("resources/directory/read", {"uri": "skill://acme/flat"}),
    ("tools/call", {"name": LOAD, "arguments": {"skill": "flat"}}),
    ("prompts/list", {}),
]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_no_credential_passes_in_either_direction(state: Path, mode: str) -> None:
    """An upstream gets its configured headers; a client never sees them, also not in errors."""
    server = hostile()
    async with server.serving() as url:
        entry = {"url": url, "headers": {"Authorization": "Bearer theirs"}}
        async with gateway_of(state, {"acme": entry}) as gateway:
            ours = build_server(Skills(gateway.catalog, watch=False, dialects=Dialects(fallback="always")))
            target = {"type": "http", "headers": {"Authorization": "Bearer mine", "Cookie": "mine=1"}}
            async with serving_http(ours) as front, connect({**target, "url": front}, mode=mode) as client:
                said = [await answered(client, method, params) for method, params in ASKED]
    assert "notes\\n" in json.dumps(said)
    assert {ask.headers.get("authorization") for ask in server.asked} == {"Bearer theirs"}
    assert not any("cookie" in ask.headers for ask in server.asked)
    for text in ("Bearer", "theirs", url.removeprefix("http://"), str(server.port)):
        assert text not in json.dumps(said)


async def answered(client: Any, method: str, params: dict[str, Any]) -> Any:
    try:
        return await client.connection.request(method, **params)
    except SkillwireError as error:
        return [error.message, error.hint]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_and_prompts_of_an_upstream_stay_where_they_are(state: Path, mode: str) -> None:
    """It carries skills only: nothing else is requested or listed."""
    server = hostile()
    server.capabilities |= {"tools": {}, "prompts": {}}
    server.answers["tools/list"] = {"tools": [{"name": "drop_tables", "inputSchema": {"type": "object"}}]}
    server.answers["prompts/list"] = {"prompts": [{"name": "theirs"}]}
    async with gateway_of(state, {"acme": server}) as gateway:
        ours = build_server(Skills(gateway.catalog, watch=False, dialects=Dialects(fallback="always")))
        async with connect(ours, mode=mode) as client:
            tools = (await client.connection.request("tools/list"))["tools"]
            prompts = (await client.connection.request("prompts/list"))["prompts"]
            with pytest.raises(SkillwireError):
                await client.connection.request("tools/call", name="drop_tables", arguments={})
    assert {tool["name"] for tool in tools} == {LIST, LOAD, READ, SEARCH}
    assert [prompt["name"] for prompt in prompts] == ["flat"]
    assert not {"tools/list", "tools/call", "prompts/list"} & set(server.methods())
