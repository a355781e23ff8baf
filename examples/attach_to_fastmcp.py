"""Skills on a FastMCP 4 server, beside its own tools: ``python examples/attach_to_fastmcp.py``."""

from pathlib import Path

from fastmcp import FastMCP

from skillwire import Skills

server = FastMCP("acme")


@server.tool
def add(one: int, two: int) -> int:
    """Add two numbers."""
    return one + two


Skills(Path(__file__).parent / "skills").attach(server)

if __name__ == "__main__":
    server.run()
