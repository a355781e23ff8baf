"""One meaning of ``skills/list`` for each endpoint: what only one dialect has is unknown on the others."""

from __future__ import annotations

import pytest
from mcp import MCPError

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


async def test_our_own_method_names_are_nobodys_to_call(connect) -> None:
    async with connect() as wire:
        with pytest.raises(MCPError) as refused:
            await wire.call("skillwire/resources/read", uri="skill://refunds/SKILL.md")
        assert refused.value.error.code == -32601
