"""The report as Markdown: figures of each server, how many times faster ours is, and what was to be reached."""

from __future__ import annotations

import os
import platform
import re
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peers.goals import LIST_GOALS, REQUEST_GOALS, Goal, Kind, Spread, speed_ratio
from benchmarks.peers.servers import SERVERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers.rounds import Rounds


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def environment() -> dict[str, Any]:
    """What the figures depend on, and nothing about whose machine it was."""
    model = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": model[1] if model else platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("mcp", "uvicorn", "starlette")},
        "load_before": round(os.getloadavg()[0], 2),
    }


def figures(rounds: Rounds, peaks: dict[str, float], missing: dict[str, str]) -> str:
    """One column a server: medians over the rounds, with the least and the most."""
    rows = [
        [_head(what), *(_figure(what, found.get(server, [])) for server in peaks)]
        for what, found in rounds.items()
    ]
    rows.append(["peak memory", *(f"{peak:.0f} MB" for peak in peaks.values())])
    lines = [table(["", *(SERVERS[server].label for server in peaks)], rows)]
    lines += [f"Left out: {SERVERS[name].label}: {why.splitlines()[0]}" for name, why in missing.items()]
    return "\n\n".join(lines)


def ratios(rounds: Rounds) -> str:
    """How many times faster ours is than each of the others; the goal stands behind what has one."""
    others = [server for server in next(iter(rounds.values())) if server != "ours"]
    rows: list[list[str]] = []
    for what in rounds:
        kinds: tuple[Kind, ...] = ("p50", "server CPU") if what == "list" else ("throughput", "p50", "server CPU")
        for kind in kinds:
            goals = {} if kind == "server CPU" else LIST_GOALS if what == "list" else REQUEST_GOALS
            cells = [_ratio(speed_ratio(rounds, what, other, kind), goals.get(other)) for other in others]
            rows.append([f"{_name(what)}: {kind}", *cells])
    return table(["ours is faster than … by", *(SERVERS[other].label for other in others)], rows)


def goal_table(goals: Sequence[Goal]) -> str:
    return table(["", "measured", "beside", "ratio", "goal", "met"], [goal.cells() for goal in goals])


def client_load(rounds: Rounds) -> str:
    """Whether the load client was itself what was measured."""
    busiest = max(
        (report["client_cpu"], what, server)
        for what, found in rounds.items()
        for server, reports in found.items()
        for report in reports
    )
    return (
        f"The load client was busiest at {busiest[0]:.0%} of one core ({_name(busiest[1])},"
        f" {SERVERS[busiest[2]].label})."
    )


def _name(what: str) -> str:
    method, _, connections = what.partition(" ")
    names = {"list": "list everything", "get": "`skills/get`", "read": "`resources/read`"}
    return names[method] + (f", {connections} connection{'s' * (connections != '1')}" if connections else "")


def _head(what: str) -> str:
    return _name(what) if what == "list" else f"{_name(what)}: a second; p50"


def _figure(what: str, reports: Sequence[dict[str, Any]]) -> str:
    if not reports:
        return "failed"
    p50 = Spread.of([report["p50"] * 1000 for report in reports])
    if what == "list":
        return f"{p50.median:,.1f} ms ({p50.least:,.1f}–{p50.most:,.1f})"
    rate = Spread.of([report["per_second"] for report in reports])
    return f"{rate.median:,.0f} ({rate.least:,.0f}–{rate.most:,.0f}); {p50.median:.2f} ms"


def _ratio(found: Spread | None, goal: float | None) -> str:
    if found is None:
        return ""
    text = f"{_short(found.median)} ({_short(found.least)}–{_short(found.most)})"
    if goal is None:
        return text
    return f"{text}, goal {goal:g}: {'met' if found.median >= goal else '**missed**'}"


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"
