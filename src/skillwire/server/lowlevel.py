"""The one place that knows where different servers keep the SDK's low-level ``Server``.

The official SDK's ``MCPServer`` and FastMCP both wrap one and offer no public way to it. Everything else here
works on that ``Server`` by its public methods.
"""

from __future__ import annotations

from typing import Any, cast

from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler, SubscriptionBus
from mcp_types import SubscriptionsListenRequestParams

from skillwire.errors import FormatError

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
