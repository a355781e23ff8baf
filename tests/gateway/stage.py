"""Shared by the tests of the gateway: real upstreams, a gateway in front of them, and its clients."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from adversarial.adversary import SMALL, HostileServer
from skillwire import MemoryCatalog, Skill, connect
from skillwire.gateway.config import Plan, parse_policy
from skillwire.gateway.gateway import run_gateway
from skillwire.server.skills import Skills, build_server
from trees import files_of, skill_md, small_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from skillwire import Catalog
    from skillwire.client.remote import RemoteCatalog
    from skillwire.gateway.gateway import Gateway
    from skillwire.types import SkillsClient

SECONDS = 20
TOPMOST = ["acme/billing/refunds", "acme/release", "flat", "odd-names", "windows"]


def small_catalog() -> MemoryCatalog:
    tree = small_tree()
    return MemoryCatalog([Skill(path, files_of(tree, path)) for path in TOPMOST])


def flat_skill(name: str = "flat", **words: Any) -> Skill:
    return Skill(name, {"SKILL.md": skill_md(name, **words), "notes.md": b"notes\n"})


def hostile(**options: Any) -> HostileServer:
    server = HostileServer(**options)
    server.add("flat", {"SKILL.md": skill_md("flat"), "notes.md": b"notes\n"})
    return server


@asynccontextmanager
async def gateway_of(
    state: Path,
    servers: Mapping[str, Any],
    policy: str = "",
    *,
    folders: Mapping[str, Path] | None = None,
    settle: bool = True,
    renews_snapshots: bool = False,
    config: Path | None = None,
    is_public: bool = False,
    **options: Any,
) -> AsyncIterator[Gateway]:
    """A gateway of servers, each hostile, a catalog, or whatever can be connected to."""
    async with AsyncExitStack() as stack:
        targets: dict[str, Any] = {}
        for label, server in servers.items():
            if isinstance(server, HostileServer):
                server = await stack.enter_async_context(server.serving())
            elif isinstance(server, MemoryCatalog):
                server = build_server(Skills(server))
            targets[label] = server
        files = folders or {}, renews_snapshots, config, config and state
        plan = Plan(parse_policy(policy), targets, *files, is_public)
        options.setdefault("limits", replace(SMALL, max_cursor_length=1000))  # activation tokens are longer
        gateway = await stack.enter_async_context(run_gateway(plan, state, **options))
        if settle:
            await gateway.settle(SECONDS)
        yield gateway


@asynccontextmanager
async def client_of(gateway: Gateway, mode: str = "auto", **options: Any) -> AsyncIterator[SkillsClient]:
    """A client of the gateway."""
    async with connect(build_server(Skills(gateway.catalog, watch=False)), mode=mode, **options) as client:
        yield client


def source(gateway: Gateway, label: str) -> RemoteCatalog:
    catalog = gateway.upstreams[label].remote
    assert catalog is not None
    return catalog


async def until_state(catalog: RemoteCatalog, *states: str) -> None:
    with anyio.fail_after(SECONDS):
        while catalog.state not in states:
            await catalog.next_state()


async def until(catalog: Catalog, condition: Callable[[], Any]) -> None:
    """Wait until something that changed in ``catalog`` makes ``condition`` true; it may be a coroutine."""
    with catalog.changes() as changes, anyio.fail_after(SECONDS):
        while not await condition():
            await anext(changes)


async def paths(catalog: Catalog) -> list[str]:
    return [entry.path async for entry in catalog.entries()]
