"""Waiting for changes, and pauses between attempts to connect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.server.lowlevel import Server
from mcp_types import SubscriptionsListenRequestParams

from rules import rule
from skillwire.client.connect import connect
from skillwire.client.connection import pause_before
from skillwire.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

pytestmark = pytest.mark.anyio


@rule("S1")
async def test_a_server_that_ends_its_stream_at_once_is_not_a_lost_connection() -> None:
    """It reports no changes, so the client polls."""
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


def test_pauses_grow_to_a_bound_and_never_fail() -> None:
    """A server may be away for days."""
    assert pause_before(0, DEFAULT_LIMITS) <= 0.1
    assert 0.1 <= pause_before(2, DEFAULT_LIMITS) <= 0.4
    assert all(2.5 <= pause_before(attempt, DEFAULT_LIMITS) <= 5.0 for attempt in (10, 1_000, 100_000))
