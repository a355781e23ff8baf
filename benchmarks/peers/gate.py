"""The small version that CI runs: ours beside the floor, and whether a ratio that matters has halved.

``expected.json`` has the ratios of an earlier run, not times: those depend on the machine. Noise can halve a
ratio too, so a failure is looked at once more before it counts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from benchmarks.peers.goals import Spread, speed_ratio
from benchmarks.peers.packages import HERE
from benchmarks.peers.report import table
from benchmarks.peers.rounds import measure, plans, running, say
from benchmarks.peers.servers import FLOOR, OURS
from benchmarks.peers.starts import measure_starts
from benchmarks.peers.tree import write_tree

if TYPE_CHECKING:
    from benchmarks.peers.goals import Kind

EXPECTED = HERE / "expected.json"
SKILLS, ROUNDS, SECONDS = 300, 3, 0.4
_KINDS: tuple[Kind, ...] = ("p50", "server CPU")  # what noise disturbs least


def check_quickly(*, record: bool) -> int:
    """0 if every ratio is at least half of what is expected."""
    found = measure_quickly()
    if record:
        EXPECTED.write_text(json.dumps(found, indent=1) + "\n")
    expected: dict[str, float] = json.loads(EXPECTED.read_text())
    if halved(found, expected):
        say("something is half as good as expected; measuring once more")
        again = measure_quickly()
        found = {name: max(ratio, again[name]) for name, ratio in found.items()}
    failed = halved(found, expected)
    rows = [
        [name, f"{found[name]:.2f}", f"{ratio:.2f}", "**halved**" if name in failed else "ok"]
        for name, ratio in expected.items()
    ]
    print(table(["ours, beside the floor (more is better)", "now", "expected", ""], rows))
    if failed:
        print(
            f"\n{', '.join(failed)}: half of what is expected, or less. If that is meant to be so, write"
            " expected.json anew: python -m benchmarks.peers --quick --record"
        )
    return 1 if failed else 0


def halved(found: dict[str, float], expected: dict[str, float]) -> list[str]:
    """What is expected, and was found to be at most half as good."""
    return [name for name, ratio in expected.items() if found[name] <= ratio / 2]


def measure_quickly() -> dict[str, float]:
    """How many times faster ours is than a floor."""
    tree = write_tree(SKILLS)
    with running([OURS, FLOOR], tree) as (served, missing):
        if missing:
            raise SystemExit(f"cannot start: {missing}")
        rounds = measure(served, plans(tree, SECONDS, (1, 16)), ROUNDS)
    found: dict[str, float] = {}
    for what in rounds:
        for kind in _KINDS:
            ratio = speed_ratio(rounds, what, FLOOR, kind)
            if ratio is None:
                raise SystemExit(f"{what}: not measured, see above")
            found[f"{what}: {kind}"] = round(ratio.median, 2)
    seconds = {name: Spread.of(values).median for name, values in measure_starts(tree, ROUNDS).items()}
    base = seconds["hashing"] + seconds["import mcp"]
    found["start"] = round(base / seconds["start"], 2)
    return found
