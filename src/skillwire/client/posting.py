"""The short way to a file: one POST and one JSON answer, without the streams and tasks of the SDK's client.

For a gateway, which reads for thousands; a host that reads for itself does not need it. ``resources/read`` of
servers of the stateless era over HTTP is posted as the SDK would post it, and the answer bounded like every other
(B1, B2, B4). Whatever is no plain answer, such as a redirect, a page or a stream of events, is left to the SDK's
client, which asks again and knows what to make of it: reading twice does no harm. So is what belongs to a
trace, which the SDK's client goes on with, and what a proxy or a password in the URL stands before.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from http import HTTPStatus
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

import httpx2
from mcp import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    encode_header_value,
)
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    JSONRPCError,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from opentelemetry.trace import get_current_span
from pydantic import ValidationError
from pydantic_core import to_json

from skillwire.client.http import BoundedBody, bounded_client, open_http, trusted
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcp.client._transport import TransportStreams
    from mcp_types import Implementation

    from skillwire.client.connection import Connection
    from skillwire.client.meter import Meter
    from skillwire.client.servers import UrlServer

READ = "resources/read"
_JSON = "application/json"


@asynccontextmanager
async def open_http_and_posting(
    place: UrlServer, connection: Connection, client_info: Implementation
) -> AsyncGenerator[TransportStreams]:
    """The SDK's streams to ``place``; while they are open, ``connection`` has the short way too."""
    async with (
        open_http(place.url, place.headers, connection.meter) as streams,
        Posting(place, connection.meter, client_info) as posting,
    ):
        connection.posting = posting if posting.is_direct else None
        try:
            yield streams
        finally:
            connection.posting = None


class Posting:
    """Reads from one server, until it answers in another way than plainly. Open it with ``async with``."""

    def __init__(self, place: UrlServer, meter: Meter, client_info: Implementation) -> None:
        self._meter = meter
        self._url = httpx2.URL(place.url)
        like = bounded_client(place.headers, meter)  # never opened: it tells what our requests look like
        self._timeout = {"timeout": like.timeout.as_dict()}
        self._headers = [
            *(pair for pair in like.headers.multi_items() if pair[0].lower() not in ("accept", "content-type")),
            ("Accept", f"{_JSON}, text/event-stream"),
            ("Content-Type", _JSON),
            (MCP_METHOD_HEADER, READ),
        ]
        self._who: dict[str, Any] = {
            CLIENT_INFO_META_KEY: client_info.model_dump(by_alias=True, mode="json", exclude_none=True),
            CLIENT_CAPABILITIES_META_KEY: {"extensions": {EXTENSION_ID: {}}},
        }
        self._transport = httpx2.AsyncHTTPTransport(verify=trusted())
        self._numbers = count(1)
        self._is_plain = True

    @property
    def is_direct(self) -> bool:
        """Whether nothing stands in between that the SDK's HTTP client would see to: a proxy, or a password."""
        return not getproxies() and not self._url.userinfo

    async def __aenter__(self) -> Posting:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._transport.__aexit__(*error)

    async def read(self, params: dict[str, Any], version: str) -> dict[str, Any] | None:
        """The result, if the server gives one plainly; else nothing, and the SDK's client has to ask."""
        if not self._is_plain or get_current_span().get_span_context().is_valid:
            return None
        number = f"read-{next(self._numbers)}"
        try:
            response = await self._transport.handle_async_request(self._request(number, params, version))
        except httpx2.TransportError:
            return None
        try:
            return await self._result(response, number)
        finally:
            await response.aclose()

    def _request(self, number: str, params: dict[str, Any], version: str) -> httpx2.Request:
        meta: dict[str, Any] = {**params.get("_meta", {}), PROTOCOL_VERSION_META_KEY: version, **self._who}
        message = {"jsonrpc": "2.0", "id": number, "method": READ, "params": {**params, "_meta": meta}}
        headers = [
            *self._headers,
            (MCP_PROTOCOL_VERSION_HEADER, version),
            (MCP_NAME_HEADER, encode_header_value(params["uri"])),
        ]
        return httpx2.Request(
            "POST", self._url, headers=headers, content=to_json(message), extensions=self._timeout
        )

    async def _result(self, response: httpx2.Response, number: str) -> dict[str, Any] | None:
        """``MCPError`` if the server says that there is none, as the SDK's client would raise it."""
        pieces = BoundedBody.of(response, self._meter)
        if not response.headers.get("content-type", "").lower().startswith(_JSON):
            self._is_plain = response.status_code != HTTPStatus.OK
            return None
        try:
            body = b"".join([piece async for piece in pieces])
            answer = jsonrpc_message_adapter.validate_json(body, by_name=False)
        except (httpx2.TransportError, ValidationError):
            return None
        match answer:
            case JSONRPCError(error=error):
                raise MCPError(code=error.code, message=error.message, data=error.data)
            case JSONRPCResponse(id=said, result=result) if response.is_success and said == number:
                return result
            case _:
                return None
