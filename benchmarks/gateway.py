"""What a gateway adds: to a read that was made before, to one that was not, and to listing many upstreams.

    python -m benchmarks.gateway

Reads: `skillwire serve`, and `skillwire gateway` in front of that very server, read from by turns over HTTP on
loopback by our client, which verifies. Cold: no file is read twice, and the gateway is asked for others than the
server, so that each is a read that nobody has made, at the gateway and at the server; verified on the way. Warm:
the same again. Cold in a row: all of one side and then all of the other, so that neither waits for what the other
does after its answers. Listing: twenty upstreams of 250 skills, each a little slower than the one before, from
opening the gateway to the last entry, beside the slowest alone.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from benchmarks.scan import CACHE
from benchmarks.server_process import running
from benchmarks.trees import generate
from skillwire import MemoryCatalog, Skill, Skills, connect
from skillwire.gateway.config import Plan
from skillwire.gateway.gateway import run_gateway
from skillwire.server.skills import build_server
from skillwire.wire.extension import SKILLS_LIST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.lowlevel import Server

    from skillwire.skill import SkillEntry
    from skillwire.types import SkillsClient

UPSTREAMS, SKILLS = 20, 250


async def reads(skills: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Medians in milliseconds of a verified read, cold and warm: direct, and through the gateway."""
    root = generate(CACHE, skills)
    with (
        tempfile.TemporaryDirectory() as place,
        running("serve", str(root), "--no-watch") as upstream,
    ):
        config = Path(place) / "servers.json"
        config.write_text(f'{{"mcpServers": {{"up": {{"url": "{upstream.url}"}}}}}}')
        words = ("gateway", "--config", str(config), "--state", str(Path(place) / "state"))
        with running(*words, ready="serving ") as front:
            async with connect(upstream.url) as direct, connect(front.url) as gateway:
                all_own = [entry async for entry in direct.list_skills()]
                all_other = [entry async for entry in gateway.list_skills()]
                own, other = all_own[:rounds], all_other[rounds : 2 * rounds]
                found: dict[str, tuple[float, float]] = {}
                for kind in ("cold", "warm"):
                    pairs = [
                        (await timed(direct, one), await timed(gateway, two))
                        for one, two in zip(own, other, strict=True)
                    ]
                    directly, through = zip(*pairs, strict=True)
                    found[kind] = statistics.median(directly), statistics.median(through)
                half = (2 * rounds + skills) // 2
                found["cold in a row"] = (
                    await in_a_row(direct, all_own[2 * rounds : half]),
                    await in_a_row(gateway, all_other[half:]),
                )
    return found


async def in_a_row(client: SkillsClient, entries: Sequence[SkillEntry]) -> float:
    return statistics.median([await timed(client, entry) for entry in entries])


async def timed(client: SkillsClient, entry: SkillEntry) -> float:
    begun = time.perf_counter()
    await client.read_skill(entry)
    return (time.perf_counter() - begun) * 1000


def slow_server(number: int, seconds: float) -> Server[Any]:
    """A server whose every page of skills takes a while."""

    async def wait(ctx: Any, call_next: Any) -> Any:
        if ctx.method == SKILLS_LIST:
            await anyio.sleep(seconds)
        return await call_next(ctx)

    skills = [
        Skill(f"s{n:03}", {"SKILL.md": f"---\nname: s{n:03}\ndescription: Does {number}.{n}\n---\n".encode()})
        for n in range(SKILLS)
    ]
    server = build_server(Skills(MemoryCatalog(skills)))
    server.middleware.insert(0, wait)
    return server


async def listings(seconds: float) -> tuple[float, float, float]:
    """Seconds: one upstream alone, a gateway of all until everything is listed, and once more from memory."""
    async with connect(slow_server(0, seconds)) as client:
        begun = time.perf_counter()
        assert len([entry async for entry in client.list_skills()]) == SKILLS
        alone = time.perf_counter() - begun
    paces = [seconds * (number + 1) / UPSTREAMS for number in range(UPSTREAMS)]
    plan = Plan(servers={f"up{n:02}": slow_server(n, pace) for n, pace in enumerate(paces)})
    with tempfile.TemporaryDirectory() as place:
        begun = time.perf_counter()
        async with run_gateway(plan, place) as gateway:
            assert len([entry async for entry in gateway.catalog.entries()]) == UPSTREAMS * SKILLS
            together = time.perf_counter() - begun
            begun = time.perf_counter()
            assert len([entry async for entry in gateway.catalog.entries()]) == UPSTREAMS * SKILLS
            again = time.perf_counter() - begun
    return alone, together, again


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skills", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=1.0, help="that a page of the slowest upstream takes")
    arguments = parser.parse_args()
    found = anyio.run(reads, arguments.skills, min(arguments.rounds, arguments.skills // 3))
    alone, together, again = anyio.run(listings, arguments.seconds)
    print("| | direct | gateway | ratio | goal |\n|---|---|---|---|---|")
    for kind, goal in (("warm", "≤ 1.3"), ("cold", "≤ 3"), ("cold in a row", "")):
        direct, gateway = found[kind]
        print(f"| read, {kind} | {direct:.2f} ms | {gateway:.2f} ms | {gateway / direct:.2f} | {goal} |")
    ratio = together / alone
    print(f"| list {UPSTREAMS} × {SKILLS} | {alone:.2f} s (slowest) | {together:.2f} s | {ratio:.2f} | ≤ 1.2 |")
    print(f"| list again, from memory | | {again * 1000:.0f} ms | | |")


if __name__ == "__main__":
    main()
