"""One meaning of ``skills/list`` for each endpoint: what only one dialect has is unknown on the others."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import MCPError

from rules import rule
from skillwire import Skills
from skillwire.errors import FormatError
from skillwire.server.skills import build_server
from skillwire.types import DialectPaths, Dialects
from skillwire.wire.extension import EXTENSION_ID

pytestmark = pytest.mark.anyio


@rule("K1", "K2", "P4", "X1")
@pytest.mark.parametrize("endpoint", ["sep-2076", "native"])
async def test_what_only_the_extension_has_is_unknown_where_another_dialect_is_spoken(connect, endpoint) -> None:
    """Neither directories nor the fallback's tools; resources are there, and their lists are empty."""
    async with connect(endpoint, fallback="always") as wire:
        assert EXTENSION_ID not in (wire.client.server_capabilities.extensions or {})
        assert wire.client.server_capabilities.resources is not None
        assert (await wire.call("resources/list"))["resources"] == []
        assert (await wire.call("resources/templates/list"))["resourceTemplates"] == []
        with pytest.raises(MCPError) as refused:
            await wire.call("resources/directory/read", uri="skill://refunds")
        assert refused.value.error.code == -32601
        for tool in ("list_skills", "search_skills", "load_skill", "read_skill_file"):
            with pytest.raises(MCPError):
                await wire.call("tools/call", name=tool, arguments={})


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"default": "index"}, id="dialect"),
        pytest.param({"fallback": "nevr"}, id="fallback"),
        pytest.param({"activation_seconds": 0}, id="seconds"),
        pytest.param({"activation_key": "x" * 40}, id="key-is-text"),
    ],
)
def test_choices_that_do_not_exist_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        Dialects(**options)


@pytest.mark.parametrize("path", ["mcp", "/mcp/", ""], ids=["no-slash", "slash-at-the-end", "empty"])
def test_paths_that_no_request_has_are_refused_at_once(path: str) -> None:
    with pytest.raises(FormatError):
        DialectPaths(build_server(Skills()).streamable_http_app(), path)


@rule("G1")
async def test_a_client_that_asks_by_name_is_told_which_endpoint_answers(connect) -> None:
    async with connect() as wire:
        with pytest.raises(MCPError) as refused:
            await wire.call("skills/get", name="refunds")
        assert refused.value.error.code == -32602
        assert "/mcp/sep-2076" in refused.value.error.data["hint"]


async def test_internal_method_names_cannot_be_called(connect) -> None:
    async with connect() as wire:
        with pytest.raises(MCPError) as refused:
            await wire.call("skillwire/resources/read", uri="skill://refunds/SKILL.md")
        assert refused.value.error.code == -32601
