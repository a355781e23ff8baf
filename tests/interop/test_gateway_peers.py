"""A gateway among programs that we did not write: upstreams of three makes behind it, clients of five before it.

Everything is a process and really runs. What clients read is held against the files on disk; then one upstream is
killed while they read, its files change, and it comes back.
"""

from __future__ import annotations

import json
import shlex
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread
from fastmcp import Client as FastClient
from fastmcp.skills import SkillsClientExtension
from mcp import Client, MCPError

from e2e.talking import gateway
from interop import test_fastmcp_client
from interop.honest import path_of, read_tree
from interop.readers import Readers, agent_framework, check_found, inspector, typescript
from interop.running import Served
from interop.test_inspector import check_all_verified, verify
from interop.test_typescript_clients import EXT_SKILLS, OFFICIAL, check_all_read, read_all
from interop.upstreams import LABELS, all_upstreams, changed_tree
from interop.wire import call
from rules import rule
from skillwire.wire import meta as provenance
from starting import skillwire_script
from trees import write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from e2e.talking import Talking
    from interop.running import Era, Node, Transport
    from interop.upstreams import Upstream
    from trees import Tree

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(300),  # a dozen processes each; every wait inside has its own bound
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # how Agent Framework says "experimental"
]


def served_of(upstreams: Mapping[str, Upstream]) -> Tree:
    """What is on disk, under the labels."""
    return {
        f"{label}/{path}": data
        for label, upstream in upstreams.items()
        for path, data in read_tree(upstream.root).items()
    }


def write_config(folder: Path, upstreams: Mapping[str, Upstream]) -> Path:
    """The ``mcpServers`` file of all upstreams."""
    config = folder / "servers.json"
    entries = {label: upstream.entry() for label, upstream in upstreams.items()}
    config.write_text(json.dumps({"mcpServers": entries}))
    return config


@asynccontextmanager
async def gateway_of(folder: Path, upstreams: Mapping[str, Upstream]) -> AsyncIterator[tuple[Talking, Served]]:
    """A gateway over HTTP that has listed every upstream, and what it serves."""
    with gateway(folder, "--config", str(write_config(folder, upstreams)), "--http", "0") as process:
        await hear(process, "serving 9 skills of 3 upstreams")
        url = (await hear(process, r"listening at (\S+) "))[1]
        yield process, Served(served_of(upstreams), url, ())


async def hear(process: Talking, pattern: str) -> list[str]:
    """Wait until the gateway says so; what it said."""
    found = await to_thread.run_sync(process.wait_for_talk, pattern)
    return [found[0], *found.groups()]


@rule("K1", "L1", "G1", "R1", "D1", "E2", "E3", "I1", "N1", "O1", "V1", "V4")
async def test_everybody_reads_every_upstream_through_one_gateway(tmp_path: Path, node: Node) -> None:
    """Nine clients at the same time; then four of them again, from what the gateway has."""
    with all_upstreams(tmp_path, node, "http") as upstreams:
        async with gateway_of(tmp_path, upstreams) as (_, served):
            async with anyio.create_task_group() as group:
                for era in ("modern", "legacy"):
                    for client in (OFFICIAL, EXT_SKILLS):
                        group.start_soon(by_typescript, node, client, served, "http", era)
                    group.start_soon(by_inspector, node, served, "http", era)
                for read in (by_fastmcp, by_agent_framework, by_tools):
                    group.start_soon(read, served)
            async with anyio.create_task_group() as group:
                group.start_soon(by_typescript, node, OFFICIAL, served, "http", "modern")
                for read in (by_fastmcp, by_agent_framework, by_tools):
                    group.start_soon(read, served)


@rule("K1", "L1", "G1", "R1", "D1", "V1", "V4")
async def test_a_gateway_on_stdio_of_upstreams_on_stdio_is_read_to_the_last_byte(
    tmp_path: Path, node: Node
) -> None:
    """Each client starts a gateway of its own, and that the upstreams."""
    with all_upstreams(tmp_path, node, "stdio") as upstreams:
        words = [skillwire_script(), "gateway", "--config", str(write_config(tmp_path, upstreams))]
        start = tmp_path / "start"  # a file, since the Inspector takes --config for its own
        start.write_text(f"exec {shlex.join(words)} --state {shlex.quote(str(tmp_path / 'state'))}\n")
        served = Served(served_of(upstreams), "", ("sh", str(start)))
        await by_typescript(node, OFFICIAL, served, "stdio", "modern")
        await by_inspector(node, served, "stdio", "legacy")


