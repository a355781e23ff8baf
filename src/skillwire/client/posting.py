"""The short way to a file: one POST and one JSON answer, without the streams and tasks of the SDK's client.

For a gateway, which reads for thousands; a host that reads for itself does not need it. ``resources/read`` of
servers of the stateless era over HTTP is posted as the SDK would post it, and the answer bounded like every other
(B1, B2, B4). What is no plain answer, such as a stream of events, is left to the SDK's client, which asks again
and knows what to make of it: reading twice does no harm. A server that answers like that is asked in this way no
more. What belongs to a trace is the SDK's too, which goes on with it, and so is everything that a proxy or a
password in the URL stands before.
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
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    JSONRPCError,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from mcp_types.methods import validate_server_result
from opentelemetry.trace import get_current_span
from pydantic import ValidationError
from pydantic_core import to_json

from skillwire.client.http import BoundedBody, trusted
from skillwire.errors import SkillwireError
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcp.client import Transport
    from mcp.client._transport import TransportStreams
    from mcp_types import Implementation, JSONRPCMessage

    from skillwire.client.connection import Connection
    from skillwire.client.meter import Meter

READ = "resources/read"
FIRST_ID = 1_000_000
"""Far from the ids of the SDK's client, which counts from the bottom."""
_JSON = "application/json"


@asynccontextmanager
async def beside(streams: Transport, connection: Connection, posting: Posting) -> AsyncGenerator[TransportStreams]:
    """``streams``; and while they are open, ``connection`` has the short way too."""
    async with streams as opened, posting:
        connection.posting = posting if posting.is_direct else None
        try:
            yield opened
        finally:
            connection.posting = None


class Posting:
    """Reads from the server at ``url``, with the headers, patience and cookies of ``client``."""

    def __init__(self, url: str, client: httpx2.AsyncClient, meter: Meter, client_info: Implementation) -> None:
        self._url = httpx2.URL(url)
        self._meter = meter
        self._cookies = client.cookies
        self._timeout = {"timeout": client.timeout.as_dict()}
        self._headers = [
            *(pair for pair in client.headers.multi_items() if pair[0].lower() not in ("accept", "content-type")),
            ("Accept", f"{_JSON}, text/event-stream"),
            ("Content-Type", _JSON),
            (MCP_METHOD_HEADER, READ),
        ]
        self._who: dict[str, Any] = {
            CLIENT_INFO_META_KEY: client_info.model_dump(by_alias=True, mode="json", exclude_none=True),
            CLIENT_CAPABILITIES_META_KEY: {"extensions": {EXTENSION_ID: {}}},
        }
        self._transport = httpx2.AsyncHTTPTransport(verify=trusted())
        self._numbers = count(FIRST_ID)
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
        """The result, if the server gives one plainly; else nothing, and the SDK's client has to ask.

        ``MCPError`` if the server says no, as the SDK's client would raise it.
        """
        if not self._is_plain or get_current_span().get_span_context().is_valid:
            return None
        request = self._request(number := next(self._numbers), params, version)
        try:
            response = await self._transport.handle_async_request(request)
            response.request = request
            try:
                message = await self._message(response)
            finally:
                await response.aclose()
        except httpx2.TransportError:
            return None
        return None if message is None else self._result(message, number, version)

    def _request(self, number: int, params: dict[str, Any], version: str) -> httpx2.Request:
        meta: dict[str, Any] = {**params.get("_meta", {}), PROTOCOL_VERSION_META_KEY: version, **self._who}
        message = {"jsonrpc": "2.0", "id": number, "method": READ, "params": {**params, "_meta": meta}}
        headers = [
            *self._headers,
            (MCP_PROTOCOL_VERSION_HEADER, version),
            (MCP_NAME_HEADER, encode_header_value(params["uri"])),
        ]
        request = httpx2.Request(
            "POST", self._url, headers=headers, content=to_json(message), extensions=self._timeout
        )
        if self._cookies:
            self._cookies.set_cookie_header(request)
        return request

    async def _message(self, response: httpx2.Response) -> JSONRPCMessage | None:
        pieces = BoundedBody.of(response, self._meter)
        if "set-cookie" in response.headers:
            self._cookies.extract_cookies(response)
        if response.headers.get("content-type", "").lower().startswith(_JSON):
            try:
                body = b"".join([piece async for piece in pieces])
                message = jsonrpc_message_adapter.validate_json(body, by_name=False)
            except httpx2.StreamError as error:
                raise self._why(error) from error
            except ValidationError:
                pass
            else:
                if response.is_success or isinstance(message, JSONRPCError):
                    return message
        if response.status_code == HTTPStatus.NOT_FOUND:
            raise MCPError(code=METHOD_NOT_FOUND, message="Not Found")
        if response.is_error:
            raise MCPError(code=INTERNAL_ERROR, message="Server returned an error response")
        self._is_plain = False
        return None

    def _why(self, error: httpx2.StreamError) -> Exception:
        if isinstance(error.__cause__, SkillwireError):
            self._meter.take_failure()
            return error.__cause__
        return MCPError(code=PARSE_ERROR, message=f"Failed to parse JSON response: {error}")

    def _result(self, message: JSONRPCMessage, number: int, version: str) -> dict[str, Any] | None:
        match message:
            case JSONRPCError(id=said, error=error) if said in (number, None):
                raise MCPError(code=error.code, message=error.message, data=error.data)
            case JSONRPCResponse(id=said, result=result) if said == number:
                try:
                    validate_server_result(READ, version, result)
                except ValidationError:
                    self._is_plain = False
                else:
                    return result
            case _:
                self._is_plain = False
        return None
