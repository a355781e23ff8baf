"""FastMCP's own skills server.

Run with ``DIR [old] [http]``: ``old`` is its shape without the extension, where ``skill://NAME/_manifest`` says
what a skill consists of. ``http`` is on a free port, or on that of the variable ``PORT``.
"""

from __future__ import annotations

import os
import socket
import sys

import anyio
import uvicorn
from fastmcp import FastMCP
from fastmcp.server.providers.skills import SkillsDirectoryProvider
from fastmcp.skills.extension import SkillsExtension


def build(root: str, *, old: bool) -> FastMCP:
    if old:
        return FastMCP("fastmcp-old", providers=[SkillsDirectoryProvider(roots=root)])
    provider = SkillsDirectoryProvider(roots=root, experimental_skills=True, supporting_files="resources")
    server: FastMCP = FastMCP("fastmcp", providers=[provider])
    server.add_extension(SkillsExtension(providers=[provider]))
    return server


async def serve_http(server: FastMCP) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or asyncio delays answers
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(os.environ.get("PORT", "0"))))
    listener.listen()
    print(f"listening at http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(server.http_app(path="/mcp"), log_level="warning", ws="none")
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    theirs = build(sys.argv[1], old="old" in sys.argv[2:])
    if "http" in sys.argv[2:]:
        anyio.run(serve_http, theirs)
    else:
        theirs.run("stdio", show_banner=False)
