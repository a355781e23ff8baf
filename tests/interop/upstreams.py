"""Three programs that serve skills, two of which we did not write: a gateway's upstreams, on stdio or over HTTP.

Each has a tree of its own, so that bytes of one never pass for another's, and a port of its own, on which it can
be killed and started again: a socket that never listens holds the port meanwhile.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from interop.running import FASTMCP_SKILLS_SERVER, PEERS, Listening, fastmcp_command
from starting import skillwire_script
from trees import Tree, skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from interop.running import Node

LABELS = ("fastmcp", "ours", "typescript")


def tree_of(label: str) -> Tree:
    """Three skills; the name of one is the same at all upstreams (N1), its content is not."""
    return {
        f"{label}-pixels/SKILL.md": skill_md(f"{label}-pixels", "Größe, 大小, \U0001f40d."),
        f"{label}-pixels/assets/empty.txt": b"",
        f"{label}-pixels/assets/every-byte.bin": bytes(range(256)),
        f"{label}-refunds/SKILL.md": skill_md(f"{label}-refunds", extra="license: MIT\n"),
        f"{label}-refunds/data.json": b'{"limit": 500}\n',
        f"{label}-refunds/templates/reply.md": f"Très cher client de {label},\n".encode(),
        "shared/SKILL.md": skill_md("shared", f"As {label} does it."),
        "shared/notes.md": f"{label}'s notes\n".encode(),
    }


def changed_tree(label: str) -> Tree:
    """The same after somebody worked on it: a file differs, another is new, and so is a skill."""
    return {
        **tree_of(label),
        f"{label}-late/SKILL.md": skill_md(f"{label}-late"),
        "shared/more.md": b"more\n",
        "shared/notes.md": f"{label}'s notes, corrected\n".encode(),
    }


class Upstream:
    """One of them, and the folder that it serves. Over HTTP it runs between ``start`` and ``kill``."""

    def __init__(self, label: str, root: Path, node: Node) -> None:
        self.label = label
        self.root = write_tree(root, tree_of(label))
        commands = {
            "fastmcp": fastmcp_command(FASTMCP_SKILLS_SERVER),
            "ours": (skillwire_script(), "serve"),
            "typescript": (str(node.program), str(PEERS / "serve_typescript.mjs")),
        }
        self._command = (*commands[label], str(root))
        self._running: Listening | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Serve over HTTP, and keep the port to the end."""
        with socket.socket() as held:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", 0))
            self._port = held.getsockname()[1]
            self.start()
            try:
                yield
            finally:
                self.kill()

    def start(self) -> None:
        """Begin to serve what is in the folder now; return when it listens."""
        http = ("--http", f"127.0.0.1:{self._port}") if self.label == "ours" else ("http",)
        self._running = Listening(["env", f"PORT={self._port}", *self._command, *http])
        self._url = self._running.url

    def kill(self) -> None:
        """Take it away, without a goodbye."""
        if self._running is not None:
            self._running.kill()
            self._running.end()
            self._running = None

    def entry(self) -> dict[str, Any]:
        """What an ``mcpServers`` file says of it."""
        if self._running is not None:
            return {"url": self._url}
        command, *words = self._command
        return {"command": command, "args": words}


@contextmanager
def all_upstreams(folder: Path, node: Node, transport: str) -> Iterator[dict[str, Upstream]]:
    """All of them by label; over HTTP, running."""
    upstreams = {label: Upstream(label, folder / label, node) for label in LABELS}
    with ExitStack() as stack:
        if transport == "http":
            for upstream in upstreams.values():
                stack.enter_context(upstream.listening())
        yield upstreams
