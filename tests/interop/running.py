"""Real processes: our server, and the peers' programs. Every wait has a bound; whatever was started is ended."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING, Literal

from starting import python_command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trees import Tree

    Serve = Callable[[str], "Served"]
    PeerServer = Callable[..., "Served"]

Era = Literal["modern", "legacy"]
Transport = Literal["stdio", "http"]

VERSIONS: dict[Era, str] = {"modern": "2026-07-28", "legacy": "2025-11-25"}
HERE = Path(__file__).parent
PEERS = HERE / "peers"
FASTMCP_SERVER = str(HERE / "fastmcp_server.py")
FASTMCP_SKILLS_SERVER = str(HERE / "fastmcp_skills_server.py")
FAST_AGENT = HERE.parents[1] / ".venv" / "fast-agent"
CONFORMANCE_SERVER = str(HERE / "conformance_server.py")
BARE_SERVER = str(HERE / "bare_server.py")
CONFORMANCE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
CONFORMANCE_ERAS: dict[Era, list[str]] = {"modern": [], "legacy": ["--spec-version", "2025-11-25", "--force"]}
EXAMPLES = HERE.parents[1] / "examples" / "skills"

_FASTMCP = ("fastmcp.server.providers.skills", "fastmcp.skills.extension")
_PATIENCE = 60.0
_LISTENING = re.compile(r"listening at (http://\S+)")


def fastmcp_command(script: str, *words: str) -> tuple[str, ...]:
    """A script on FastMCP, which takes seconds to import: forked off a process that has it."""
    return (*python_command(*_FASTMCP), script, *words)


@dataclass(frozen=True)
class Served:
    """A tree that a running server serves over HTTP, and the command that serves it on stdio."""

    tree: Tree
    url: str
    command: tuple[str, ...]

    def target(self, transport: Transport) -> list[str]:
        """The words that tell a program where the server is."""
        return [self.url] if transport == "http" else list(self.command)


class Listening:
    """A server's process. It says itself where it listens."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8"
        )
        self._url: Future[str] = Future()
        self._hearing = Thread(target=self._hear, daemon=True)
        self._hearing.start()

    @property
    def url(self) -> str:
        """Where it listens, as soon as it says so."""
        return self._url.result(timeout=_PATIENCE)

    def ask_to_end(self) -> None:
        """Send the signal; ``end`` waits."""
        self._process.terminate()

    def kill(self) -> None:
        """Take it away, without a goodbye; ``end`` tidies up."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Leave nothing behind."""
        self.ask_to_end()
        try:
            self._process.wait(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._hearing.join(timeout=_PATIENCE)
        self._stderr.close()

    @property
    def _stderr(self) -> IO[str]:
        assert self._process.stderr is not None
        return self._process.stderr

    def _hear(self) -> None:
        said: list[str] = []
        for line in self._stderr:  # to the end, or the server would wait for somebody to read
            said.append(line)
            found = _LISTENING.search(line)
            if found and not self._url.done():
                self._url.set_result(found[1])
        if not self._url.done():
            self._url.set_exception(AssertionError(f"the server ended before it listened:\n{''.join(said)}"))


@dataclass(frozen=True)
class Node:
    """The Node that the peers need, which comes with them."""

    program: Path
    home: Path

    def run(self, script: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a script of ``peers``; its settings and logs go to a home of its own."""
        return subprocess.run(
            [str(self.program), str(PEERS / script), *words],
            cwd=self.home,
            env={**os.environ, "HOME": str(self.home), "NO_COLOR": "1", **env},
            capture_output=True,
            encoding="utf-8",
            timeout=_PATIENCE,
        )