async def by_typescript(node: Node, client: str, served: Served, transport: Transport, era: Era) -> None:
    check_all_read(await to_thread.run_sync(read_all, node, client, served, transport, era), served)


async def by_inspector(node: Node, served: Served, transport: Transport, era: Era) -> None:
    verdict = await to_thread.run_sync(verify, node, served.target(transport), era)
    check_all_verified(verdict, served)
    assert verdict.issues == [("warning", "duplicate-name", f"{label}/shared") for label in LABELS]


async def by_fastmcp(served: Served) -> None:
    async with FastClient(served.url, mode="auto", extensions=[SkillsClientExtension()]) as client:
        await test_fastmcp_client.check_all_read(client, served)


async def by_agent_framework(served: Served) -> None:
    readers = Readers(served.tree)
    async with agent_framework(served.url, readers) as read:
        check_found("agent framework", await read(), served.tree)


async def by_tools(served: Served) -> None:
    """X1: a host that has never heard of skills."""
    async with Client(served.url) as client:
        for label in LABELS:
            loaded = await client.call_tool("load_skill", {"skill": f"skill://{label}/shared/SKILL.md"})
            assert loaded.content[-1].text.encode() == served.tree[f"{label}/shared/SKILL.md"]


@rule("L2", "C1", "R2", "S1", "V1")
async def test_an_upstream_is_killed_and_comes_back_while_clients_read(tmp_path: Path, node: Node) -> None:
    """Stale and from the cache while it is away, then fresh; the others are untouched."""
    label = "typescript"
    with all_upstreams(tmp_path, node, "http") as upstreams:
        async with (
            gateway_of(tmp_path, upstreams) as (gateway, served),
            at_work(node, served) as readers,
            Client(served.url) as operator,
        ):
            await readers.rounds(1)
            upstreams[label].kill()
            await check_away(operator, label)
            await hear(gateway, f"(?m)^{label}: unreachable; its last listing is served")
            await check_stale(operator, label)
            await readers.rounds(1)  # everything, byte for byte, as before
            write_tree(upstreams[label].root, changed_tree(label))
            readers.truths = (served.tree, served_of(upstreams))
            await to_thread.run_sync(upstreams[label].start)
            await hear(gateway, f"(?m)^{label}: dialect extension")
            readers.truths = readers.truths[-1:]
            await readers.rounds(1)  # everything, what changed included
            await check_stale(operator)


@asynccontextmanager
async def at_work(node: Node, served: Served) -> AsyncIterator[Readers]:
    """Three clients that read on until the block ends."""
    readers = Readers(served.tree)
    async with (
        typescript(node, served.url) as by_sdk,
        agent_framework(served.url, readers) as by_framework,
        anyio.create_task_group() as group,
    ):
        reads = {"typescript": by_sdk, "framework": by_framework, "inspector": inspector(node, served.url)}
        group.start_soon(readers.run, reads)
        yield readers
        group.cancel_scope.cancel()


async def check_away(client: Client, label: str) -> None:
    """What nobody can know without the upstream is an error that names it, and never just nothing."""
    with pytest.raises(MCPError, match=f"the server of '{label}' does not answer"):
        await call(client, "skills/get", uri=f"skill://{label}/nobody/SKILL.md")


async def check_stale(client: Client, *stale: str) -> None:
    """Exactly the skills of these upstreams are said to be old, where they are listed and where they are read."""
    *listed, index = (await call(client, "resources/list"))["resources"]
    assert index["uri"] == "skill://index.json"
    assert {path_of(each["uri"]).partition("/")[0] for each in listed} == set(LABELS)
    for resource in listed:
        [content] = (await call(client, "resources/read", uri=resource["uri"]))["contents"]
        label = content["_meta"][provenance.ORIGIN]
        for said in (resource, content):
            assert (provenance.STALE_SINCE in said["_meta"]) == (label in stale)
