"""FastMCP's own skills server over HTTP: ``fastmcp_server.py DIR``, run by the environment that FastMCP is in."""

from __future__ import annotations

import socket
import sys

import anyio
import uvicorn
from fastmcp import FastMCP
from fastmcp.server.providers.skills import SkillsDirectoryProvider
from fastmcp.skills.extension import SkillsExtension


async def main(root: str) -> None:
    provider = SkillsDirectoryProvider(roots=root, experimental_skills=True, supporting_files="resources")
    server: FastMCP = FastMCP("fastmcp", providers=[provider])
    server.add_extension(SkillsExtension(providers=[provider]))
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or asyncio delays answers
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    print(f"listening at http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(server.http_app(path="/mcp"), log_level="warning", ws="none")
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
