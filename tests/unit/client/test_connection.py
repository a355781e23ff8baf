"""Waiting for changes, pauses between attempts to connect, and errors of the SDK as errors of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from mcp.server.lowlevel import Server
from mcp_types import SubscriptionsListenRequestParams

from rules import rule
from skillwire.client.bounds import Meter
from skillwire.client.connect import connect
from skillwire.client.connection import CONNECTING, as_ours, pause_before
from skillwire.errors import NotFoundError
from skillwire.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

pytestmark = pytest.mark.anyio
SECRET = "s3cr3t"


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


def refused_by_http() -> Exception:
    return httpx2.LocalProtocolError(f"Illegal header value b'Bearer {SECRET}'")


def refused_by_a_codec() -> Exception:
    with pytest.raises(UnicodeEncodeError) as caught:
        f"{SECRET}é".encode("ascii")
    return caught.value


@rule("O1")
@pytest.mark.parametrize("raised", [refused_by_http(), refused_by_a_codec()], ids=lambda each: type(each).__name__)
def test_an_error_that_may_quote_a_header_is_named_and_not_repeated(raised: Exception) -> None:
    """Headers are secrets."""
    error = as_ours(raised, Meter(DEFAULT_LIMITS), CONNECTING)
    assert error.reference == "connection-lost"
    assert type(raised).__name__ in error.message
    assert SECRET not in repr(error)


def test_other_errors_are_passed_on() -> None:
    error = as_ours(httpx2.ConnectError("no route"), Meter(DEFAULT_LIMITS), CONNECTING)
    assert "(no route)" in error.message


@rule("O1")
async def test_a_line_that_was_written_as_one_word_is_not_repeated_when_it_cannot_be_started() -> None:
    """Arguments may be secrets."""
    with pytest.raises(NotFoundError) as caught:
        async with connect([f"no-such-program --key {SECRET}"]):
            pass
    assert "'no-such-program …'" in caught.value.message
    assert SECRET not in str(caught.value)
