"""Clients of both eras hear what is published in namespaces that they may read, and of nothing else (S1)."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from registry.stage import operator, publish, refunds, running_registry
from rotation import every_setting
from rules import rule
from skillwire.registry.app import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from registry.stage import Running
    from skillwire.registry.client import RegistryClient

pytestmark = pytest.mark.anyio

REFUNDS = "skill://acme/refunds/SKILL.md"
SECOND = "skill://acme/second/SKILL.md"
PATIENCE = 20


class Ears:
    """What one client hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._news = anyio.Event()

    def note(self, what: str) -> None:
        self.heard.append(what)
        self._news.set()

    async def on_message(self, message: Any) -> None:
        method = getattr(message, "method", "")
        if method.startswith("notifications/"):
            uri = getattr(message.params, "uri", None)
            self.note(f"updated {uri}" if uri else "list")

    async def listen(self, events: Any) -> None:
        async for event in events:
            uri = getattr(event, "uri", None)
            self.note(f"updated {uri}" if uri else "list")

    async def wait_for(self, *kinds: str) -> None:
        with anyio.fail_after(PATIENCE):
            while not set(kinds) <= set(self.heard):
                self._news = anyio.Event()
                await self._news.wait()


@asynccontextmanager
async def listening(running: Running, token: str | None, mode: str, uris: list[str]) -> AsyncIterator[Ears]:
    ears = Ears()
    options = {"message_handler": ears.on_message} if mode == "legacy" else {}
    async with (
        AsyncExitStack() as stack,
        running.mcp(token, mode, **options) as wire,
        anyio.create_task_group() as group,
    ):
        await wire.call("skills/list")
        if mode == "legacy":
            for uri in uris:
                await wire.call("resources/subscribe", uri=uri)
        else:
            subscription = wire.client.listen(resources_list_changed=True, resource_subscriptions=uris)
            group.start_soon(ears.listen, await stack.enter_async_context(subscription))
        yield ears
        group.cancel_scope.cancel()


async def published_and_heard(running: Running, ada: RegistryClient, path: str, files: dict[str, bytes]) -> None:
    """Publish, and wait until listeners were told, so that a later one hears nothing of it."""
    async with listening(running, await running.token("user:operator"), "auto", []) as canary:
        await publish(ada, path, files)
        await canary.wait_for("list")


@every_setting
@rule("S1")
async def test_only_those_who_may_read_hear_of_a_new_version(mode: str) -> None:
    async with running_registry() as running:
        await running.namespace("acme", roles={"user:eve": "reader"})
        await running.namespace("open", public=True)
        eve, mallory = await running.token("user:eve"), await running.token("user:mallory")
        async with running.api(await running.token("user:operator")) as ada:
            await published_and_heard(running, ada, "acme/refunds", refunds("One.\n"))
            await published_and_heard(running, ada, "open/last", refunds(name="last"))
            last = "skill://open/last/SKILL.md"
            async with (
                listening(running, eve, mode, [REFUNDS, last]) as reader,
                listening(running, mallory, mode, [last]) as stranger,
                listening(running, None, mode, [last]) as anyone,
            ):
                await publish(ada, "acme/refunds", refunds("Two.\n"))
                await reader.wait_for(f"updated {REFUNDS}", "list")
                await running.registry.store.grant(operator(), "acme", "user:eve", None)
                before = list(reader.heard)
                await publish(ada, "acme/refunds", refunds("Three.\n"))
                # Changes are sent in their order, so who hears of this one has heard of all before it.
                await publish(ada, "open/last", refunds("New.\n", name="last"))
                for ears in (reader, stranger, anyone):
                    await ears.wait_for(f"updated {last}")
                assert f"updated {REFUNDS}" not in reader.heard[len(before) :]
                for ears in (stranger, anyone):
                    assert set(ears.heard) <= {f"updated {last}", "list"}
                    assert ears.heard.count("list") <= 1


@rule("S1")
async def test_tokens_roles_and_uploads_are_no_news() -> None:
    async with running_registry() as running:
        await running.namespace("acme", public=True, roles={"user:eve": "reader"})
        async with running.api(await running.token("user:operator")) as ada:
            await published_and_heard(running, ada, "acme/refunds", refunds("One.\n"))
            async with listening(running, None, "auto", [REFUNDS]) as ears:
                await running.token("user:ben")
                await running.registry.store.grant(operator(), "acme", "user:ben", "publisher")
                await publish(ada, "acme/refunds", refunds("Draft.\n"), channel=None)
                assert ears.heard == []
                await publish(ada, "acme/refunds", refunds("Two.\n"))
                await ears.wait_for(f"updated {REFUNDS}")
                assert ears.heard.count(f"updated {REFUNDS}") == 1


@every_setting
@rule("S1")
async def test_a_version_that_was_not_approved_makes_no_news(mode: str) -> None:
    """Not when it is published, yanked or deleted, or its skill deprecated: to others it does not exist."""
    pin = "skill://acme/@0.1.0/refunds/SKILL.md"
    async with running_registry() as running:
        await running.namespace("acme", public=True, reviewed=True)
        await running.namespace("open", public=True)
        version = "skills/acme/refunds/-/versions/0.1.0"
        async with (
            running.api(await running.token("user:operator", is_admin=True)) as ada,
            listening(running, None, mode, [REFUNDS, pin] if mode == "auto" else []) as ears,
        ):
            await publish(ada, "acme/refunds", refunds())
            await ada.call("POST", f"{version}/yank", {"reason": "wrong"})
            await ada.call("DELETE", f"{version}/yank")
            await ada.call("PUT", "skills/acme/refunds/-/deprecation", {"message": "moved"})
            await ada.call("DELETE", version, {"reason": "wrong"})
            await publish(ada, "open/last", refunds(name="last"))
            await ears.wait_for("list")
            assert ears.heard == ["list"]


@rule("S1")
async def test_what_another_process_publishes_is_heard_by_polling() -> None:
    """Another replica writes to the same database; nothing wakes this one."""
    async with running_registry() as running:
        await running.namespace("acme", public=True)
        other = Registry(running.registry.store)
        async with running.api(await running.token("user:operator")) as ada:
            await publish(ada, "acme/refunds", refunds())
        async with listening(running, None, "auto", [REFUNDS]) as ears:
            await other.store.deprecate(operator(), "acme/refunds", "moved")
            await ears.wait_for(f"updated {REFUNDS}")
