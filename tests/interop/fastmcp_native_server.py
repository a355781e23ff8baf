"""A FastMCP server with a tool, a prompt and resources that belong to a skill: the ``native`` dialect on FastMCP.

Run with ``DIR`` to serve it on stdio.
"""

from __future__ import annotations

import sys

from fastmcp import FastMCP

from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills


def build(root: str, dialects: Dialects | None = None) -> FastMCP:
    server: FastMCP = FastMCP("theirs")

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.resource("http://example.com")
    def home() -> str:
        return "home"

    skills = Skills(root, dialects=dialects or Dialects("native"))
    refunds = skills.scope("acme/refunds")
    refunds.bind(resources=["http://example.com"])  # FastMCP lists it with a slash at its end

    @refunds.tool(name="pay")
    def pay_back(order: str) -> str:
        """Pay an order back."""
        return f"paid {order}"

    skills.attach(server)

    @refunds.prompt
    def apologise(to: str) -> str:
        """Say sorry."""
        return f"Sorry, {to}."

    @refunds.resource("rules://refunds")
    def rules() -> str:
        return "No refunds on Sundays."

    @refunds.resource("orders://{path*}")
    def order(path: str) -> str:
        return f"order {path}"

    return server


if __name__ == "__main__":
    build(sys.argv[1]).run("stdio", show_banner=False)
