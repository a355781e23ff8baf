"""How fast and how large a ``DirectoryCatalog`` is, against a floor measured in the same run.

The floor does what any implementation must: walk the tree, read every file, hash it with SHA-256, and load each
frontmatter with PyYAML's C loader; nothing is kept. Floor and catalog alternate in one process per size, and
medians are reported. Memory is the peak resident size of a fresh process that loads the catalog.

    python -m benchmarks.scan                 # 1,000, 5,000 and 50,000 skills
    python -m benchmarks.scan --sizes 1000    # a quick look
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from benchmarks.trees import FILES_PER_SKILL, generate, skill_folder
from skillwire import DirectoryCatalog

if TYPE_CHECKING:
    from collections.abc import Callable

CACHE = Path(__file__).parent / ".cache"
MB = 1_000_000


def floor(root: Path) -> None:
    for folder, _, names in os.walk(root):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                data = file.read()
            hashlib.sha256(data).hexdigest()
            if name == "SKILL.md":
                yaml.load(data[4 : data.index(b"\n---", 4) + 1], yaml.CSafeLoader)


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def measure(root: Path, skills: int, rounds: int) -> dict[str, Any]:
    floors, scans = [], []
    floor(root)  # warms the disk cache for both
    catalog = DirectoryCatalog(root)
    for _ in range(rounds):
        floors.append(timed(lambda: floor(root)))
        catalog = DirectoryCatalog(root)
        scans.append(timed(catalog.load))
    return {
        "floor_s": statistics.median(floors),
        "scan_s": statistics.median(scans),
        "scan": statistics.median(scan / base for scan, base in zip(scans, floors, strict=True)),
        "reload_ms": asyncio.run(reload_time(catalog, skills)),
        "page_ms": asyncio.run(page_time(catalog)),
    }


async def reload_time(catalog: DirectoryCatalog, skills: int) -> float:
    """One file is rewritten; the catalog is told which, and knows the new digest when this ends."""
    times: list[float] = []
    for turn in range(20):
        place = skill_folder(catalog.root, turn * skills // 20) / "references" / "part-0.md"
        before = place.read_text()
        place.write_text(before[:-8] + f"turn {turn:02d}\n")
        begun = time.perf_counter()
        change = await catalog.refresh([str(place.relative_to(catalog.root))])
        times.append((time.perf_counter() - begun) * 1000)
        if len(change.changed) != 1:
            raise AssertionError(f"expected one changed skill, saw {change}")
        place.write_text(before)
        await catalog.refresh([str(place.relative_to(catalog.root))])
    return statistics.median(times)


async def page_time(catalog: DirectoryCatalog) -> float:
    """Every page of 100 entries, as wire JSON values; the slowest half decides nothing, the median does."""
    times: list[float] = []
    cursor: str | None = None
    for _ in range(200):
        begun = time.perf_counter()
        page = await catalog.list_skills(cursor, 100)
        [entry.to_json() for entry in page.items]
        times.append((time.perf_counter() - begun) * 1000)
        cursor = page.next_cursor
    return statistics.median(times)


def peak_memory(root: Path) -> float:
    """Megabytes of a fresh process that has loaded the catalog."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scan", "--memory-of", str(root)],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def print_memory(root: Path) -> None:
    catalog = DirectoryCatalog(root)
    catalog.load()
    print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 5_000, 50_000], metavar="SKILLS")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory-of", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of is not None:
        print_memory(arguments.memory_of)
        return
    print(
        "| skills | floor | cold scan | ratio (≤ 1.5) | reload (≤ 20 ms) | page of 100 (≤ 2 ms) | memory (bound) |"
    )
    print("|---|---|---|---|---|---|---|")
    for skills in arguments.sizes:
        root = generate(CACHE, skills)
        result = measure(root, skills, arguments.rounds)
        bound = 60 + skills * FILES_PER_SKILL * 2048 / MB
        print(
            f"| {skills:,} | {result['floor_s']:.2f} s | {result['scan_s']:.2f} s | {result['scan']:.2f}"
            f" | {result['reload_ms']:.1f} ms | {result['page_ms']:.2f} ms"
            f" | {peak_memory(root):.0f} MB ({bound:.0f}) |",
            flush=True,
        )


if __name__ == "__main__":
    main()
