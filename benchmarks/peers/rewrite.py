"""How long reads take while the whole tree is being rewritten, beside the same reads while it is quiet.

    python -m benchmarks.peers.rewrite ROOT     # rewrites until it is ended

One connection that pauses between requests, so that it is the server's answer that is waited for and not a
processor that everybody wants. The floor, which has no files, shows what the rewriting itself takes away.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peers.goals import Goal, Spread, at_most
from benchmarks.peers.load import Plan
from benchmarks.peers.packages import PLACE
from benchmarks.peers.rounds import load, running, say
from benchmarks.peers.servers import FLOOR, OURS
from benchmarks.peers.tree import write_tree
from benchmarks.trees import write_skill

if TYPE_CHECKING:
    from benchmarks.peers.tree import Tree

_PAUSE = 0.001
Tails = dict[str, dict[str, list[float]]]  # server -> quiet or rewritten -> p99 of each round, in seconds


def rewrite(root: Path) -> None:
    """Every skill anew, over and over: each file is written beside the tree and put in place at once."""
    scratch = root.parent / f"{root.name}.scratch"
    folders = sorted(root.iterdir())
    print("begun", flush=True)
    for turn in itertools.count(1):
        for folder in folders:
            write_skill(scratch / folder.name, turn)
            for made in (scratch / folder.name).rglob("*.md"):
                os.replace(made, folder / made.relative_to(scratch / folder.name))


def measure_rewriting(skills: int, rounds: int, seconds: float) -> Tails:
    """Quiet and rewritten by turns; ours and the floor apart, so that ours does not disturb the floor."""
    tree = write_tree(skills, PLACE / "rewritten")
    return {name: _tails(name, tree, rounds, seconds) for name in (OURS, FLOOR)}


def _tails(name: str, tree: Tree, rounds: int, seconds: float) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"quiet": [], "rewritten": []}
    uris = list(tree.digests())
    with running([name], tree) as (served, _):
        for turn in range(rounds):
            for kind in found:
                served[name].settle()
                rewriting = _start(tree) if kind == "rewritten" else None
                try:
                    found[kind].append(load(_plan(uris, served[name].port, seconds))["p99"])
                finally:
                    _end(rewriting)
            say(f"rewriting, {name}, round {turn + 1} of {rounds}")
    return found


def _plan(uris: list[str], port: int, seconds: float) -> Plan:
    """Reads whose bytes are not compared: they change."""
    return Plan(port, "resources/read", uris, seconds=seconds, pause=_PAUSE)


def _start(tree: Tree) -> subprocess.Popen[str]:
    """A process that has begun to rewrite."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.peers.rewrite", str(tree.root)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _end(process: subprocess.Popen[str] | None) -> None:
    if process is not None:
        process.terminate()
        process.communicate()


def rewriting_goals(found: Tails, skills: int) -> list[Goal]:
    """p99 ≤ 3 × quiet p99."""
    ms = {
        name: {kind: Spread.of(values).median * 1000 for kind, values in kinds.items()}
        for name, kinds in found.items()
    }
    what = f"p99 of reads while {skills:,} skills are rewritten"
    ours = at_most(what, ms[OURS]["rewritten"], ms[OURS]["quiet"], 3.0, "ms", "quiet")
    floor: Any = at_most(what, ms[FLOOR]["rewritten"], ms[FLOOR]["quiet"], 3.0, "ms", "quiet")
    return [ours, Goal(f"the floor's {what}", floor.measured, floor.beside, floor.ratio, "", None)]


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]))
