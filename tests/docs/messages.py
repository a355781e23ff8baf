"""The messages in docs/dialects.md, as our server sends them.

``python tests/docs/messages.py`` writes them into the document again; the test beside it fails while they differ.
A block below ``<!-- message: NAME -->`` belongs to the exchange of that name. Long texts, digests, tokens and
blobs are cut to their beginning, and what differs from run to run is not shown.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import anyio
from mcp import Client, MCPError
from mcp.server.mcpserver import MCPServer
from mcp_types import Request, Result
from pydantic import ConfigDict

from skillwire import MemoryCatalog, Skill, Skills
from skillwire.server.dialect import Dialects
from skillwire.wire.meta import ACTIVATION

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = Path(__file__).parents[2] / "docs/dialects.md"
MARKED = re.compile(r"(<!-- message: ([\w /.-]+) -->\n```json\n)(.*?)(```\n)", re.DOTALL)
URI = "skill://acme/refunds/SKILL.md"
REFUNDS = """\
---
name: refunds
description: Decides and carries out customer refunds. Use when a customer wants money back.
version: "2.1"
arguments:
  - name: order
    description: The number of the order
    required: true
dependencies:
  tools: [lookup_order]
metadata:
  mcp-tools: lookup_order
---
# Refund order {{order}}

Look the order up, decide, and answer with [the template](templates/reply.md).
"""
REPLY = "Dear customer,\n\nyour money is on its way.\n"
_RUN_TO_RUN = ("io.modelcontextprotocol/serverInfo",)


class Exchange(NamedTuple):
    """One request on one endpoint. ``carries`` names an earlier exchange whose activation token goes along."""

    name: str
    endpoint: Any
    method: str
    params: Mapping[str, Any] = MappingProxyType({})
    carries: str | None = None


class AnyResult(Result):
    """Whatever the server said, with nothing dropped."""

    model_config = ConfigDict(extra="allow")


EXCHANGES = (
    Exchange("extension list", "extension", "skills/list"),
    Exchange("extension get", "extension", "skills/get", {"uri": URI}),
    Exchange("extension read", "extension", "resources/read", {"uri": URI}),
    Exchange("index", "extension", "resources/read", {"uri": "skill://index.json"}),
    Exchange("index archive", "extension", "resources/read", {"uri": "skill://acme/refunds.zip"}),
    Exchange("sep-2076 list", "sep-2076", "skills/list"),
    Exchange("sep-2076 get", "sep-2076", "skills/get", {"name": "refunds", "arguments": {"order": "A-17"}}),
    Exchange("sep-2076 missing", "sep-2076", "skills/get", {"name": "refunds"}),
    Exchange("native list", "native", "skills/list"),
    Exchange("native refused", "native", "tools/call", {"name": "lookup_order", "arguments": {"order": "A-17"}}),
    Exchange("native activate", "native", "skills/activate", {"name": "refunds"}),
    Exchange(
        "native call",
        "native",
        "tools/call",
        {"name": "lookup_order", "arguments": {"order": "A-17"}},
        carries="native activate",
    ),
    Exchange("fallback tools", "extension", "tools/list"),
    Exchange(
        "fallback search",
        "extension",
        "tools/call",
        {"name": "search_skills", "arguments": {"query": "money back"}},
    ),
    Exchange(
        "fallback load", "extension", "tools/call", {"name": "load_skill", "arguments": {"skill": "refunds"}}
    ),
    Exchange("fallback prompts", "extension", "prompts/list"),
)


def shop(endpoint: Any) -> MCPServer[Any]:
    """A server with a tool of its own and one skill."""
    server = MCPServer("shop")

    @server.tool()
    def lookup_order(order: str) -> str:
        """Tell what is known about an order."""
        return f"{order}: paid, 12.00 EUR"

    catalog = MemoryCatalog([Skill("acme/refunds", {"SKILL.md": REFUNDS, "templates/reply.md": REPLY})])
    return Skills(catalog, dialects=Dialects(endpoint)).attach(server)


async def capture() -> dict[str, str]:
    """Every exchange as it is shown, by name."""
    shown: dict[str, str] = {}
    tokens: dict[str, Any] = {}
    for endpoint in ("extension", "sep-2076", "native"):
        async with Client(shop(endpoint), mode="auto") as client:
            for exchange in EXCHANGES:
                if exchange.endpoint == endpoint:
                    shown[exchange.name] = await _one(client, exchange, tokens)
    return shown


async def _one(client: Client, exchange: Exchange, tokens: dict[str, Any]) -> str:
    params = dict(exchange.params)
    if exchange.carries:
        params["_meta"] = tokens[exchange.carries]
    try:
        request = Request[dict[str, Any], str](method=exchange.method, params=params)
        answer = await client.session.send_request(request, AnyResult)
        result = answer.model_dump(by_alias=True, exclude_unset=True)
        tokens[exchange.name] = {k: v for k, v in (result.get("_meta") or {}).items() if k == ACTIVATION}
        shown = {"result": result}
    except MCPError as error:
        shown = {"error": error.error.model_dump(by_alias=True, exclude_none=True)}
    message = {"method": exchange.method, **({"params": params} if params else {})}
    return f"{_written(message)}\n{_written(shown)}\n"


def _written(message: dict[str, Any]) -> str:
    return json.dumps(_shortened(message), indent=2, ensure_ascii=False)


def _shortened(value: Any, key: str = "") -> Any:
    """``value``, with long texts cut and without what nobody could compare."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        short = {k: _shortened(v, k) for k, v in items if k not in _RUN_TO_RUN}
        return {k: v for k, v in short.items() if (k, v) != ("_meta", {})}
    if isinstance(value, list):
        return [_shortened(item) for item in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    if key == "text" and value.startswith("{"):
        return _shortened(json.loads(value))
    if value.startswith("sha256:"):
        return f"{value[:15]}…"
    if key == "blob" or key.endswith("/activation"):
        return f"{value[:12]}…"
    return f"{value[:150]}…" if len(value) > 160 else value


def filled(page: str, shown: dict[str, str]) -> str:
    """``page`` with every marked block as it is in ``shown``."""
    return MARKED.sub(lambda match: f"{match[1]}{shown[match[2]]}{match[4]}", page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(), anyio.run(capture)))
