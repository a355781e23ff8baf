"""The only file of the server that uses private attributes of the MCP SDK, FastMCP and uvicorn.

Each use has no public replacement; the comment beside it gives the reason. Every function raises a ``FormatError``
with a hint if the attribute is missing. ``pyproject.toml`` has the versions that were tested as upper bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.shared.exceptions import NoBackChannelError
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import BaseModel

from skillwire.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from starlette.types import ASGIApp

# The methods and attributes of uvicorn's protocol class that http_protocol.py overrides or calls.
_UVICORN_METHODS = (
    "connection_made", "connection_lost", "data_received", "on_headers_complete", "on_body", "on_message_complete",
    "on_response_complete", "pause_writing", "resume_writing", "send_400_response", "shutdown",
)  # fmt: skip


def lowlevel_server(server: object) -> Server[Any]:
    """The low-level server in ``server``: itself, an ``MCPServer``'s, or a FastMCP server's.

    ``MCPServer`` has a public list of middlewares, but its lifespan, its extensions and its handlers are only on
    the low-level server. FastMCP 4 has no public access to any of them.
    """
    if isinstance(server, Server):
        return cast("Server[Any]", server)
    for attribute in ("_lowlevel_server", "_mcp_server"):
        inner = getattr(server, attribute, None)
        if isinstance(inner, Server):
            return cast("Server[Any]", inner)
    raise FormatError(
        "server-unknown",
        f"skills cannot be attached to {type(server).__module__}.{type(server).__name__}",
        "give the official SDK's MCPServer or Server, or a FastMCP 4 server",
    )


def connection_of(session: ServerSession) -> Connection:
    """The connection behind a session.

    The SDK makes a new session object for each request; only the connection stays the same. Its public part,
    ``client_params``, does not exist for requests of the handshake era over stateless HTTP.
    """
    connection = getattr(session, "_connection", None)
    if not isinstance(connection, Connection):
        raise _incompatible("mcp", "ServerSession._connection")
    return connection


def wrap_session_manager(server: Server[Any], around: Callable[[ASGIApp, Container[str]], ASGIApp]) -> None:
    """Put ``around`` in front of the application that opens sessions. It gets the ids of the open sessions.

    The caller is known at this point, which it is not outside of the whole web application. The SDK limits the
    sessions of all callers together, but has no public list of them.
    """
    manager = server.session_manager
    open_ids = getattr(manager, "_server_instances", None)
    if open_ids is None:
        raise _incompatible("mcp", "StreamableHTTPSessionManager._server_instances")
    manager.asgi_app = cast("Any", around(cast("ASGIApp", manager.asgi_app), cast("Container[str]", open_ids)))


async def call_without_client(
    server: Server[Any], state: object, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    """The result of the server's handler before any client is connected. ``{}`` if there is no handler.

    ``state`` is the result of the server's lifespan. A handler that needs a client may raise any exception. The
    SDK makes contexts and sessions only for real requests, so both are made here.
    """
    entry = server.get_request_handler(method)
    if entry is None:
        return {}
    connection = Connection.from_envelope(LATEST_MODERN_VERSION, None, None)
    ctx = ServerRequestContext[Any, Any](
        session=ServerSession(cast("Any", _NoClient()), connection),
        lifespan_context=state,
        protocol_version=LATEST_MODERN_VERSION,
        method=method,
        params=params,
    )
    result = await entry.handler(ctx, entry.params_type.model_validate(params, by_name=False))
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dict(result or {})


class _NoClient:
    """Takes the place of the client in a session without one."""

    can_send_request = False

    async def send_raw_request(self, method: str, *_: Any) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, *_: Any) -> None:
        return


def check_uvicorn_protocol(protocol: type) -> None:
    """Check that uvicorn's protocol class has the methods that ``http_protocol.py`` overrides.

    uvicorn lets a server replace its protocol class, but does not document the class as a base class.
    """
    missing = [name for name in _UVICORN_METHODS if not callable(getattr(protocol, name, None))]
    if missing:
        raise _incompatible("uvicorn", f"{protocol.__name__}.{missing[0]}")


def _incompatible(package: str, attribute: str) -> FormatError:
    return FormatError(
        "sdk-incompatible",
        f"the installed version of {package} has no {attribute}, which skillwire needs",
        "install the versions that skillwire was tested with: pip install --upgrade skillwire",
    )
