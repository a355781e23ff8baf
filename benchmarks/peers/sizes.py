"""What a catalog's size costs: start, listing, one page, one read and memory, server by server.

Each server is alone while it is measured. One that is too slow or fails at a size is not asked for more: patience
is bounded, and the plot ends there.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.peers.goals import Goal, at_most
from benchmarks.peers.load import Plan
from benchmarks.peers.messages import BadAnswerError
from benchmarks.peers.processes import MB
from benchmarks.peers.rounds import load, running, say
from benchmarks.peers.servers import FLOOR, OURS, SERVERS
from benchmarks.peers.tree import write_tree
from benchmarks.trees import FILES_PER_SKILL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers.processes import Served
    from benchmarks.peers.tree import Tree

_PATIENCE = 60.0  # for a start, and for one answer, of a peer
_OURS_PATIENCE = 600.0
_BASE_MB = 110  # the SDK alone takes about 90
_SAME = 1.5  # two figures of two sizes that count as the same
_REPLAY_MB = 128 * 1024 * 1024 / MB  # what `--replay` keeps unless told otherwise


@dataclass(frozen=True)
class Cost:
    """What one server took at one size; seconds and megabytes."""

    skills: int
    start: float
    list: float
    page: float
    read: float
    memory: float


def measure_sizes(names: Sequence[str], sizes: Sequence[int], seconds: float) -> dict[str, list[dict[str, Any]]]:
    """The costs of each server, size by size, as far as it gets."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    gone: set[str] = set()
    for size in sorted(sizes):
        tree = write_tree(size)
        for name in names:
            if name in gone:
                continue
            try:
                found[name].append(asdict(_cost(name, tree, seconds)))
            except BadAnswerError as error:
                gone.add(name)
                say(f"{SERVERS[name].label} at {size:,} skills: {error}")
    return found


def _cost(name: str, tree: Tree, seconds: float) -> Cost:
    patience = _OURS_PATIENCE if name in (OURS, FLOOR) else _PATIENCE
    with running([name], tree, patience=patience) as (served, missing):
        if name not in served:
            raise BadAnswerError(missing[name])
        return _measured(served[name], tree, seconds, patience)


def _measured(server: Served, tree: Tree, seconds: float, patience: float) -> Cost:
    listed = load(Plan(server.port, "skills/list", seconds=seconds, patience=patience))
    if listed["skills"] != tree.skills:
        raise BadAnswerError(f"listed {listed['skills']} skills of {tree.skills}")
    digests = tree.digests()
    plan = Plan(server.port, "resources/read", list(digests), digests, seconds=seconds, patience=patience)
    read = load(plan)
    return Cost(
        tree.skills, server.start_seconds, listed["p50"], listed["page_p50"], read["p50"], server.peak_mb()
    )


def size_goals(found: dict[str, list[dict[str, Any]]]) -> list[Goal]:
    """Memory ≤ 110 MB + 2 KB a file + the kept answers; a page costs the same everywhere; listing is linear."""
    costs = [Cost(**cost) for cost in found.get(OURS, [])]
    goals = [
        at_most(
            f"peak memory, {cost.skills:,} skills",
            cost.memory,
            _BASE_MB + _REPLAY_MB + cost.skills * FILES_PER_SKILL * 2048 / MB,
            1.0,
            "MB",
            "110 MB + 2 KB a file + 128 MiB of kept answers",
        )
        for cost in costs
    ]
    if len(costs) > 1:
        least, most = costs[0], costs[-1]
        page = (f"a page of 100, {most.skills:,} skills", most.page * 1e3, least.page * 1e3)
        listed = (
            f"listing, a skill of {most.skills:,}",
            most.list / most.skills * 1e6,
            least.list / least.skills * 1e6,
        )
        goals.append(at_most(*page, _SAME, "ms", f"{least.skills:,} skills"))
        goals.append(at_most(*listed, _SAME, "µs", f"of {least.skills:,}"))
    return goals
