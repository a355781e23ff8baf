"""The one place that knows where different servers keep the SDK's low-level ``Server``.

The official SDK's ``MCPServer`` and FastMCP both wrap one and offer no public way to it. Everything else here
works on that ``Server`` by its public methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ListenHandler, SubscriptionBus
from mcp.shared.exceptions import NoBackChannelError
from mcp_types import SubscriptionsListenRequestParams
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import BaseModel

from skillwire.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from starlette.types import ASGIApp

_LISTEN = "subscriptions/listen"


def lowlevel_server(server: object) -> Server[Any]:
    """The low-level server in ``server``: itself, an ``MCPServer``'s, or a FastMCP server's."""
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


def subscription_bus(server: Server[Any], ours: SubscriptionBus) -> SubscriptionBus:
    """The bus behind the server's ``subscriptions/listen``; ``ours`` is put there if the server has none."""
    entry = server.get_request_handler(_LISTEN)
    bus = getattr(entry.handler, "_bus", None) if entry else None
    if bus is None:
        bus = ours
        server.add_request_handler(_LISTEN, SubscriptionsListenRequestParams, ListenHandler(ours))
    return cast("SubscriptionBus", bus)


def share_sessions(server: Server[Any], around: Callable[[ASGIApp, Container[str]], ASGIApp]) -> None:
    """Put ``around`` before what opens sessions of the handshake era; it gets the ids of those that are open.

    The caller is known there, which is not so outside of the whole web application.
    """
    manager = server.session_manager
    open_ids: Container[str] = manager._server_instances  # pyright: ignore[reportPrivateUsage] - no public way
    manager.asgi_app = cast("Any", around(cast("ASGIApp", manager.asgi_app), open_ids))


async def ask_own_handler(
    server: Server[Any], state: object, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    """What the server's own handler says to nobody: before there is a client. ``{}`` if it has no handler.

    ``state`` is what the server's lifespan gave. A handler that needs a real client raises whatever it likes.
    """
    entry = server.get_request_handler(method)
    if entry is None:
        return {}
    connection = Connection.from_envelope(LATEST_MODERN_VERSION, None, None)
    ctx = ServerRequestContext[Any, Any](
        session=ServerSession(cast("Any", _Nobody()), connection),
        lifespan_context=state,
        protocol_version=LATEST_MODERN_VERSION,
        method=method,
        params=params,
    )
    result = await entry.handler(ctx, entry.params_type.model_validate(params, by_name=False))
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dict(result or {})


class _Nobody:
    """Where a client would be."""

    can_send_request = False

    async def send_raw_request(self, method: str, *_: Any) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, *_: Any) -> None:
        return
