"""A server whose tools appear with a skill (the ``native`` dialect): ``python examples/native_server.py``.

Until ``refunds`` is active, clients of this dialect see neither ``pay`` nor the rules; afterwards they do. Over
HTTP, clients of the other dialects see everything, as always.
"""

from pathlib import Path

from mcp.server.mcpserver import MCPServer

from skillwire import Skills
from skillwire.types import Dialects

server = MCPServer("acme")
skills = Skills(Path(__file__).parent / "skills", dialects=Dialects("native"))
refunds = skills.scope("acme/billing/refunds")


@refunds.tool
def pay(order: str) -> str:
    """Pay an order back."""
    return f"paid {order}"


@refunds.resource("rules://refunds")
def rules() -> str:
    """What may be paid back."""
    return "No refunds on Sundays."


skills.attach(server)

if __name__ == "__main__":
    server.run()
