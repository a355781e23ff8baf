"""The parts of a run: each measures one thing, adds its raw figures to the file and its lines to the report.

The report is written again after each part, so that a run which is ended early leaves what it had.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.peers.plot import draw
from benchmarks.peers.report import client_load, environment, figures, goal_table, ratios
from benchmarks.peers.rewrite import measure_rewriting, rewriting_goals
from benchmarks.peers.rounds import measure, plans, running, say
from benchmarks.peers.servers import FLOOR, OURS
from benchmarks.peers.sizes import measure_sizes, size_goals
from benchmarks.peers.soak import measure_soak, soak_goals
from benchmarks.peers.starts import import_goals, measure_imports, measure_starts, start_goals
from benchmarks.peers.tree import write_tree

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from benchmarks.peers.goals import Goal


@dataclass
class Run:
    """What was asked for, and what has been found so far."""

    options: argparse.Namespace
    raw: dict[str, Any] = field(default_factory=lambda: {"environment": environment()})
    tables: list[str] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    appendix: list[str] = field(default_factory=list)

    @property
    def servers(self) -> list[str]:
        """Ours and the floor in any case: everything is a ratio to one of them."""
        return [OURS, FLOOR, *(name for name in self.options.peers if name not in (OURS, FLOOR))]

    def text(self) -> str:
        goals = [goal_table(self.goals)] if self.goals else []
        return "\n\n".join([*self.tables, *goals, *self.appendix]) + "\n"

    def write(self) -> None:
        out = self.options.out
        out.mkdir(parents=True, exist_ok=True)
        (out / "report.json").write_text(json.dumps(self.raw, indent=1) + "\n")
        (out / "report.md").write_text(self.text())


def requests(run: Run) -> None:
    options = run.options
    tree = write_tree(options.skills)
    with running(run.servers, tree) as (served, missing):
        rounds = measure(served, plans(tree, options.seconds, options.connections), options.rounds)
        peaks = {name: process.peak_mb() for name, process in served.items()}
    run.raw["requests"] = {"skills": tree.skills, "rounds": rounds, "peak_mb": peaks, "missing": missing}
    run.tables += [figures(rounds, peaks, missing), ratios(rounds), client_load(rounds)]


def starts(run: Run) -> None:
    tree = write_tree(run.options.start_skills)
    found = run.raw["starts"] = measure_starts(tree, run.options.rounds)
    run.goals += start_goals(found, tree.skills)


def imports(run: Run) -> None:
    found = run.raw["imports"] = measure_imports(2 * run.options.rounds + 1)
    run.goals += import_goals(found)


def rewriting(run: Run) -> None:
    skills = run.options.start_skills
    found = run.raw["rewriting"] = measure_rewriting(skills, run.options.rounds, 5 * run.options.seconds)
    run.goals += rewriting_goals(found, skills)


def sizes(run: Run) -> None:
    found = run.raw["sizes"] = measure_sizes(run.servers, run.options.sizes, run.options.seconds)
    run.goals += size_goals(found)
    run.options.out.mkdir(parents=True, exist_ok=True)
    (run.options.out / "sizes.svg").write_text(draw(found))


def soak(run: Run) -> None:
    found = run.raw["soak"] = measure_soak(write_tree(run.options.skills), run.options.soak)
    run.goals += soak_goals(found)


def others(run: Run) -> None:
    """Client and host have benchmarks of their own; what they print stands at the end."""
    for name in ("client", "host"):
        printed = run.raw[name] = _printed(f"benchmarks.{name}")
        run.appendix.append(f"`python -m benchmarks.{name}`:\n\n```text\n{printed}\n```")


def _printed(module: str) -> str:
    try:
        done = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return "not done within 15 minutes"
    return done.stdout.strip() if done.returncode == 0 else f"failed: {done.stderr.strip()[-300:]}"


PARTS: dict[str, Callable[[Run], None]] = {
    part.__name__: part for part in (requests, starts, imports, rewriting, sizes, soak, others)
}


def run(options: argparse.Namespace) -> None:
    """The parts that were asked for, and then the report."""
    found = Run(options)
    names: Sequence[str] = options.parts
    for name in names:
        say(f"--- {name}")
        PARTS[name](found)
        found.write()
    print(found.text())
