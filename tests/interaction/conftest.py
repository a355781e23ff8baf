"""One ``connect`` fixture: every interaction test runs over memory, stdio and HTTP, in both protocol eras."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import anyio
import pytest
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import Request, Result
from pydantic import ConfigDict

from skillwire.server.http import HttpServer, listen
from skillwire.server.run import build_server
from skillwire.server.skills import Skills
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

Transport = Literal["memory", "stdio", "http"]
Era = Literal["legacy", "modern"]
LEGACY, MODERN = "legacy", "2026-07-28"


class AnyResult(Result):
    """Whatever the server said, with nothing dropped."""

    model_config = ConfigDict(extra="allow")


class Wire(NamedTuple):
    """A live connection: send any method, see the very fields that came back."""

    client: Client
    era: Era

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        request = Request[dict[str, Any], str](method=method, params=params)
        result = await self.client.session.send_request(request, AnyResult)
        return result.model_dump(by_alias=True, exclude_unset=True)


class Setting(NamedTuple):
    transport: Transport
    era: Era


SETTINGS = [Setting(transport, era) for transport in ("memory", "stdio", "http") for era in ("legacy", "modern")]


@pytest.fixture(params=SETTINGS, ids=lambda setting: f"{setting.transport}-{setting.era}")
def setting(request: pytest.FixtureRequest) -> Setting:
    return request.param


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", small_tree())


@pytest.fixture
def connect(setting: Setting, root: Path) -> Callable[..., AbstractAsyncContextManager[Wire]]:
    """Call it in a test: ``async with connect() as wire``."""

    @asynccontextmanager
    async def connection(**options: Any) -> AsyncIterator[Wire]:
        async with _target(setting.transport, root) as target:
            mode = "legacy" if setting.era == "legacy" else "auto"
            async with Client(target, mode=mode, **options) as client:
                yield Wire(client, setting.era)

    return connection


@asynccontextmanager
async def _target(transport: Transport, root: Path) -> AsyncIterator[Any]:
    if transport == "stdio":
        command = StdioServerParameters(command=sys.executable, args=["-m", "skillwire", "serve", str(root)])
        yield stdio_client(command)
    elif transport == "memory":
        yield build_server(Skills(root))
    else:
        async with _over_http(root) as url:
            yield url


@asynccontextmanager
async def _over_http(root: Path) -> AsyncIterator[str]:
    listener = listen("127.0.0.1", 0)
    app = HttpServer(build_server(Skills(root)), listener).app()
    web = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
    async with anyio.create_task_group() as group:
        group.start_soon(web.serve, [listener])
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        web.should_exit = True
    listener.close()
