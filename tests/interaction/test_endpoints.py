"""One meaning of ``skills/list`` for each endpoint: what only one dialect has is unknown on the others."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import MCPError

from skillwire import DialectPaths, Dialects, FormatError, Skills
from skillwire.server.run import build_server
from skillwire.wire.extension import EXTENSION_ID

pytestmark = pytest.mark.anyio
NAMED = ("sep-2076", "native")


@pytest.mark.parametrize("endpoint", NAMED)
async def test_k1_the_extension_is_declared_where_it_is_spoken_and_nowhere_else(connect, endpoint) -> None:
    async with connect() as wire:
        assert EXTENSION_ID in (wire.client.server_capabilities.extensions or {})
    async with connect(endpoint) as wire:
        assert EXTENSION_ID not in (wire.client.server_capabilities.extensions or {})


@pytest.mark.parametrize("endpoint", NAMED)
async def test_k2_directories_are_not_read_where_the_extension_is_not_spoken(connect, endpoint) -> None:
    async with connect(endpoint) as wire:
        with pytest.raises(MCPError) as refused:
            await wire.call("resources/directory/read", uri="skill://refunds")
        assert refused.value.error.code == -32601


@pytest.mark.parametrize("endpoint", NAMED)
async def test_p4_resources_are_declared_and_their_lists_are_there_if_empty(connect, endpoint) -> None:
    async with connect(endpoint) as wire:
        assert wire.client.server_capabilities.resources is not None
        assert (await wire.call("resources/list"))["resources"] == []
        assert (await wire.call("resources/templates/list"))["resourceTemplates"] == []


@pytest.mark.parametrize(
    "options",
    [
        {"default": "natve"},
        {"default": "index"},
        {"fallback": "nevr"},
        {"activation_seconds": 0},
        {"activation_key": b"short"},
        {"activation_key": "x" * 40},
    ],
    ids=str,
)
def test_choices_that_do_not_exist_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        Dialects(**options)


@pytest.mark.parametrize("path", ["mcp", "/mcp/", ""])
def test_paths_that_no_request_has_are_refused_at_once(path: str) -> None:
    with pytest.raises(FormatError):
        DialectPaths(build_server(Skills()).streamable_http_app(), path)


async def test_g1_a_client_that_asks_by_name_is_told_where_to_go(connect) -> None:
    async with connect() as wire:
        with pytest.raises(MCPError) as refused:
            await wire.call("skills/get", name="refunds")
        assert refused.value.error.code == -32602
        assert "/mcp/sep-2076" in refused.value.error.data["hint"]


async def test_our_own_method_names_are_nobodys_to_call(connect) -> None:
    async with connect() as wire:
        with pytest.raises(MCPError) as refused:
            await wire.call("skillwire/resources/read", uri="skill://refunds/SKILL.md")
        assert refused.value.error.code == -32601
