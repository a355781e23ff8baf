"""Waiting for changes of a server that tells of none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.server.lowlevel import Server
from mcp_types import SubscriptionsListenRequestParams

from rules import rule
from skillwire.client.opening import connect

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

pytestmark = pytest.mark.anyio


@rule("S1")
async def test_a_server_that_ends_its_stream_at_once_is_not_a_lost_connection() -> None:
    """It agreed to tell nothing, so whoever waits asks again after a while."""
    asked: list[str] = []

    async def end_at_once(
        ctx: ServerRequestContext[Any], params: SubscriptionsListenRequestParams
    ) -> dict[str, Any]:
        asked.append(ctx.method)
        return {"resultType": "complete", "_meta": {"io.modelcontextprotocol/subscriptionId": str(ctx.request_id)}}

    server: Server[Any] = Server("quiet")
    server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, end_at_once)
    with anyio.fail_after(20):
        async with connect(server) as client, client.connection.listening() as wait:
            await wait(0.01)
            await wait(0.01)
    assert asked == ["subscriptions/listen"]
