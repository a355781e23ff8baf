"""How soon a host is ready, and what verifying adds to reading.

    python -m benchmarks.host

Opening: 20 origins with 100 skills each, remembered from an earlier run and unreachable now: the time until the
catalog prompt is there. Warm load: a skill that was approved and is in the cache, hashed again. Read: a verified
read beside the bare SDK's read of the same file, by turns, over HTTP on loopback.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

from benchmarks.client import AnyResult, Ask, serving
from benchmarks.scan import CACHE
from benchmarks.trees import generate
from skillwire import Answer, ApprovalRequest, MemoryCatalog, Skill, SkillHost, Skills, connect
from skillwire.server.skills import build_server

NOWHERE = {"url": "http://127.0.0.1:1/mcp"}


async def say_yes(request: ApprovalRequest) -> Answer:
    return Answer(yes=True, by=f"the benchmark, to {request.kind}")


def some_skills(count: int) -> list[Skill]:
    body = "x" * 4000
    return [
        Skill(
            f"skill-{n:03}",
            {"SKILL.md": f"---\nname: skill-{n:03}\ndescription: Does {n}.\n---\n{body}\n".encode()},
        )
        for n in range(count)
    ]


async def opening(state: Path, origins: int, skills: int, rounds: int) -> float:
    servers: dict[str, Any] = {
        f"origin-{n}": build_server(Skills(MemoryCatalog(some_skills(skills)))) for n in range(origins)
    }
    async with SkillHost.open(servers=servers, state=state) as host:
        await host.settle(60)
        assert len(host.names.skills) == origins * skills
    times: list[float] = []
    for _ in range(rounds):
        begun = time.perf_counter()
        async with SkillHost.open(servers=dict.fromkeys(servers, NOWHERE), state=state) as host:
            assert host.catalog_prompt().count("<skill>") == origins * skills
            times.append(time.perf_counter() - begun)
    return statistics.median(times)


async def warm_load(state: Path, rounds: int) -> float:
    server = build_server(Skills(MemoryCatalog(some_skills(3))))
    times: list[float] = []
    async with SkillHost.open(servers={"one": server}, state=state, ask=say_yes) as host:
        await host.settle(30)
        for _ in range(rounds + 1):
            begun = time.perf_counter()
            assert not (await host.call("load_skill", {"name": "skill-001"})).is_error
            times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


async def reads(url: str, rounds: int) -> tuple[float, float]:
    async with connect(url) as ours, Client(url, cache=None) as sdk:
        entry = await anext(ours.list_skills())
        pairs: list[tuple[float, float]] = []
        for _ in range(rounds):
            begun = time.perf_counter()
            await sdk.session.send_request(Ask(method="resources/read", params={"uri": entry.uri}), AnyResult)
            between = time.perf_counter()
            await ours.read_skill(entry)
            pairs.append((between - begun, time.perf_counter() - between))
    bare, verified = zip(*pairs, strict=True)
    return statistics.median(bare), statistics.median(verified)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        ready = anyio.run(opening, Path(place) / "many", 20, 100, 7)
        warm = anyio.run(warm_load, Path(place) / "one", arguments.rounds)
    with serving(generate(CACHE, 200)) as url:
        bare, verified = anyio.run(reads, url, arguments.rounds)
    print(f"host of 20 origins, 2,000 skills, no network: prompt ready in {ready * 1000:.0f} ms (goal < 150)")
    print(f"warm load from the cache: {warm * 1000:.2f} ms (goal <= 3)")
    print(
        f"read: SDK {bare * 1000:.2f} ms, verified {verified * 1000:.2f} ms,"
        f" ratio {verified / bare:.2f} (goal <= 1.15)"
    )


if __name__ == "__main__":
    main()
