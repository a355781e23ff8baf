"""Counts the files of ours that one request touches, and prints the walk: ``.venv/bin/python tests/walks.py``.

Three requests: ``resources/read`` on ``serve``, a cold read through the gateway, and ``load_skill`` in a host.
Each runs in a process of its own in which every call is recorded. The servers behind the gateway and the host are
other processes, so they do not count. First requests, which are not recorded, do what is done only once. Of three
recorded requests the shortest counts: during the others a background task may have run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

ROOT = Path(__file__).parents[1]
SOURCE = str(ROOT / "src" / "skillwire") + os.sep
EXAMPLES = ROOT / "examples" / "skills"
GOALS = {"resources/read on serve": 9, "a cold read through the gateway": 14, "load_skill in a host": 14}
VERSION = "2026-07-28"


class Walk:
    """The calls between ``start`` and ``stop``, as a list of files without repetitions side by side."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self._is_on = False
        sys.setprofile(self._record)
        threading.setprofile(self._record)

    def start(self, *_: object) -> None:
        self.steps = []
        self._is_on = True

    def stop(self) -> list[str]:
        self._is_on = False
        return self.steps

    def _record(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if self._is_on and event == "call" and name.startswith(SOURCE):
            file = name.removeprefix(SOURCE)
            if not self.steps or self.steps[-1] != file:
                self.steps.append(file)


def write(path: str, steps: list[str]) -> None:
    Path(path).write_text(json.dumps(steps))


def shortest(walks: list[list[str]]) -> list[str]:
    return min(walks, key=lambda steps: (len(set(steps)), len(steps)))


def run_command(path: str, words: list[str]) -> None:
    """Run the command line; SIGUSR1 begins to record, SIGUSR2 writes the walk."""
    from skillwire.cli.main import run

    walk = Walk()
    signal.signal(signal.SIGUSR1, walk.start)
    signal.signal(signal.SIGUSR2, lambda *_: write(path, walk.stop()))
    sys.exit(run(words))


def run_host(path: str, url: str) -> None:
    """Load a skill, and then others while recording."""
    import anyio

    from skillwire import Policy, Rule, SkillHost

    async def main() -> list[list[str]]:
        with TemporaryDirectory() as state:
            policy = Policy([Rule("allow")])
            async with SkillHost.open(servers={"acme": url}, state=state, policy=policy) as host:
                await host.settle()
                await host.load_skill("csv-profile")
                walk, walks = Walk(), list[list[str]]()
                for name in ("brand-slides", "incident-review", "commit-messages"):
                    walk.start()
                    await host.load_skill(name)
                    walks.append(walk.stop())
                return walks

    write(path, shortest(anyio.run(main)))


@contextmanager
def started(*command: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server process, and its address, which it prints to stderr."""
    with subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stderr is not None
        try:
            address = next(line.split()[2] for line in process.stderr if line.startswith("listening at "))
            if "gateway" in command:
                next(line for line in process.stderr if line.startswith("serving "))
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield process, address
        finally:
            process.terminate()


def read(url: str, uri: str) -> None:
    """One ``resources/read``, as a client of the stateless era sends it."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "walks", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri, "_meta": meta}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "resources/read",
        "Mcp-Name": uri,
    }
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            answer = response.read()
    except HTTPError as error:
        answer = error.read()
    assert b'"contents"' in answer, answer


def walk_of_reads(folder: Path, prefix: str, *words: str) -> list[str]:
    path, walks = folder / "walk.json", list[list[str]]()
    with started(__file__, "command", str(path), *words) as (process, url):
        # Several, until the gateway has reported on its start, which is no part of a request.
        for name in ("csv-profile", "release"):
            read(url, f"skill://{prefix}{name}/SKILL.md")
        for name in ("brand-slides", "incident-review", "commit-messages"):
            path.unlink(missing_ok=True)
            process.send_signal(signal.SIGUSR1)
            read(url, f"skill://{prefix}{name}/SKILL.md")
            process.send_signal(signal.SIGUSR2)
            while not path.exists() or not path.read_text():
                os.sched_yield()
            walks.append(json.loads(path.read_text()))
    return shortest(walks)


def main() -> None:
    with (
        TemporaryDirectory() as name,
        started("-m", "skillwire", "serve", str(EXAMPLES), "--http", "0") as (_, behind),
    ):
        folder = Path(name)
        config = folder / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"acme": {"url": behind}}}))
        host = folder / "host.json"
        subprocess.run([sys.executable, __file__, "host", str(host), behind], check=True)
        serve = ("serve", str(EXAMPLES), "--http", "0", "--no-watch")
        gateway = ("gateway", "--config", str(config), "--http", "0", "--state", str(folder / "state"))
        walks = {
            "resources/read on serve": walk_of_reads(folder, "", *serve),
            "a cold read through the gateway": walk_of_reads(folder, "acme/", *gateway),
            "load_skill in a host": json.loads(host.read_text()),
        }
    for title, steps in walks.items():
        files = list(dict.fromkeys(steps))
        print(f"{title}: {len(files)} files (goal {GOALS[title]}), {len(steps) - 1} jumps between files")
        print("\n".join(f"  {file}" for file in files))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["command", path, *words]:
            run_command(path, words)
        case ["host", path, url]:
            run_host(path, url)
        case _:
            main()
