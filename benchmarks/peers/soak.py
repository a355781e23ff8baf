"""Ours under load for minutes: whether its memory stays where it is, and whether every answer is a result."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from benchmarks.peers.goals import Goal
from benchmarks.peers.rounds import load, plans, running, say
from benchmarks.peers.servers import OURS

if TYPE_CHECKING:
    from benchmarks.peers.tree import Tree

_TURN = 5.0  # seconds of one kind of request, before the next and a look at the memory
_GROWTH = 1.05


def measure_soak(tree: Tree, minutes: float) -> dict[str, Any]:
    """Megabytes after each turn, and how many requests were answered; one that fails ends the soak."""
    found: dict[str, Any] = {"minutes": minutes, "requests": 0, "resident_mb": []}
    wanted = plans(tree, _TURN, (16,))
    with running([OURS], tree) as (served, _):
        ours, deadline = served[OURS], time.monotonic() + minutes * 60
        while time.monotonic() < deadline:
            for plan in wanted.values():
                report = load(replace(plan, port=ours.port))
                found["requests"] += report["asked"] * max(report["pages"], 1)
                found["resident_mb"].append(ours.resident_mb())
            say(f"soak: {found['requests']:,} requests, {found['resident_mb'][-1]:.0f} MB")
    return found


def soak_goals(found: dict[str, Any]) -> list[Goal]:
    """Flat: the last third of the time is not above the second third, but for a little."""
    memory: list[float] = found["resident_mb"]
    third = len(memory) // 3
    before, after = statistics.median(memory[third : 2 * third + 1]), statistics.median(memory[-third - 1 :])
    return [
        Goal(
            f"memory in {found['minutes']:g} minutes of load, {found['requests']:,} requests",
            f"last third: {after:.0f} MB",
            f"second third: {before:.0f} MB",
            after / before,
            f"≤ {_GROWTH:g}",
            after / before <= _GROWTH,
        )
    ]
