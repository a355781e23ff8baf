"""What verifying costs a client: CPU time to list every skill and read 1,000 files, over HTTP on loopback.

Beside it, in the same run and by turns, the official SDK's client alone, moving the same bytes without looking at
them. Then twenty servers that each take a while to answer, listed together: the time of the slowest, or the sum?

    python -m benchmarks.client
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import anyio
from mcp import Client
from mcp.client import advertise
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Request, Result
from pydantic import ConfigDict

from benchmarks.scan import CACHE
from benchmarks.trees import generate
from skillwire import connect
from skillwire.lowlevel import list_many
from skillwire.server.skills import Skills, build_server
from skillwire.wire.extension import EXTENSION_ID, SKILLS_LIST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from mcp.server.lowlevel import Server

    from skillwire.types import SkillsClient

FILES = 1000
Ask = Request[dict[str, Any], str]


class AnyResult(Result):
    model_config = ConfigDict(extra="allow")


async def by_the_sdk_alone(url: str) -> int:
    """List and read with nothing but the SDK: no check, no entry, no hash."""
    async with Client(
        streamable_http_client(url, max_sse_event_size=None), extensions=[advertise(EXTENSION_ID)], cache=None
    ) as client:
        uris: list[str] = []
        cursor: str | None = None
        while True:
            params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
            page = await client.session.send_request(Ask(method=SKILLS_LIST, params=params), AnyResult)
            fields: dict[str, Any] = page.model_extra or {}
            uris += [file["uri"] for entry in fields["skills"] for file in entry["resources"]]
            cursor = fields.get("nextCursor")
            if cursor is None:
                break
        for uri in uris[:FILES]:
            await client.session.send_request(Ask(method="resources/read", params={"uri": uri}), AnyResult)
        return len(uris)


async def by_skillwire(url: str) -> int:
    """The same, with every entry checked and every file verified."""
    async with connect(url) as client:
        entries = [entry async for entry in client.list_skills()]
        files = [(entry, file.uri) for entry in entries for file in entry.files]
        for entry, uri in files[:FILES]:
            await client.read_resource(entry, uri)
        return len(files)


def cpu_of(work: Callable[[str], Awaitable[int]], url: str) -> float:
    begun = time.process_time()
    count = anyio.run(work, url)
    assert count > FILES
    return time.process_time() - begun


@contextmanager
def serving(root: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "skillwire", "serve", str(root), "--http", "0", "--no-watch"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        yield next(line.split()[2] for line in process.stderr if line.startswith("listening at"))
    finally:
        process.terminate()
        process.communicate()


async def twenty_servers(root: Path, delay: float) -> tuple[float, float]:
    """Seconds to list one slow server, and twenty of them together."""
    async with AsyncExitStack() as stack:
        clients: dict[str, SkillsClient] = {}
        for index in range(20):
            server = build_server(Skills(root, watch=False))
            delayed(server, delay)
            clients[f"server-{index}"] = await stack.enter_async_context(connect(server))
        begun = time.perf_counter()
        await list_many({"one": clients["server-0"]})
        one = time.perf_counter() - begun
        begun = time.perf_counter()
        listings = await list_many(clients)
        assert all(listing.entries for listing in listings.values())
        return one, time.perf_counter() - begun


def delayed(server: Server[Any], seconds: float) -> None:
    async def wait(context: Any, call_next: Any) -> Any:
        await anyio.sleep(seconds)
        return await call_next(context)

    server.middleware.append(wait)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skills", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    root = generate(CACHE, arguments.skills)
    with serving(root) as url:
        cpu_of(by_skillwire, url)  # imports and first pages are nobody's
        cpu_of(by_the_sdk_alone, url)
        rounds = [(cpu_of(by_the_sdk_alone, url), cpu_of(by_skillwire, url)) for _ in range(arguments.rounds)]
    floor, ours = (statistics.median(times) for times in zip(*rounds, strict=True))
    print(f"list {arguments.skills} skills, read {FILES} files: client CPU")
    print(f"  SDK alone {floor:.2f} s, skillwire, all verified {ours:.2f} s, ratio {ours / floor:.2f} (goal <= 2)")
    one, twenty = anyio.run(twenty_servers, generate(CACHE, 20), 0.2)
    print(f"list servers that wait 0.2 s: one {one:.2f} s, twenty together {twenty:.2f} s (sum {20 * one:.1f} s)")


if __name__ == "__main__":
    main()
