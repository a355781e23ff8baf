"""What is told when lists change because of a skill, in both eras (M3, M4)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client
from mcp.client.extension import ClientExtension, NotificationBinding
from mcp_types import NotificationParams

from interaction.native_server import build, native_tree
from interaction.test_native_servers import NATIVE, caller_of, low_server, memory
from rules import rule
from skillwire.server.skills import Skills
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
async def test_m4_a_session_hears_which_of_its_lists_changed_and_only_those(tmp_path: Path) -> None:
    """Handshake era; another session hears nothing of it, and a change of the catalog reaches both."""
    server = build(write_tree(tmp_path / "skills", native_tree()))
    one, two = Heard(), Heard()
    async with AsyncExitStack() as stack:
        options = [
            {"message_handler": heard.on_message, "extensions": [heard], "mode": "legacy"} for heard in (one, two)
        ]
        first, second = [await stack.enter_async_context(Client(server, **each)) for each in options]
        caller = caller_of(first, "legacy")
        await caller_of(second, "legacy").tools()
        await caller.call("skills/activate", name="shipping")
        await one.until("tools")
        assert one.methods == ["tools"]
        await caller.call("skills/activate", name="refunds")
        await one.until("tools", "prompts", "resources", "skills")
        assert one.methods[1:] == ["tools", "prompts", "resources", "skills"]
        one.methods.clear()
        await caller.call("skills/deactivate", name="refunds")
        await one.until("tools", "prompts", "resources", "skills")
        one.methods.clear()
        await caller.call("skills/activate", name="plain")
        await caller.refused("skills/activate", name="nobody")
        assert one.methods == []  # nothing is bound by it
        assert two.methods == []
        write_tree(tmp_path / "skills", {"new/SKILL.md": skill_md("new")})
        for heard in (one, two):
            await heard.until("skills", "resources", "tools", "prompts")


@rule("M3")
async def test_m4_a_stream_of_the_stateless_era_hears_it_too(tmp_path: Path) -> None:
    """On a server with a bus of its own, and on one with ours."""
    low = low_server(["first"])
    for server, name, kinds in (
        (build(write_tree(tmp_path / "skills", native_tree())), "refunds", {"tools", "prompts", "resources"}),
        (Skills(memory(("a", "metadata:\n  mcp-tools: first\n")), dialects=NATIVE).attach(low), "a", {"tools"}),
    ):
        heard = Heard()
        async with Client(server) as client, anyio.create_task_group() as group:
            listening = client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            )
            async with listening as events:
                group.start_soon(heard.listen, events)
                await caller_of(client, "auto").call("skills/activate", name=name)
                await heard.until(*kinds)
                assert set(heard.methods) == kinds
                group.cancel_scope.cancel()
