"""The processes of the web tests: servers with a page, the desk, and agents that wait for an answer."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.talking import PATIENCE, Talking
from starting import python_command, skillwire_command

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT = ("--timeout", str(PATIENCE))
AGENT = Path(__file__).with_name("agent.py")
ODD = Path(__file__).with_name("odd_server.py")


@contextmanager
def started(*words: str, folder: Path | None = None, new: bool = False) -> Iterator[Talking]:
    """``skillwire WORDS``, until the block ends; ``new`` if signals have to reach it that cannot be handed on."""
    process = Talking(*words, folder=folder, new=new)
    try:
        yield process
    finally:
        process.popen.terminate()
        try:
            _, rest = process.popen.communicate(timeout=PATIENCE)
            print(process.talk + rest.decode())  # pytest shows it with a test that failed
        finally:
            process.popen.kill()
            process.popen.wait()


@contextmanager
def serving(root: Path, *words: str, port: int = 0) -> Iterator[str]:
    """A folder that ``skillwire serve --http`` serves; the address without a path."""
    with started("serve", str(root), "--http", str(port), *words) as process:
        yield address_of(process)


def address_of(process: Talking) -> str:
    """Where it serves, as soon as it does."""
    return process.wait_for_talk(r"listening at (http://[^/\s]+)")[1]


@contextmanager
def odd_server() -> Iterator[str]:
    """``odd_server.py``, at its address."""
    environment = {**os.environ, "PYTHONPATH": str(ODD.parents[1])}
    process = subprocess.Popen([*python_command(), str(ODD)], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def issue_token(file: Path, subject: str, see: str) -> str:
    """A token, as ``skillwire token`` makes one; what the server has to know of it goes into ``file``."""
    words = [*skillwire_command(), "token", subject, "--see", see]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
    file.write_text(done.stdout)
    return done.stderr.split()[-1]


@dataclass(frozen=True)
class Desk:
    """A running ``skillwire ui``, its one-time link, and the trees that its servers serve."""

    link: str
    state: Path
    config: Path
    trees: dict[str, Path]
    process: Talking

    @property
    def base(self) -> str:
        """The address without a path."""
        return "/".join(self.link.split("/")[:3])

    def run(self, *words: str, servers: bool = False) -> str:
        """What a verb of the command line says to the same memory, and to the same servers; it has to succeed."""
        config = ["--config", str(self.config), *WAIT] if servers else []
        if words[0] == "approve":
            review = json.loads(self.run("approvals", "show", words[1], "--json", servers=servers))
            words = (*words, "--fingerprint", review["fingerprint"])
        done = subprocess.run(
            [*skillwire_command(), *words, "--state", str(self.state), *config],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def approvals(self) -> dict[str, list[str]]:
        """What is approved, as the command line sees it: what each skill may use, by its URI."""
        found = json.loads(self.run("approvals", "--json"))["approvals"]
        return {approval["uri"]: approval["grants"] for approval in found}

    @contextmanager
    def asking(self, skill: str, label: str = "") -> Iterator[Talking]:
        """``skillwire load SKILL --ask desk``: it waits for an answer; or it has ``books`` under another label."""
        config = self.config
        if label:
            config = self.config.with_name(f"{label}.json")
            books = json.loads(self.config.read_text())["mcpServers"]["books"]
            config.write_text(json.dumps({"mcpServers": {label: books}}))
        words = ["load", skill, "--ask", "desk", "--state", str(self.state), "--config", str(config), *WAIT]
        with started(*words) as process:
            yield process

    @contextmanager
    def agent(self, skill: str) -> Iterator[subprocess.Popen[str]]:
        """A small agent that wants a skill; its loop goes on when somebody said yes at the desk."""
        words = [*python_command(), str(AGENT), str(self.state), str(self.config), skill]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


@contextmanager
def desk_over(
    folder: Path, servers: dict[str, object], trees: dict[str, Path] | None = None, *more: str, port: int = 0
) -> Iterator[Desk]:
    """``skillwire ui`` with an ``mcpServers`` file of ``servers``, a state of its own, and ``more`` words."""
    config, state = folder / "servers.json", folder / "state"
    config.write_text(json.dumps({"mcpServers": servers}))
    words = [
        "--config",
        str(config),
        "--state",
        str(state),
        "--port",
        str(port),
        "--no-open",
        "--as",
        "ada",
        *more,
    ]
    with started("ui", *words, folder=folder) as process:
        link = process.wait_for_talk(r"(http://127\.0\.0\.1:\d+/\S+)")[1]
        yield Desk(link, state, config, trees or {}, process)
