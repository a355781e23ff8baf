"""Peers that are installed or a reason why not; servers that run once per worker; a summary by peer at the end.

Nothing here writes into the repository: trees, homes and reports live in pytest's temporary folders.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest
from mcp.client import session

from interop import honest
from interop.cells import PROPERTY, Cell, check
from interop.explained import EXPLANATIONS
from interop.matrix import conclude
from interop.running import (
    BARE_SERVER,
    EXAMPLES,
    FAST_AGENT,
    FASTMCP_SERVER,
    FASTMCP_SKILLS_SERVER,
    PEERS,
    Era,
    Listening,
    Node,
    Served,
    Transport,
    fastmcp_command,
)
from starting import python_command, skillwire_script
from trees import write_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from interop.cells import Record, Role
    from interop.running import PeerServer, Serve
    from trees import Tree

# The SDK's client waits 10 s for a modern server and then assumes a legacy one. A cold start of Node or FastMCP
# on a busy machine takes longer.
session.DISCOVER_TIMEOUT_SECONDS = 60.0

WRONG = pytest.StashKey[list[str]]()
TREES: dict[str, Callable[[], Tree]] = {
    "flat": honest.flat_tree,
    "disputed": honest.disputed_tree,
    "nasty": honest.nasty_tree,
    "wide": honest.wide_tree,
    "limits": honest.limits_tree,
    "bom": honest.bom_tree,
    "kept": honest.kept_tree,
    "spoiled": honest.spoiled_tree,
    "declined": honest.declined_tree,
    "loose": honest.loose_tree,
    "marked-and-kept": lambda: {**honest.bom_tree(), **honest.kept_tree()},
    "metadata": lambda: honest.lenient_tree(honest.LOOSE_METADATA),
    "tools": lambda: honest.lenient_tree(honest.LOOSE_TOOLS),
}

NODE_SERVERS = {
    "typescript": "serve_typescript.mjs",
    "ext-skills": "serve_ext_skills.mjs",
    "ext-skills-0.12": "serve_ext_skills_0_12.mjs",
    "bare-typescript": "serve_bare.mjs",
}
FASTMCP_SERVERS = {"fastmcp": (), "fastmcp-old": ("old",)}
BARE_SERVERS = {
    "bare-python": (),
    "index": ("index",),
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


@pytest.fixture(scope="session")
def fast_agent() -> Path:
    """The Python of fast-agent's own environment."""
    if not (FAST_AGENT / "installed").exists():
        pytest.skip("FAST-AGENT IS NOT INSTALLED: it needs Python 3.12 or newer; then run `make test-interop`")
    return FAST_AGENT / "bin" / "python"


def named_peers() -> dict[str, str]:
    """The Node peers and the versions that these tests describe; one may have an alias (``npm:NAME@VERSION``)."""
    named = json.loads((PEERS / "package.json").read_text())["dependencies"]
    return {name: wanted.rpartition("@")[2] for name, wanted in named.items()}


def installed_peers() -> dict[str, str]:
    """The Node peers and the versions that are there."""
    folder = PEERS / "node_modules"
    return {name: json.loads((folder / name / "package.json").read_text())["version"] for name in named_peers()}


@pytest.fixture(scope="session")
def listen() -> Iterator[Callable[..., str]]:
    """``listen("PROGRAM", "WORD")``: start a server, say where it listens, end it when the tests end."""
    running: list[Listening] = []

    def start(*command: str) -> str:
        running.append(Listening(command))
        return running[-1].url

    yield start
    for server in running:
        server.ask_to_end()
    for server in running:
        server.end()


@pytest.fixture(scope="session")
def tree_on_disk(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``tree_on_disk("nasty")``: a tree by name, written once."""

    @cache
    def write(name: str) -> Path:
        return EXAMPLES if name == "examples" else write_tree(tmp_path_factory.mktemp(name), TREES[name]())

    return write


@pytest.fixture(scope="session")
def serve(listen: Callable[..., str], tree_on_disk: Callable[[str], Path]) -> Serve:
    """``serve("nasty")``: a tree by name, served by ``skillwire serve`` until the tests end."""

    @cache
    def start(name: str) -> Served:
        root = tree_on_disk(name)
        command = (skillwire_script(), "serve", str(root))
        return Served(honest.read_tree(root), listen(*command, "--http", "127.0.0.1:0"), command)

    return start


@pytest.fixture(scope="session")
def peer_server(
    request: pytest.FixtureRequest, listen: Callable[..., str], tree_on_disk: Callable[[str], Path]
) -> PeerServer:
    """``peer_server("typescript", "flat")``: a tree by name, served by a program that we did not write."""

    def command_of(name: str, root: str) -> tuple[str, ...]:
        if name in FASTMCP_SERVERS:
            return fastmcp_command(FASTMCP_SKILLS_SERVER, root, *FASTMCP_SERVERS[name])
        if name in BARE_SERVERS:
            return (*python_command(), BARE_SERVER, root, *BARE_SERVERS[name])
        node: Node = request.getfixturevalue("node")
        return (str(node.program), str(PEERS / NODE_SERVERS[name]), root)

    @cache
    def start(name: str, tree: str) -> Served:
        root = tree_on_disk(tree)
        command = command_of(name, str(root))
        return Served(honest.read_tree(root), listen(*command, "http"), command)

    return lambda name, tree="flat": start(name, tree)


@pytest.fixture(scope="session")
def generated_server(node: Node, listen: Callable[..., str]) -> PeerServer:
    """``generated_server("typescript")``: one skill that a Node peer generates on each read; it has no tree."""

    @cache
    def start(name: str) -> Served:
        command = (str(node.program), str(PEERS / "serve_generated.mjs"), name)
        return Served({}, listen(*command, "http"), command)

    return start


@pytest.fixture(scope="session")
def attached(listen: Callable[..., str]) -> Served:
    """A FastMCP server with a tool, a resource and a prompt of its own, to which the examples are attached."""
    command = fastmcp_command(FASTMCP_SERVER, str(EXAMPLES))
    return Served(honest.read_tree(EXAMPLES), listen(*command, "http"), command)


@pytest.fixture
def cell(record_property: Callable[[str, object], None]) -> Record:
    """``cell("server", "inspector", "http", "modern", "skills")``: the cells of the matrix that a test stands for.

    ``notes`` says by feature which explanation goes with it.
    """

    def record(
        role: Role,
        peer: str,
        transport: Transport,
        era: Era,
        *features: str,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        for feature in features:
            cell = Cell(role, peer, transport, era, feature, (notes or {}).get(feature, ""))
            check(cell, EXPLANATIONS)
            record_property(PROPERTY, list(cell))

    return record


@pytest.fixture(params=["modern", "legacy"])
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> Transport:
    return request.param


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--matrix",
        choices=["check", "write"],
        help="compare docs/explanation/interop.md with this run, or write it",
    )


@pytest.hookimpl(tryfirst=True)  # before the summary is printed
def pytest_sessionfinish(session: pytest.Session) -> None:
    """The matrix of the whole run; with several workers, where they come together."""
    if not hasattr(session.config, "workerinput"):
        session.config.stash[WRONG] = conclude(session)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
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
    for line in config.stash.get(WRONG, []):
        terminalreporter.write_line(f"MATRIX: {line}", red=True)
