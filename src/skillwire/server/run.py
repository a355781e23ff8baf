"""Running a server: on stdio until stdin closes, or over Streamable HTTP until told to stop."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from skillwire import __version__
from skillwire.errors import UpstreamError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from skillwire.server.skills import Skills

MCP_PATH = "/mcp"


def build_server(skills: Skills, *, name: str = "skillwire", instructions: str | None = None) -> Server[Any]:
    """A server that has nothing but ``skills``. Run it on any transport of the SDK."""
    from mcp.server.lowlevel import Server

    return skills.attach(Server(name, version=__version__, instructions=instructions))


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client on stdin and stdout until stdin closes."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, or an ``UpstreamError`` that says what to do instead. Port 0 picks a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise UpstreamError(
            "address-unavailable",
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            "choose another port, or end what is using this one",
        ) from error
    return listener


async def serve_http(server: Server[Any], listener: socket.socket) -> None:
    """Serve over Streamable HTTP at ``/mcp`` on an open socket."""
    import uvicorn

    host = str(listener.getsockname()[0])
    app = server.streamable_http_app(streamable_http_path=MCP_PATH, json_response=True, host=host)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)
    web = uvicorn.Server(config)
    await web.serve([listener])
