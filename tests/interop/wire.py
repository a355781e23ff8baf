"""The official Python SDK's client, with which any method can be sent and nothing of the answer is lost."""

from __future__ import annotations

from base64 import b64decode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp import Client, StdioServerParameters
from mcp.client.extension import advertise
from mcp.client.stdio import stdio_client
from mcp_types import Request, Result
from pydantic import ConfigDict

from interop.running import VERSIONS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from interop.running import Era, Served, Transport

EXTENSION = "io.modelcontextprotocol/skills"
METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32601, -32602, -32603


class AnyResult(Result):
    """Whatever the server said, with nothing dropped."""

    model_config = ConfigDict(extra="allow")


@asynccontextmanager
async def connected(
    served: Served, transport: Transport, era: Era, *, declaring: bool = False
) -> AsyncIterator[Client]:
    """A connection of that era; ``declaring`` says to the server that the client knows skills (K3)."""
    command, *words = served.command
    target: Any = (
        served.url if transport == "http" else stdio_client(StdioServerParameters(command=command, args=words))
    )
    extensions = [advertise(EXTENSION)] if declaring else []
    async with Client(target, mode="legacy" if era == "legacy" else "auto", extensions=extensions) as client:
        assert client.protocol_version == VERSIONS[era]
        yield client


async def call(client: Client, method: str, **params: Any) -> dict[str, Any]:
    """Send any method."""
    request = Request[dict[str, Any], str](method=method, params=params)
    result = await client.session.send_request(request, AnyResult)
    return result.model_dump(by_alias=True, exclude_unset=True)


async def read_bytes(client: Client, uri: str) -> bytes:
    """The bytes of a resource, however they are sent."""
    [content] = (await call(client, "resources/read", uri=uri))["contents"]
    return content["text"].encode() if "text" in content else b64decode(content["blob"], validate=True)
