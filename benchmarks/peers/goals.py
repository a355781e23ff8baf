"""What is to be reached, and how far it was: ratios of figures of one run, never of two."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers.rounds import Rounds

# How many times faster ours has to be than each, for requests and for listing everything.
REQUEST_GOALS = {"floor": 0.7, "starlette": 1.0, "typescript": 2.5, "fastmcp": 5.0}
LIST_GOALS = {"floor": 0.7, "fastmcp": 100.0}

Kind = Literal["throughput", "p50", "server CPU"]


@dataclass(frozen=True)
class Spread:
    """A median, and how far single rounds were from it."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class Goal:
    """A line of the report about ours alone: what was measured, beside what, and what was to be reached."""

    what: str
    measured: str
    beside: str
    ratio: float | None
    goal: str
    is_met: bool | None

    def cells(self) -> list[str]:
        met = {True: "yes", False: "**no**", None: ""}[self.is_met]
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return [self.what, self.measured, self.beside, ratio, self.goal, met]


def at_most(what: str, measured: float, base: float, goal: float, unit: str, beside: str) -> Goal:
    """A figure that may be at most ``goal`` times another."""
    ratio = measured / base
    return Goal(
        what, f"{measured:,.2f} {unit}", f"{beside}: {base:,.2f} {unit}", ratio, f"≤ {goal:g}", ratio <= goal
    )


def speed_ratio(rounds: Rounds, what: str, other: str, kind: Kind) -> Spread | None:
    """How many times faster ours is than ``other``, taken round by round."""
    own = {report["round"]: report for report in rounds[what].get("ours", [])}
    pairs = [(own[report["round"]], report) for report in rounds[what].get(other, []) if report["round"] in own]
    if kind == "throughput":
        ratios = [ours["per_second"] / theirs["per_second"] for ours, theirs in pairs]
    elif kind == "p50":
        ratios = [theirs["p50"] / ours["p50"] for ours, theirs in pairs]
    else:  # ticks of the system's clock: a request may have cost none that was seen
        ratios = [theirs["server_cpu"] / ours["server_cpu"] for ours, theirs in pairs if ours["server_cpu"]]
    return Spread.of(ratios) if ratios else None
