"""Skills on an ``MCPServer`` of the official SDK, beside its tools: ``python examples/attach_to_mcpserver.py``."""

from pathlib import Path

from mcp.server.mcpserver import MCPServer

from skillwire import Skills

server = MCPServer("acme")


@server.tool()
def add(one: int, two: int) -> int:
    """Add two numbers."""
    return one + two


Skills(Path(__file__).parent / "skills").attach(server)

if __name__ == "__main__":
    server.run()
