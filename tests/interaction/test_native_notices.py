"""Who is told what of skills and what they bind, in both eras (M3, M4)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client
from mcp.client.extension import ClientExtension, NotificationBinding
from mcp.shared.exceptions import MCPError
from mcp_types import NotificationParams

from interaction.native_server import build, native_tree, own_server
from interaction.test_native_servers import caller_of, memory
from rules import rule
from skillwire.server.dialect import Dialects
from skillwire.server.sdk_compat import lowlevel_server
from skillwire.server.skills import Skills, build_server
from skillwire.wire.meta import ACTIVATION
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillwire.server.dialect import Endpoint

pytestmark = pytest.mark.anyio

PATIENCE = 20


class Heard(ClientExtension):
    """Every notification that a session gets, those included that the SDK does not know."""

    identifier = "com.example/heard"

    def __init__(self) -> None:
        self.methods: list[str] = []
        self._new = anyio.Event()

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        async def handler(params: NotificationParams) -> None:
            self._hear("skills")

        method = "notifications/skills/list_changed"
        return (NotificationBinding(method=method, params_type=NotificationParams, handler=handler),)

    async def on_message(self, message: Any) -> None:
        method = str(getattr(message, "method", ""))
        if method.endswith("/list_changed"):
            self._hear(method.split("/")[1])

    async def listen(self, events: Any) -> None:
        async for event in events:
            self._hear(type(event).__name__.removesuffix("ListChanged").lower())

    async def until(self, *kinds: str) -> None:
        with anyio.fail_after(PATIENCE):
            while not set(kinds) <= set(self.methods):
                self._new = anyio.Event()
                await self._new.wait()

    def _hear(self, kind: str) -> None:
        self.methods.append(kind)
        self._new.set()


@rule("M3", "M4")
async def test_m4_a_session_hears_of_changes_of_the_catalog_and_not_of_activation(tmp_path: Path) -> None:
    """Handshake era. What a skill binds is in no list, so activating it changes none."""
    server = build(write_tree(tmp_path / "skills", native_tree()))
    one, two = Heard(), Heard()
    async with AsyncExitStack() as stack:
        options = [
            {"message_handler": heard.on_message, "extensions": [heard], "mode": "legacy"} for heard in (one, two)
        ]
        first, second = [await stack.enter_async_context(Client(server, **each)) for each in options]
        caller = caller_of(first, "legacy")
        await caller_of(second, "legacy").tools()
        for method in ("skills/activate", "skills/deactivate"):
            await caller.call(method, name="refunds")
        assert one.methods == two.methods == []
        write_tree(tmp_path / "skills", {"new/SKILL.md": skill_md("new")})
        for heard in (one, two):
            await heard.until("skills", "resources", "tools", "prompts")


@rule("M3")
@pytest.mark.parametrize("active", [False, True], ids=["not active", "active"])
async def test_m3_a_stream_listens_to_what_a_session_may_subscribe_to(tmp_path: Path, active: bool) -> None:
    """Stateless era. What is not listened to is not in the acknowledgement."""
    server = build(write_tree(tmp_path / "skills", native_tree()))
    free = ["config://main", "orders://all", "notes://x"]
    scoped = ["rules://refunds", "orders://7", "skill://acme/refunds/templates/reply.md"]
    async with Client(server) as client:
        caller = caller_of(client, "auto")
        if active:
            await caller.call("skills/activate", name="refunds")

        async def with_token(ctx: Any, call_next: Any) -> Any:
            params = {**ctx.params, "_meta": {**ctx.params["_meta"], ACTIVATION: caller.token}}
            return await call_next(replace(ctx, params=params) if caller.token else ctx)

        lowlevel_server(server).middleware.insert(0, with_token)  # the SDK's client cannot send it on a stream
        async with client.listen(resource_subscriptions=[*free, *scoped]) as stream:
            assert stream.honored.resource_subscriptions == ([*free, *scoped] if active else free)


@rule("M3", "S1")
async def test_a_stream_listens_to_no_file_that_is_not_there() -> None:
    there, missing = "skill://a/SKILL.md", ["skill://b/SKILL.md", "skill://a/gone.md", "skill://a"]
    async with (
        Client(build_server(Skills(memory(("a", ""))))) as client,
        client.listen(resource_subscriptions=[there, *missing]) as stream,
    ):
        assert stream.honored.resource_subscriptions == [there]


@rule("M3", "S1")
async def test_a_stream_listens_to_only_so_many_files() -> None:
    """As many as a session may subscribe to."""
    files = [f"skill://a/{number}.md" for number in range(1025)]
    async with Client(build_server(Skills(memory(("a", ""))))) as client:
        with pytest.raises(MCPError) as caught:
            async with client.listen(resource_subscriptions=files):
                pass
        assert caught.value.error.data["reference"] == "too-many-subscriptions"


@rule("M3", "S1")
@pytest.mark.parametrize("endpoint", ["extension", "sep-2076", "native"])
async def test_a_stream_beside_resources_of_a_server_listens_to_nothing_missing(
    endpoint: Endpoint,
) -> None:
    """What the server itself lists, or has a template for, is its own; of skills only files that exist."""
    server = own_server()
    Skills(memory(("a", "")), dialects=Dialects(endpoint)).attach(server)
    theirs, missing = ["config://main", "notes://x"], ["config://other", "skill://b/SKILL.md", "skill://a/gone.md"]
    async with Client(server) as client, client.listen(resource_subscriptions=[*theirs, *missing]) as stream:
        assert stream.honored.resource_subscriptions == theirs
    async with Client(server, mode="legacy") as client:
        for uri in missing:
            with pytest.raises(MCPError):
                await caller_of(client, "legacy").call("resources/subscribe", uri=uri)
