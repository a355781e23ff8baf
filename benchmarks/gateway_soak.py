"""A gateway under load: many clients at once for as long as you like, without an error and without growing.

    python -m benchmarks.gateway_soak                 500 clients for a minute
    python -m benchmarks.gateway_soak --minutes 10

One `skillwire gateway --http` in front of three `skillwire serve`, all on loopback, and light clients of both eras
(``load.py``) that read and list, each answer held against the files on disk. First all of them read one file at
the same moment. It exits with 1 if anything failed, if the memory of the gateway's process was not stable (the
median of the last third is more than a tenth above that of the second third), or if the upstreams were asked for
more than each file once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.load import Load
from benchmarks.scan import CACHE
from benchmarks.server_process import running
from benchmarks.trees import generate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.load import Tally
    from benchmarks.server_process import Running

LABELS = ("blue", "green", "red")
_STABLE = 1.1
_TWICE = 1.02  # a file may be asked for again, if it was asked for while it was being kept
_SPARE_FILES = 200
_PAGE_BYTES = resource.getpagesize()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--skills", type=int, default=200, help="of each upstream; each has five files")
    arguments = parser.parse_args()
    make_room(arguments.clients + _SPARE_FILES)
    root = generate(CACHE, arguments.skills)
    with ExitStack() as stack:
        ups = {label: stack.enter_context(running("serve", str(root), "--no-watch")) for label in LABELS}
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = place / "servers.json"
        config.write_text(json.dumps({"mcpServers": {label: {"url": up.url} for label, up in ups.items()}}))
        words = ("gateway", "--config", str(config), "--state", str(place / "state"))
        gateway = stack.enter_context(running(*words, ready="serving "))
        return asyncio.run(soak(gateway, list(ups.values()), digests(root), arguments))


def make_room(files: int) -> None:
    """Let every process here have so many files open: a connection is one, at both of its ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < files:
        sys.exit(f"{files} open files are needed, and {hard} allowed: raise the limit, or give fewer --clients")
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def digests(root: Path) -> dict[str, str]:
    """Every file of every upstream by its URI at the gateway, as it is on disk."""
    files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.md")}
    hashed = {path: f"sha256:{sha256(data).hexdigest()}" for path, data in files.items()}
    return {f"skill://{label}/{path}": digest for label in LABELS for path, digest in hashed.items()}


async def soak(
    gateway: Running, upstreams: Sequence[Running], files: dict[str, str], arguments: argparse.Namespace
) -> int:
    load = Load(int(gateway.url.split(":")[2].split("/")[0]), files, arguments.clients)
    await load.herd(min(files))
    herd = sum(map(fetches, upstreams))
    memory: list[int] = []
    sampling = asyncio.create_task(sample(gateway.pid, memory, load.tally))
    begun = time.monotonic()
    await load.run(arguments.minutes * 60)
    seconds = time.monotonic() - begun
    sampling.cancel()
    return report(load.tally, arguments.clients, seconds, memory, (herd, sum(map(fetches, upstreams))))


def fetches(upstream: Running) -> int:
    """How many files the upstream was asked for, as its own counters say."""
    with urllib.request.urlopen(upstream.url.replace("/mcp", "/metrics"), timeout=30) as page:
        lines = page.read().decode().splitlines()
    counts = [line for line in lines if line.startswith('skillwire_requests_total{method="resources/read"')]
    return int(sum(float(line.rpartition(" ")[2]) for line in counts))


async def sample(pid: int, memory: list[int], tally: Tally) -> None:
    """The resident size of a process, every second; every minute, how it goes."""
    while True:
        memory.append(resident(pid))
        await asyncio.sleep(1)
        if len(memory) % 60 == 0:
            talk = f"{tally.requests:,} requests, {sum(tally.errors.values())} errors, {mib(memory[-1])}"
            print(f"{len(memory) // 60} min: {talk}", file=sys.stderr, flush=True)


def resident(pid: int) -> int:
    """Bytes of a process that are in memory now, as Linux says."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES


def report(tally: Tally, clients: int, seconds: float, memory: list[int], asked: tuple[int, int]) -> int:
    """Say how it went; what the process exits with."""
    third = len(memory) // 3
    second, last = (statistics.median(memory[begin : begin + third]) for begin in (third, 2 * third))
    failures = sum(tally.errors.values())
    print("| | |\n|---|---|")
    print(f"| clients, half of each era | {clients}, {tally.visits:,} visits |")
    print(
        f"| requests, all right | {tally.requests:,} in {seconds:.0f} s, {tally.requests / seconds:.0f} a second |"
    )
    for method, times in sorted(tally.seconds.items()):
        p50, p99 = (statistics.quantiles(times, n=100)[at] * 1000 for at in (49, 98))
        print(f"| {method} | {len(times):,}; p50 {p50:.0f} ms, p99 {p99:.0f} ms |")
    print(f"| errors | {failures} |")
    print(
        f"| memory of the gateway | at first {mib(memory[0])}, second third {mib(second)}, last third {mib(last)},"
        f" peak {mib(max(memory))}; last / second {last / second:.3f} (≤ {_STABLE}) |"
    )
    print(f"| upstream reads for {clients} clients that read one file at once | {asked[0]} |")
    print(f"| upstream reads in all, for {len(tally.read):,} files | {asked[1]:,} |")
    for error, times in tally.errors.most_common(5):
        print(f"{times} × {error}", file=sys.stderr)
    wrong = [
        (failures > 0, "there were errors"),
        (last > second * _STABLE, "memory grew"),
        (
            asked[0] != 1 or asked[1] > len(tally.read) * _TWICE,
            "the upstreams were asked more than once for a file",
        ),
    ]
    for is_wrong, message in wrong:
        if is_wrong:
            print(f"FAILED: {message}", file=sys.stderr)
    return int(any(is_wrong for is_wrong, _ in wrong))


def mib(size: float) -> str:
    """Bytes, for people."""
    return f"{size / 2**20:.0f} MiB"


if __name__ == "__main__":
    sys.exit(main())
