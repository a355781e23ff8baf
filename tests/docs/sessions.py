"""The shell sessions of a page, run as a reader would: at a terminal, in a new folder, with an empty home.

A page is one session. Its blocks are run from top to bottom:

- ```` ```sh ```` is run by a shell at a terminal. Its first question is answered with ``y``, as are the others.
- ```` ```text ```` after it is what the screen shows. A line ``…`` stands for any lines, and ``…`` in a line for
  any characters. Lines may be wrapped at other places.
- ```` ```json title="servers.json" ```` is a file that the reader writes.
- A command that serves until it is stopped goes on until the next one or the end of the page. Port 8000 is a free
  one.
- ``<!-- not run -->`` before a block: it needs something that tests do not have, and the page says so.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from e2e.talking import PATIENCE, kill_group
from starting import folder_for_path

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r'^(<!-- not run -->\n)?```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
COLUMNS = 100
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))|[^\n]*\r(?!\n)")
_SPINNER = re.compile(r"^[\u2800-\u28ff] .*\n?", re.MULTILINE)
_QUESTION = re.compile(r"[:\]] \x1b\[0m\Z")  # bold, and the cursor stays behind it
_LASTING = re.compile(
    r"skillwire (?:serve|gateway|ui|registry(?= --|$))\b|skillwire (?!.* -- ).*--(?:watch|ask desk)\b"
)
_ASKS = re.compile(r"skillwire list localhost:\d+\n\Z")  # a server, which notices a change within seconds
_MOVING = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "HERMES_HOME", "FORCE_COLOR", "NO_COLOR", "CI")


class Block(NamedTuple):
    """One block of code of a page. ``shown`` is the text after a block of commands."""

    language: str
    title: str
    code: str
    shown: str | None
    is_run: bool


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of code of a page."""
    found = list(FENCE.finditer(page))
    blocks: list[Block] = []
    for number, match in enumerate(found):
        shown = None
        if number + 1 < len(found) and found[number + 1][2] == "text" and match[2] == "sh":
            between = page[match.end() : found[number + 1].start()]
            shown = found[number + 1][4] if not between.strip() else None
        blocks.append(Block(match[2], match[3] or "", match[4], shown, match[1] is None))
    return blocks


class Session:
    """A folder with the example skills, an empty home, and what was started there."""

    def __init__(self, folder: Path) -> None:
        self.project, self.home = folder / "project", folder / "home"
        self.home.mkdir()
        shutil.copytree(ROOT / "examples", self.project / "examples")
        shutil.copytree(ROOT / "examples/skills", self.project / "skills")
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith("XDG_") and key not in _MOVING
        }
        self.environment |= {
            "HOME": str(self.home),
            "PATH": f"{folder_for_path()}:{os.environ['PATH']}",
            "TERM": "xterm",
            "COLUMNS": str(COLUMNS),
            "USER": "ada",
            "BROWSER": "true",
        }
        self.running = ExitStack()
        self.server = self.running.enter_context(ExitStack())  # of the port
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = str(probe.getsockname()[1])

    def run(self, page: str) -> None:
        """Run every block of a page."""
        with self.running:
            for block in blocks_of(page):
                if block.language == "sh" and block.is_run:
                    self._sh(block)
                elif block.title and "/" not in block.title:
                    (self.project / block.title).write_text(self._local(block.code))

    def _local(self, text: str) -> str:
        return text.replace("8000", self.port)

    def _sh(self, block: Block) -> None:
        code = self._local(block.code)
        last = code.rstrip("\n").rpartition("\n")[2]
        lasting = _LASTING.match(last) is not None
        if lasting and self.port in last:
            self.server.close()  # the reader stopped the server before
        owner = self.server if lasting and self.port in last else self.running
        screen = owner.enter_context(_Screen(code, self.project, self.environment))
        wanted = None if block.shown is None else self._local(block.shown)
        if lasting:
            assert wanted is not None, f"say what it shows when it is ready: {code}"
            screen.wait_for(wanted)
            return
        status = screen.end()
        until = time.monotonic() + PATIENCE
        while _ASKS.match(code) and wanted and not shows(screen.text(), wanted) and time.monotonic() < until:
            screen = owner.enter_context(_Screen(code, self.project, self.environment))
            status = screen.end()
        assert status == 0 or f"exit code {status}" in code, f"{code}\n{screen.text()}"
        if wanted is not None:
            assert shows(screen.text(), wanted), f"{code}\n{screen.text()}"


def shows(screen: str, wanted: str) -> bool:
    """Return whether a screen shows what is wanted: its parts between ``…``, in their order, from start to end."""
    text = " ".join(screen.split())  # lines are wrapped at other places if paths are longer
    first, *parts = (part.strip() for part in " ".join(wanted.split()).split("…"))
    if not parts:
        return text == first
    if not text.startswith(first) or not text.endswith(parts[-1]):
        return False
    at, end = len(first), len(text) - len(parts.pop())
    for part in parts:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end


class _Screen:
    """A shell at a terminal, and what the terminal shows."""

    def __init__(self, code: str, folder: Path, environment: dict[str, str]) -> None:
        self._person, theirs = pty.openpty()
        self._seen = ""
        try:
            self._process = subprocess.Popen(
                ["sh", "-ec", code],
                cwd=folder,
                env=environment,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            )
        finally:
            os.close(theirs)

    def __enter__(self) -> _Screen:
        return self

    def __exit__(self, *_: object) -> None:
        kill_group(self._process)
        os.close(self._person)

    def text(self) -> str:
        """Return what is on the screen, without colours and without lines that were written over."""
        return _SPINNER.sub("", _ANSI.sub("", self._seen.replace("\r\n", "\n")))

    def _chunks(self) -> Iterator[None]:
        until = time.monotonic() + PATIENCE
        while True:
            ready, _, _ = select.select([self._person], [], [], max(0.0, until - time.monotonic()))
            assert ready, self.text()
            try:
                data = os.read(self._person, 65536)
            except OSError:  # no process holds the other end
                return
            if not data:
                return
            self._seen += data.decode(errors="replace")
            if _QUESTION.search(self._seen):
                os.write(self._person, b"y\n")
            yield

    def wait_for(self, wanted: str) -> None:
        """Read until the screen shows what is wanted."""
        for _ in self._chunks():
            if shows(self.text(), wanted):
                return
        raise AssertionError(f"it ended; {self.text()}")

    def end(self) -> int:
        """Read until the end, and return the exit code."""
        for _ in self._chunks():
            pass
        return self._process.wait(timeout=PATIENCE)
