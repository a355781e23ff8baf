"""How long ours takes to start: to the first answer, beside hashing the tree and importing the SDK.

What is on disk is in the system's cache, for the floor too.
"""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from benchmarks.peers.goals import Goal, Spread, at_most
from benchmarks.peers.processes import Served
from benchmarks.peers.rounds import say
from benchmarks.peers.servers import SKILLWIRE, ours

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.peers.tree import Tree

_CPU = ", CPU"
_IMPORTS = {
    "python": [sys.executable, "-c", "pass"],
    "import mcp": [sys.executable, "-c", "import mcp"],
    "import skillwire.skill": [sys.executable, "-c", "import skillwire.skill"],
    "skillwire --help": [SKILLWIRE, "--help"],
}


def hash_tree(root: Path) -> float:
    """The floor of any scan: read every file and hash it. Seconds."""
    begun = time.perf_counter()
    for folder, _, names in os.walk(root):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                hashlib.sha256(file.read()).digest()
    return time.perf_counter() - begun


def measure_starts(tree: Tree, rounds: int) -> dict[str, list[float]]:
    """Seconds, by turns: the floors, a start."""
    found: dict[str, list[float]] = {"hashing": [], "import mcp": [], "start": []}
    hash_tree(tree.root)
    first = tree.skill_uris()[0]
    for turn in range(rounds):
        found["hashing"].append(hash_tree(tree.root))
        found["import mcp"].append(run_seconds(_IMPORTS["import mcp"]))
        with tempfile.TemporaryDirectory() as home:
            found["start"].append(start_seconds(ours(tree.root), first, home))
        say(f"starts, round {turn + 1} of {rounds}")
    return found


def start_seconds(command: Sequence[str], first_uri: str, home: str) -> float:
    """From the start of a process to its first answer, in that home."""
    served = Served(command, first_uri, home)
    served.end()
    return served.start_seconds


def measure_imports(rounds: int) -> dict[str, list[float]]:
    """Seconds that a process takes that does nothing, imports something, or prints the help; and of processor."""
    found: dict[str, list[float]] = {f"{name}{kind}": [] for name in _IMPORTS for kind in ("", _CPU)}
    for _ in range(rounds):
        for name, command in _IMPORTS.items():
            before = _children_cpu()
            found[name].append(run_seconds(command))
            found[name + _CPU].append(_children_cpu() - before)
    return found


def run_seconds(command: Sequence[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begun


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def start_goals(found: dict[str, list[float]], skills: int) -> list[Goal]:
    """A start ≤ 1.6 × (hashing + import)."""
    seconds = {name: Spread.of(values).median for name, values in found.items()}
    whole = seconds["hashing"] + seconds["import mcp"]
    size = f"{skills:,} skills"
    return [at_most(f"start to first answer, {size}", seconds["start"], whole, 1.6, "s", "hashing + `import mcp`")]


def import_goals(found: dict[str, list[float]]) -> list[Goal]:
    """``skillwire.skill`` ≤ 50 ms over a bare interpreter; ``skillwire --help`` ≤ 200 ms in all."""
    ms = {name: Spread.of(values).median * 1000 for name, values in found.items()}
    bare = f"bare interpreter: {_both(ms, 'python')}"

    def line(what: str, name: str, most: float | None) -> Goal:
        goal, is_met = ("", None) if most is None else (f"≤ {most:g} ms", ms[name] <= most)
        return Goal(what, _both(ms, name), bare, None, goal, is_met)

    for name in ("import skillwire.skill", "import mcp"):  # what the interpreter takes is not the import's
        for kind in ("", _CPU):
            ms[name + kind] -= ms["python" + kind]
    return [
        line("`import skillwire.skill`", "import skillwire.skill", 50),
        line("`skillwire --help`", "skillwire --help", 200),
        line("`import mcp`, to compare", "import mcp", None),
    ]


def _both(ms: dict[str, float], name: str) -> str:
    return f"{ms[name]:.0f} ms ({ms[name + _CPU]:.0f} ms of processor)"
