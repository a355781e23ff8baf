"""A web server for tests: real sockets, real HTTP, and none of uvicorn's pauses at start and stop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn

from skillwire.server.http import HttpServer, WebApp, listen

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Iterator

    from mcp.server.lowlevel import Server
    from starlette.types import ASGIApp

    from skillwire import Skills

SECONDS = 20


class TestServer(uvicorn.Server):
    """uvicorn polls every 0.1 s for its end, and again for that of its connections. This one waits for events."""

    __test__ = False  # not a test class

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stop = anyio.Event()

    def stop(self) -> None:
        """End the server; ``serve`` returns once the requests under way are answered."""
        self.should_exit = True
        self._stop.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)  # sets the headers of every response
        await self._stop.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for each in sockets or []:
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if tasks := set(self.server_state.tasks):
            _, unfinished = await asyncio.wait(tasks, timeout=SECONDS)
            for task in unfinished:
                task.cancel()
        await self.lifespan.shutdown()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals are for pytest


@asynccontextmanager
async def serving_config(config: uvicorn.Config, listener: socket.socket) -> AsyncIterator[TestServer]:
    """Serve until the block ends. The socket accepts connections from the start."""
    server = TestServer(config)
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listener])
        try:
            yield server
        finally:
            server.stop()
    listener.close()


@asynccontextmanager
async def serving_app(app: ASGIApp, listener: socket.socket | None = None) -> AsyncIterator[str]:
    """The address of ``app``, such as ``http://127.0.0.1:40123``."""
    listener = listener or listen("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with serving_config(uvicorn.Config(app, log_level="warning", ws="none", proxy_headers=False), listener):
        yield address


@asynccontextmanager
async def serving_http(server: Server[Any], *, skills: Skills | None = None) -> AsyncIterator[str]:
    """The URL of an MCP server; other dialects are at paths below it."""
    listener = listen("127.0.0.1", 0)
    app = HttpServer(WebApp(server, skills=skills), listener).app
    async with serving_app(app, listener) as address:
        yield f"{address}/mcp"
