"""The page with a message of each dialect, as our server sends them. ``website.py`` puts it into the site.

Long texts, digests, tokens and blobs are cut to their beginning. Values that differ from run to run are not shown.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mcp import Client, MCPError
from mcp.server.mcpserver import MCPServer
from mcp_types import Request, Result
from pydantic import ConfigDict

from skillwire import MemoryCatalog, Skill, Skills
from skillwire.server.dialect import Dialects
from skillwire.wire.meta import ACTIVATION

if TYPE_CHECKING:
    from collections.abc import Mapping

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
INTRODUCTION = f"""\
# Messages of each dialect

These messages are recorded when this page is built. Long texts, digests and tokens are cut. The server has a tool,
`lookup_order`, and one skill:

```markdown
{REFUNDS}```
"""
REPLY = "Dear customer,\n\nyour money is on its way.\n"
_RUN_TO_RUN = ("io.modelcontextprotocol/serverInfo",)


class Exchange(NamedTuple):
    """One request on one endpoint. ``carries`` names an earlier exchange whose activation token is sent too."""

    name: str
    endpoint: Any
    method: str
    params: Mapping[str, Any] = MappingProxyType({})
    carries: str | None = None


class AnyResult(Result):
    """The complete result of the server."""

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
    """Return a server with one tool and one skill."""
    server = MCPServer("shop")

    @server.tool()
    def lookup_order(order: str) -> str:
        """Tell what is known about an order."""
        return f"{order}: paid, 12.00 EUR"

    catalog = MemoryCatalog([Skill("acme/refunds", {"SKILL.md": REFUNDS, "templates/reply.md": REPLY})])
    return Skills(catalog, dialects=Dialects(endpoint)).attach(server)


async def capture() -> dict[str, str]:
    """Return every exchange as text, by name."""
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
    """Return ``value`` with long texts cut, and without values that differ from run to run."""
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


async def message_page() -> str:
    """Return the page: the skill, and every exchange under the name of its dialect."""
    shown, text = await capture(), [INTRODUCTION]
    for exchange in EXCHANGES:
        dialect, _, title = exchange.name.partition(" ")
        if f"\n## `{dialect}`\n" not in text:
            text.append(f"\n## `{dialect}`\n")
        text.append(f"\n{dialect}: {title or 'read'}\n\n```json\n{shown[exchange.name]}```\n")
    return "".join(text)
