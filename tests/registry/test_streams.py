"""An event stream ends with its token, in both eras: when it is revoked anywhere, and when it expires."""

from __future__ import annotations

import json
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from registry.stage import operator, publish, refunds, running_registry
from registry.test_notices import published_and_heard
from rotation import every_setting
from rules import rule

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    import httpx2

    from registry.stage import Running
    from skillwire.registry.client import RegistryClient

pytestmark = pytest.mark.anyio

REFUNDS = "skill://acme/refunds/SKILL.md"
SECOND = "skill://acme/second/SKILL.md"
WHO = {"name": "test", "version": "1"}
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


def message(method: str, mode: str, **params: Any) -> dict[str, Any]:
    """A request. In the stateless era each one carries what it is about."""
    if mode == "auto":
        key = "io.modelcontextprotocol"
        params["_meta"] = {
            f"{key}/protocolVersion": VERSIONS[mode],
            f"{key}/clientInfo": WHO,
            f"{key}/clientCapabilities": {},
        }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@asynccontextmanager
async def event_stream(
    running: Running, token: str, mode: str, uris: Sequence[str] = (REFUNDS, SECOND)
) -> AsyncIterator[httpx2.Response]:
    """The response that stays open: the GET of a session, or ``subscriptions/listen``."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": VERSIONS[mode]}
    async with running.raw(token) as web:
        web.headers.update(headers)
        if mode == "auto":
            asked = message("subscriptions/listen", mode, notifications={"resourceSubscriptions": list(uris)})
            opening = web.stream("POST", "/mcp", json=asked, headers={"Mcp-Method": "subscriptions/listen"})
        else:
            hello = {"protocolVersion": VERSIONS[mode], "capabilities": {}, "clientInfo": WHO}
            first = await web.post("/mcp", json=message("initialize", mode, **hello))
            web.headers["Mcp-Session-Id"] = first.headers["Mcp-Session-Id"]
            await web.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
            for uri in uris:
                await web.post("/mcp", json=message("resources/subscribe", mode, uri=uri))
            opening = web.stream("GET", "/mcp")
        async with opening as response:
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("text/event-stream")
            yield response


async def updates(response: httpx2.Response) -> AsyncIterator[str]:
    """The URIs of the files that are updated, until the stream ends."""
    async for line in response.aiter_lines():
        if line.startswith("data: {"):
            event = json.loads(line.removeprefix("data: "))
            if event.get("method") == "notifications/resources/updated":
                yield event["params"]["uri"]


class Hearing:
    """What a stream told so far."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.heard: list[str] = []

    async def listen(self) -> None:
        async for uri in updates(self._response):
            self.heard.append(uri)

    async def until_heard(self, ada: RegistryClient, path: str, files: dict[str, bytes]) -> None:
        """Publish until it is heard: the first publications may come before the stream listens."""
        while not self.heard:
            await publish(ada, path, {**files, "time.txt": str(time.time_ns()).encode()})
            await anyio.lowlevel.checkpoint()


@every_setting
@rule("S1", "Z7")
async def test_a_stream_ends_when_its_token_is_revoked_and_hears_nothing_later(
    mode: str, postgres_url: str
) -> None:
    """The token is revoked at another replica."""
    async with running_registry(place=postgres_url) as one, running_registry(place=postgres_url) as other:
        await one.namespace("acme", roles={"user:eve": "reader"})
        eve = await one.token("user:eve")
        async with one.api(await one.token("user:operator")) as ada:
            for name in ("refunds", "second"):
                await published_and_heard(other, ada, f"acme/{name}", refunds(name=name))
            async with event_stream(other, eve, mode) as response:
                hearing = Hearing(response)
                with anyio.fail_after(30):
                    async with anyio.create_task_group() as group:
                        group.start_soon(hearing.listen)
                        await hearing.until_heard(ada, "acme/refunds", refunds())
                        await one.registry.store.revoke_token(operator(), eve[-8:])
                        await publish(ada, "acme/second", refunds("New.\n", name="second"))
            assert set(hearing.heard) == {REFUNDS}
        async with other.raw(eve) as web:
            assert (await web.get("/mcp")).status_code == 401


@every_setting
@rule("S1", "Z7")
async def test_a_stream_ends_when_its_token_expires(mode: str) -> None:
    async with running_registry() as running:
        await running.namespace("acme", roles={"user:eve": "reader"})
        async with running.api(await running.token("user:operator")) as ada:
            for name in ("refunds", "second"):
                await published_and_heard(running, ada, f"acme/{name}", refunds(name=name))
        eve = await running.token("user:eve", expires_at=time.time() + 3)
        async with event_stream(running, eve, mode) as response:
            with anyio.fail_after(30):
                assert [uri async for uri in updates(response)] == []


async def test_streams_of_other_tokens_stay_open(mode: str) -> None:
    async with running_registry() as running:
        await running.namespace("acme", roles={"user:eve": "reader"})
        eve, second = await running.token("user:eve"), await running.token("user:eve")
        async with running.api(await running.token("user:operator")) as ada, AsyncExitStack() as stack:
            for name in ("refunds", "second"):
                await published_and_heard(running, ada, f"acme/{name}", refunds(name=name))
            ended, going_on = [
                await stack.enter_async_context(event_stream(running, token, mode)) for token in (eve, second)
            ]
            await running.registry.store.revoke_token(operator(), eve[-8:])
            with anyio.fail_after(30):
                assert [uri async for uri in updates(ended)] == []
                hearing = Hearing(going_on)
                async with anyio.create_task_group() as group:
                    group.start_soon(hearing.listen)
                    await hearing.until_heard(ada, "acme/refunds", refunds())
                    group.cancel_scope.cancel()
