"""A server with tools, prompts and resources of its own, some of which belong to skills.

Run with the folder of ``native_tree`` to serve it on stdio; ``keep`` after it keeps everything listed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer
from mcp_types import Completion

from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills

sys.path.insert(0, str(Path(__file__).parents[1]))
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillwire.server.callers import Caller, Visible
    from trees import Tree

KEY = b"a key of thirty-two bytes or so, for tests"
CALLED: list[str] = []  # which scoped tools really ran


def native_tree() -> Tree:
    """Two skills with things of their own, one inside the first, and one with nothing."""
    bound = "metadata:\n  mcp-tools: lookup_order\n  mcp-resources: rules://refunds\n"
    return {
        "acme/refunds/SKILL.md": skill_md("refunds", "Pays back.", "Pay back.\n", bound),
        "acme/refunds/templates/reply.md": b"Dear customer,\n",
        "acme/refunds/escalation/SKILL.md": skill_md("escalation", "Asks a person.", "Ask.\n"),
        "acme/refunds/escalation/who.md": b"Ada\n",
        "plain/SKILL.md": skill_md("plain", "Nothing special."),
        "shipping/SKILL.md": skill_md("shipping", "Sends.", extra="metadata:\n  mcp-tools: lookup_order gone\n"),
    }


def own_server() -> MCPServer:
    """What there is without skills; ``lookup_order`` and ``rules://refunds`` are bound by frontmatter."""
    server = MCPServer("own")

    @server.tool()
    def add(one: int, two: int) -> int:
        return one + two

    @server.tool()
    def lookup_order(order: str) -> str:
        CALLED.append("lookup_order")
        return f"order {order}"

    @server.tool()
    def escalate() -> str:
        CALLED.append("escalate")
        return "escalated"

    @server.prompt()
    def greet(name: str) -> str:
        return f"Hello, {name}!"

    @server.resource("config://main")
    def config() -> str:
        return "a=1"

    @server.resource("rules://refunds")
    def rules() -> str:
        return "No refunds on Sundays."

    @server.resource("orders://all")
    def every_order() -> str:
        return "all orders"

    @server.resource("notes://{name}")
    def note(name: str) -> str:
        return f"note {name}"

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Completion:
        return Completion(values=["one"])

    return server


def build(
    root: str | Path, dialects: Dialects | None = None, visible: Callable[[Caller], Visible] | None = None
) -> MCPServer:
    """The server with its skills: bound in code before and after they are attached, and by name."""
    skills = Skills(root, dialects=dialects or Dialects("native"), visible=visible)
    refunds, server = skills.scope("acme/refunds"), own_server()

    @refunds.tool(name="pay", description="Pays an order back.")
    def pay_back(order: str) -> str:
        CALLED.append("pay")
        return f"paid {order}"

    skills.attach(server)

    @refunds.prompt
    def apologise(to: str) -> str:
        return f"Sorry, {to}."

    @refunds.resource("orders://{order}")
    def order(order: str) -> str:
        return f"order {order}"

    skills.scope("acme/refunds/escalation").bind(tools=["escalate"])
    return server


if __name__ == "__main__":
    build(sys.argv[1], Dialects("native", keep_listed="keep" in sys.argv[2:])).run()
