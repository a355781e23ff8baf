"""Who is measured: one row for each server, with what it is called in the report and how it is started."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers.packages import HERE, install_fastmcp, install_node_peers

if TYPE_CHECKING:
    from collections.abc import Callable

OURS, FLOOR = "ours", "floor"
SKILLWIRE = str(Path(sys.executable).with_name("skillwire"))


@dataclass(frozen=True)
class Server:
    """A server that can be started on a tree."""

    label: str
    command: Callable[[Path, Path], list[str]]  # of the tree, and of what our server answered
    modern: bool = True
    replays: bool = False  # sends what ours has answered, so ours has to be started first


def ours(root: Path, *words: str) -> list[str]:
    """``skillwire serve`` as a person would start it."""
    return [SKILLWIRE, "serve", str(root), "--http", "0", *words]


def _module(name: str, *words: str) -> Callable[[Path, Path], list[str]]:
    return lambda _root, answers: [sys.executable, "-m", f"benchmarks.peers.{name}", str(answers), *words]


def _node(script: str) -> Callable[[Path, Path], list[str]]:
    def command(root: Path, _answers: Path) -> list[str]:
        place = install_node_peers()
        return [str(place / "node_modules" / ".bin" / "node"), str(place / script), str(root)]

    return command


def _fastmcp(root: Path, _answers: Path) -> list[str]:
    return [str(install_fastmcp()), str(HERE / "fastmcp_server.py"), str(root)]


SERVERS: dict[str, Server] = {
    OURS: Server("skillwire", lambda root, _answers: ours(root)),
    "uncached": Server("skillwire, each answer made again", lambda root, _answers: ours(root, "--replay", "0")),
    FLOOR: Server("floor: bare ASGI", _module("floor"), replays=True),
    "starlette": Server("bare Starlette", _module("floor", "starlette"), replays=True),
    "python-sdk": Server("official Python SDK 2.3, from a dict", _module("python_sdk"), replays=True),
    "typescript": Server("official TypeScript SDK 2.4.0", _node("typescript.mjs")),
    "fastmcp": Server("FastMCP 4.1.2", _fastmcp),
    "ext-skills": Server("ext-skills 0.14.0", _node("ext_skills.mjs")),
}
