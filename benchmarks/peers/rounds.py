"""All servers on one tree, measured by turns: short rounds, each server in each, the same requests for all."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from benchmarks.peers.answers import record
from benchmarks.peers.load import Plan
from benchmarks.peers.messages import BadAnswerError
from benchmarks.peers.packages import PLACE, MissingError
from benchmarks.peers.processes import Served, StartError
from benchmarks.peers.servers import OURS, SERVERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.peers.tree import Tree

CONNECTIONS = (1, 16, 64)
Rounds = dict[str, dict[str, list[dict[str, Any]]]]  # what was measured -> server -> one report for each round


def say(text: str) -> None:
    """Progress is for people: stderr."""
    print(text, file=sys.stderr, flush=True)


def load(plan: Plan, served: Served | None = None) -> dict[str, Any]:
    """Run the load client in a process of its own; with the server given, also what a request cost it."""
    before = served.cpu_seconds() if served else 0.0
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.peers.load"],
            input=json.dumps(asdict(plan)),
            capture_output=True,
            text=True,
            timeout=plan.seconds + 3 * plan.patience,
        )
    except subprocess.TimeoutExpired:
        raise BadAnswerError("the load client did not end in time") from None
    if done.returncode != 0:
        raise BadAnswerError(f"the load client failed: {done.stderr[-500:]}")
    found = json.loads(done.stdout)
    if "error" in found:
        raise BadAnswerError(found["error"])
    if served is not None:
        found["server_cpu"] = (served.cpu_seconds() - before) / found["asked"]
    return found


@contextmanager
def running(
    names: Sequence[str], tree: Tree, *, patience: float = 120.0
) -> Iterator[tuple[dict[str, Served], dict[str, str]]]:
    """Those servers that can be started, in an empty home; and why the others cannot.

    What ours answers is written down when it has started, for the servers behind it that replay it.
    """
    answers = PLACE / f"answers-{tree.skills}.jsonl"
    served: dict[str, Served] = {}
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        for name in names:
            server = SERVERS[name]
            try:
                command = server.command(tree.root, answers)
                served[name] = Served(command, tree.skill_uris()[0], home, patience=patience, modern=server.modern)
            except (MissingError, StartError, BadAnswerError) as error:
                if name == OURS:
                    raise SystemExit(f"{server.label} at {tree.skills:,} skills: {error}") from None
                missing[name] = str(error)
                say(f"{server.label}: left out: {error}")
                continue
            stack.callback(served[name].end)
            say(f"{server.label}: answers after {served[name].start_seconds:.2f} s")
            if name == OURS:
                record(served[name].port, tree, answers)
        yield served, missing


def plans(tree: Tree, seconds: float, connections: Sequence[int]) -> dict[str, Plan]:
    """What is measured, by name; the port is filled in for each server."""
    skills, digests = tree.skill_uris(), tree.digests()
    found = {"list": Plan(0, "skills/list", seconds=seconds)}
    for count in connections:
        found[f"get {count}"] = Plan(0, "skills/get", skills, connections=count, seconds=seconds)
        found[f"read {count}"] = Plan(
            0, "resources/read", list(digests), digests, connections=count, seconds=seconds
        )
    return found


def measure(served: dict[str, Served], wanted: dict[str, Plan], rounds: int) -> Rounds:
    """By turns: what is measured, then who, another first in each round. Round 0 warms up and is not counted."""
    found: Rounds = {name: {server: [] for server in served} for name in wanted}
    servers = list(served)
    for turn in range(rounds + 1):
        begun, first = time.perf_counter(), turn % len(servers)
        for name, plan in wanted.items():
            for server in servers[first:] + servers[:first]:
                if turn or name != "list":  # a listing has a warm-up of its own
                    report = _measured(name, server, served[server], plan)
                    if turn and report is not None:
                        found[name][server].append({"round": turn, **report})
        say(f"round {turn} of {rounds}: {time.perf_counter() - begun:.0f} s" if turn else "warmed up")
    return found


def _measured(name: str, server: str, process: Served, plan: Plan) -> dict[str, Any] | None:
    """A server that fails is left out of that round. What it still has to do is not the next one's to pay for."""
    try:
        return load(replace(plan, port=process.port, modern=SERVERS[server].modern), process)
    except BadAnswerError as error:
        say(f"{name}, {SERVERS[server].label}: {error}")
        return None
    finally:
        process.settle(step=0.1)
