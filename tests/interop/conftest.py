"""Peers that are installed or a reason why not; servers that run once per worker; a summary by peer at the end.

Nothing here writes into the repository: trees, homes and reports live in pytest's temporary folders.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from interop import honest
from interop.running import EXAMPLES, FASTMCP_SERVER, PEERS, SKILLWIRE, Era, Listening, Node, Served, Transport
from trees import write_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from interop.running import Serve
    from trees import Tree

TREES: dict[str, Callable[[], Tree]] = {
    "nasty": honest.nasty_tree,
    "wide": honest.wide_tree,
    "bom": honest.bom_tree,
    "kept": honest.kept_tree,
    "spoiled": honest.spoiled_tree,
    "metadata": lambda: honest.lenient_tree("metadata:\n  version: 1.5\n  beta: true\n"),
    "tools": lambda: honest.lenient_tree("allowed-tools: [Read, Grep]\n"),
}


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    program = PEERS / "node_modules" / "node" / "bin" / "node"
    if not (PEERS / "node_modules" / ".installed").exists() or not program.exists():
        reason = "NODE PEERS ARE NOT INSTALLED: " + (
            "run `make test-interop`" if shutil.which("npm") else "npm is missing; install Node.js"
        )
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    assert installed_peers() == named_peers(), "other versions behave otherwise: run `make test-interop`"
    return Node(program, tmp_path_factory.mktemp("home"))


def named_peers() -> dict[str, str]:
    """The Node peers and the versions that these tests describe."""
    return json.loads((PEERS / "package.json").read_text())["dependencies"]


def installed_peers() -> dict[str, str]:
    """The Node peers and the versions that are there."""
    folder = PEERS / "node_modules"
    return {name: json.loads((folder / name / "package.json").read_text())["version"] for name in named_peers()}


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """``serve("nasty")``: a tree by name, served by ``skillwire serve`` until the tests end."""
    running: list[Listening] = []

    @cache
    def start(name: str) -> Served:
        root = EXAMPLES if name == "examples" else write_tree(tmp_path_factory.mktemp(name), TREES[name]())
        command = (SKILLWIRE, "serve", str(root))
        running.append(Listening([*command, "--http", "127.0.0.1:0"]))
        return Served(honest.read_tree(root), running[-1].url, command)

    yield start
    for server in running:
        server.ask_to_end()
    for server in running:
        server.end()


@pytest.fixture(scope="session")
def attached() -> Iterator[Served]:
    """A FastMCP server with a tool, a resource and a prompt of its own, to which the examples are attached."""
    command = (sys.executable, FASTMCP_SERVER, str(EXAMPLES))
    server = Listening([*command, "http"])
    try:
        yield Served(honest.read_tree(EXAMPLES), server.url, command)
    finally:
        server.end()


@pytest.fixture(params=["modern", "legacy"])
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> Transport:
    return request.param


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which peer was met, and how it went."""
    counts: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed", "error", "skipped", "xfailed", "xpassed"):
        for report in terminalreporter.stats.get(outcome, []):
            module = report.nodeid.partition("::")[0].rpartition("/")[2]
            counts.setdefault(module.removeprefix("test_").removesuffix(".py"), Counter())[outcome] += 1
    if not counts:
        return
    terminalreporter.section("interoperability")
    versions = {**named_peers(), "fastmcp": version("fastmcp"), "mcp": version("mcp")}
    terminalreporter.write_line("with " + ", ".join(f"{name} {number}" for name, number in versions.items()))
    for peer, outcomes in sorted(counts.items()):
        terminalreporter.write_line(
            f"{peer:<20} " + ", ".join(f"{n} {outcome}" for outcome, n in outcomes.items())
        )
