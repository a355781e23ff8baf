"""A server that stops ends its event streams, also those that begin while it stops."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
import uvicorn

from skillwire.server.http import listen
from skillwire.server.signals import StoppingServer, StopSignals

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # that of uvicorn
async def test_a_stream_that_begins_after_the_first_drain_is_ended(anyio_backend: str) -> None:
    streams: set[anyio.Event] = set()
    has_come, is_stopping = anyio.Event(), anyio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        has_come.set()
        await is_stopping.wait()  # as a request whose token is looked up in the database
        ended = anyio.Event()
        streams.add(ended)
        await ended.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    def drain() -> None:
        for stream in streams:
            stream.set()
        is_stopping.set()

    with listen("127.0.0.1", 0) as listener:
        config = uvicorn.Config(app, lifespan="off", log_level="critical", timeout_graceful_shutdown=60)
        server = StoppingServer(config, StopSignals(), drain)
        found: list[Any] = []

        async def ask() -> None:
            async with httpx2.AsyncClient(timeout=60) as web:
                found.append((await web.get(f"http://127.0.0.1:{listener.getsockname()[1]}/")).status_code)

        with anyio.fail_after(30):  # shorter than the server would wait
            async with anyio.create_task_group() as group:
                group.start_soon(server.serve, [listener])
                group.start_soon(ask)
                await has_come.wait()
                server.handle_exit(signal.SIGTERM, None)
    assert found == [200]
