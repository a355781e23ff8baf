"""A FastMCP server with a tool, a resource, a template and a prompt of its own, and our skills attached.

Run with ``DIR [http]``; an empty ``DIR`` leaves the skills out.
"""

from __future__ import annotations

import socket
import sys

import anyio
import uvicorn
from fastmcp import FastMCP

from skillwire.server.skills import Skills


def build(root: str) -> FastMCP:
    server: FastMCP = FastMCP("theirs", instructions="Ask for the weather.")

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.resource("weather://today", name="weather", mime_type="text/plain")
    def weather() -> str:
        return "sunny"

    @server.resource("weather://{city}/today", name="weather-in")
    def weather_in(city: str) -> str:
        return f"sunny in {city}"

    @server.prompt
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello, {name}!"

    return Skills(root).attach(server) if root else server


async def serve_http(server: FastMCP) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or asyncio delays answers
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(f"listening at http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(server.http_app(path="/mcp"), log_level="warning", ws="none")
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    ours = build(sys.argv[1])
    if sys.argv[2:] == ["http"]:
        anyio.run(serve_http, ours)
    else:
        ours.run("stdio", show_banner=False)
