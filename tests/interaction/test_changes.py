"""Clients hear what changes on disk, in both eras, over every transport (S1)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client

from interaction.conftest import Wire
from rotation import every_setting
from rules import rule
from skillwire import MemoryCatalog, Skill, Skills
from skillwire.server.skills import build_server
from trees import replace_file, skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from interaction.conftest import Setting

    Connect = Callable[..., AbstractAsyncContextManager[Wire]]

pytestmark = pytest.mark.anyio

FLAT = "skill://flat/SKILL.md"
PATIENCE = 20


class Heard:
    """What a client was told, by kind, to be waited for with a bound."""

    def __init__(self) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[str](1000)

    async def on_message(self, message: Any) -> None:
        await self._send.send(f"{getattr(message, 'method', '')} {getattr(message.params, 'uri', '')}".strip())

    async def listen(self, events: Any) -> None:
        async for event in events:
            uri = getattr(event, "uri", None)
            kind = f"resources/updated {uri}" if uri else "resources/list_changed"
            await self._send.send(f"notifications/{kind}")

    async def wait_for(self, *kinds: str) -> None:
        missing = set(kinds)
        with anyio.fail_after(PATIENCE):
            while missing:
                missing.discard(await self._receive.receive())

    def close(self) -> None:
        self._send.close()
        self._receive.close()


@every_setting
@rule("S1")
async def test_updates_and_a_changed_list_reach_the_client(connect: Connect, setting: Setting, root: Path) -> None:
    """A file that is subscribed to, and the list."""
    heard = Heard()
    options = {"message_handler": heard.on_message} if setting.era == "legacy" else {}
    async with AsyncExitStack() as stack, connect(**options) as wire, anyio.create_task_group() as group:
        await wire.call("skills/list")  # what is on disk before it was read is no change
        if setting.era == "legacy":
            await wire.call("resources/subscribe", uri=FLAT)
        else:
            listening = wire.client.listen(resources_list_changed=True, resource_subscriptions=[FLAT])
            group.start_soon(heard.listen, await stack.enter_async_context(listening))
        replace_file(root / "flat/SKILL.md", skill_md("flat", "Changed."))
        await heard.wait_for(f"notifications/resources/updated {FLAT}", "notifications/resources/list_changed")
        assert (await wire.call("skills/get", uri=FLAT))["skill"]["frontmatter"]["description"] == "Changed."
        write_tree(root, {"fresh/SKILL.md": skill_md("fresh")})
        await heard.wait_for("notifications/resources/list_changed")
        assert (await wire.call("skills/get", uri="skill://fresh/SKILL.md"))["skill"]["frontmatter"][
            "name"
        ] == "fresh"
        group.cancel_scope.cancel()
    heard.close()


@rule("S1")
async def test_clients_that_come_and_go_push_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever listens is told, however many sessions began and ended since."""
    monkeypatch.setattr("skillwire.server.notifications._MAX_SESSIONS", 3)
    catalog = MemoryCatalog([Skill("flat", {"SKILL.md": skill_md("flat")})])
    server = build_server(Skills(catalog))
    heard = Heard()
    async with Client(server, mode="legacy", message_handler=heard.on_message) as client:
        await Wire(client, "legacy").call("resources/subscribe", uri=FLAT)
        for _ in range(5):
            async with Client(server, mode="legacy") as other:
                await Wire(other, "legacy").call("resources/subscribe", uri=FLAT)
        catalog.put(Skill("flat", {"SKILL.md": skill_md("flat", "Changed.")}))
        await heard.wait_for(f"notifications/resources/updated {FLAT}", "notifications/resources/list_changed")
    heard.close()


@rule("S1", "U7")
async def test_a_strange_folder_does_not_end_the_server(connect: Connect, root: Path) -> None:
    """What cannot be served is left out by watching as it is by scanning."""
    async with connect() as wire:
        await wire.call("skills/list")
        write_tree(root, {"ba\\d/refunds/SKILL.md": skill_md("refunds"), "good/SKILL.md": skill_md("good")})
        with anyio.fail_after(PATIENCE):
            while True:
                listing = await wire.call("skills/list")
                if any(entry["uri"] == "skill://good/SKILL.md" for entry in listing["skills"]):
                    break
                await anyio.lowlevel.checkpoint()
        assert not any("%5C" in entry["uri"] for entry in listing["skills"])


@rule("T1")
async def test_the_template_is_listed_and_completed(connect: Connect) -> None:
    """Skills first, then the files of the one that is named."""
    async with connect() as wire:
        templates = (await wire.client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == ["skill://{+path}"]

        async def complete(value: str) -> list[str]:
            reference = {"type": "ref/resource", "uri": "skill://{+path}"}
            result = await wire.call(
                "completion/complete", ref=reference, argument={"name": "path", "value": value}
            )
            return result["completion"]["values"]

        assert await complete("acme/r") == ["acme/release/SKILL.md", "acme/release/changelog/SKILL.md"]
        assert await complete("acme/billing/refunds/t") == ["acme/billing/refunds/templates/reply.md"]
        assert await complete("nothing") == []
        assert await complete("../..") == []
        assert await complete("q/" * 30_000) == []
        for path in await complete(""):
            assert (await wire.call("resources/read", uri=f"skill://{path}"))["contents"]
