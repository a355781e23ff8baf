"""A server with nothing but skills, and how to serve it on stdio."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

if TYPE_CHECKING:
    from skillwire.server.skills import Skills


def build_server(skills: Skills, *, name: str = "skillwire", instructions: str | None = None) -> Server[Any]:
    """A server with only ``skills``. Run it on any transport of the SDK."""
    return skills.attach(Server(name, version=version("skillwire"), instructions=instructions))


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client on stdin and stdout until stdin closes."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
