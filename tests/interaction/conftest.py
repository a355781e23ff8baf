"""One ``connect`` fixture: memory, stdio or HTTP, in either protocol era, as ``rotation.py`` chooses."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import Request, Result
from pydantic import ConfigDict

from http_server import serving_http
from rotation import settings
from skillwire.server.dialect import Dialects, Fallback
from skillwire.server.skills import Skills, build_server
from starting import skillwire_command
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from skillwire.server.dialect import Endpoint

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


QUICK = [Setting("memory", "legacy"), Setting("memory", "modern"), Setting("http", "modern")]
SLOW = [Setting("http", "legacy"), Setting("stdio", "legacy"), Setting("stdio", "modern")]


@pytest.fixture(params=settings(QUICK, slow=SLOW))
def setting(request: pytest.FixtureRequest) -> Setting:
    return request.param


@pytest.fixture(params=settings([("legacy",), ("auto",)]))
def mode(request: pytest.FixtureRequest) -> str:
    """The era, as ``Client`` takes it, for tests with a server of their own: one of the two, in turn."""
    return request.param[0]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", small_tree())


@pytest.fixture
def connect(setting: Setting, root: Path) -> Callable[..., AbstractAsyncContextManager[Wire]]:
    """Call it in a test: ``async with connect() as wire``, or ``connect("native")`` for another endpoint."""

    @asynccontextmanager
    async def connection(
        endpoint: Endpoint = "extension", fallback: Fallback = "auto", **options: Any
    ) -> AsyncIterator[Wire]:
        async with _target(setting.transport, root, Dialects(endpoint, fallback)) as target:
            mode = "legacy" if setting.era == "legacy" else "auto"
            async with Client(target, mode=mode, **options) as client:
                yield Wire(client, setting.era)

    return connection


@asynccontextmanager
async def _target(transport: Transport, root: Path, dialects: Dialects) -> AsyncIterator[Any]:
    if transport == "stdio":
        options = ("--dialect", dialects.default, "--fallback", dialects.fallback)
        command, *words = [*skillwire_command(), "serve", str(root), *options]
        yield stdio_client(StdioServerParameters(command=command, args=words))
    elif transport == "memory":
        yield build_server(Skills(root, dialects=dialects))
    else:
        skills = Skills(root, dialects=Dialects(fallback=dialects.fallback))
        async with serving_http(build_server(skills), skills=skills) as url:
            yield url if dialects.default == "extension" else f"{url}/{dialects.default}"
