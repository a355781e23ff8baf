"""Kills a publisher, its registry, or both at random moments, and checks after each kill that nothing is half.

    .venv/bin/python tests/registry/kills.py                      # 200 kills on SQLite, 200 on PostgreSQL
    .venv/bin/python tests/registry/kills.py --rounds 20 --engine sqlite --seed 7

Each round changes a skill, publishes it with ``skillwire publish``, and kills with SIGKILL some time after the
publisher has shown its plan, which is when it begins to upload. After the kill:

- ``fsck`` finds nothing, and every listed version has exactly the bytes of one publication;
- a publication that was reported is listed;
- a repeat of the same command finishes: one version has this content, and it is ``stable``.

The processes are forks of one that has imported everything (``starting``). Each prints the number of its process
first, so that the signal goes to it and not to its stand-in.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from databases import restarting_server
from registry.replicas import free_port
from registry.stage import operator
from skillwire.registry.model import SkillRef
from skillwire.registry.schema import SCHEMA
from skillwire.registry.store import SqlRegistryStore
from skillwire.skill import digest_of
from skillwire.store.place import is_url, open_database
from starting import python_command, skillwire_command
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillwire.registry.contract import RegistryStore

ROUNDS: Final = 200
_SKILLS: Final = 5
_FILES: Final = 24
_START: Final = """
import os, sys
from skillwire.cli.main import run
print(os.getpid(), flush=True)
sys.exit(run(sys.argv[1:]))
"""


class Running:
    """``skillwire`` with ``words``, as a process that can be killed."""

    def __init__(self, environment: dict[str, str], *words: str) -> None:
        self._popen = subprocess.Popen(
            [*python_command(), "-c", _START, *words],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self.stdout, self.stderr = self._popen.stdout, self._popen.stderr
        self.pid = int(self.stdout.readline())

    def document(self) -> dict[str, Any]:
        """Wait for a JSON document on stdout."""
        text = ""
        while not text.rstrip().endswith("}"):
            line = self.stdout.readline()
            assert line, f"it ended: {self.stderr.read()}"
            text += line
        return json.loads(text)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def end(self) -> tuple[int, str]:
        """Wait until it has ended; its exit code, and the rest of stdout."""
        output, _ = self._popen.communicate(timeout=120)
        return self._popen.returncode, output


@dataclass
class Tally:
    """What was killed, and how far the publication had come."""

    killed: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    compared: int = 0

    def __str__(self) -> str:
        """A report."""
        killed, found = (
            ", ".join(f"{words} {count}" for words, count in sorted(each.items()))
            for each in (self.killed, self.found)
        )
        return (
            f"killed: {killed}\nthen stored: {found}\n"
            f"{self.compared} versions compared with what was published; fsck found nothing after any kill"
        )


class Story:
    """A registry at ``place``, which is a folder or a URL, and everything that was published to it."""

    def __init__(self, place: str, folder: Path, seed: int) -> None:
        self.tally = Tally()
        self._database = place if is_url(place) else f"{place}/registry.sqlite3"
        where = ["--database", place, "--state", str(folder / "server")] if is_url(place) else ["--state", place]
        self._where = where
        self._folder = folder
        self._chance = random.Random(seed)
        self._port = free_port()
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "SKILLWIRE_"))}
        self._environment = {**kept, "HOME": str(folder)}
        self._contents: dict[str, list[dict[str, bytes]]] = {}  # of each publication of a skill, in its order
        self._seconds = 0.05

    async def run(self, rounds: int, tell: Callable[[str], object] = lambda _: None) -> Tally:
        """Kill so many times."""
        server, token = self._serve()
        self._environment |= {
            "SKILLWIRE_REGISTRY": f"http://127.0.0.1:{self._port}",
            "SKILLWIRE_TOKEN": str(token),
        }
        try:
            self._command("registry", "namespace", "acme")
            for number in range(rounds):
                server = await self._round(number, server)
                if (number + 1) % 20 == 0:
                    tell(f"{number + 1} of {rounds}")
            assert json.loads(self._command("registry", "fsck", *self._where, "--json")) == {"faults": []}
        finally:
            server.kill()
            server.end()
        return self.tally

    async def _round(self, number: int, server: Running) -> Running:
        name = f"skill-{number % _SKILLS}"
        earlier = self._contents.setdefault(name, [])
        files = self._changed(name, number, earlier[-1] if earlier else {})
        folder = write_tree(self._folder / "skills" / name, files)
        command = ["publish", str(folder), "--namespace", "acme", "--yes", "--json"]
        publisher = Running(self._environment, *command)
        publisher.stderr.readline()  # the plan is shown just before the upload
        await anyio.sleep(self._seconds * self._chance.uniform(0, 2))
        victims = self._chance.choice(("publisher", "registry", "both"))
        self.tally.killed[victims] += 1
        if victims != "registry":
            publisher.kill()
        if victims != "publisher":
            server.kill()
            server.end()
        code, _ = publisher.end()
        stored = await self._check(name, files)
        self.tally.found[stored] += 1
        assert stored == "the version" or code != 0
        self._seconds *= 0.8 if stored == "the version" else 1.1  # so that most kills come during the upload
        if victims != "publisher":
            server, _ = self._serve()
        done = json.loads(self._command(*command))
        assert done["version"] == f"0.1.{len(earlier)}"
        assert await self._check(name, files) == "the version"
        earlier.append(files)
        return server

    def _changed(self, name: str, number: int, files: dict[str, bytes]) -> dict[str, bytes]:
        """The same files, half of them with new bytes."""
        changed = {f"notes/{each}.md": self._chance.randbytes(10_000) for each in range(number % 2, _FILES, 2)}
        return {**files, "SKILL.md": skill_md(name, body=f"Round {number}.\n"), **changed}

    async def _check(self, name: str, files: dict[str, bytes]) -> str:
        """Check that everything is whole; how much of the newest publication is stored."""
        store = SqlRegistryStore(await open_database(self._database, SCHEMA))
        try:
            faults = [fault async for fault in store.check()]
            assert faults == [], faults
            history = await store.history(operator().identity, f"acme/{name}")
            published = [*self._contents[name], files]
            is_listed = len(history) == len(published)
            assert is_listed or len(history) == len(published) - 1
            for line, content in zip(reversed(history), published, strict=is_listed):
                await self._compare(store, SkillRef(f"acme/{name}", version=line.version), content)
            if history:
                assert history[0].channels == ("stable",)
                await self._compare(store, SkillRef(f"acme/{name}"), published[len(history) - 1])
            if is_listed:
                return "the version"
            new = set(files.values()) - {data for content in self._contents[name] for data in content.values()}
            missing = await store.missing(operator(), "acme", [digest_of(data) for data in new])
            if not missing:
                return "all its files"
            return "nothing" if len(missing) == len(new) else "some of its files"
        finally:
            await store.close()

    async def _compare(self, store: RegistryStore, ref: SkillRef, files: dict[str, bytes]) -> None:
        who = operator().identity
        release = await store.release(who, ref)
        assert release is not None
        assert {file.path for file in release.manifest.files} == files.keys()
        for path, data in files.items():
            assert await store.read(who, ref, path) == data
        self.tally.compared += 1

    def _serve(self) -> tuple[Running, str | None]:
        """Start the registry; also the token of the first administrator."""
        words = ["registry", "--http", f"127.0.0.1:{self._port}", *self._where, "--json"]
        server = Running(self._environment, *words)
        return server, server.document()["token"]

    def _command(self, *words: str) -> str:
        done = subprocess.run(
            [*skillwire_command(), *words], env=self._environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def main() -> None:
    """Kill, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--engine", choices=("sqlite", "postgres"), action="append")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for engine in arguments.engine or ("sqlite", "postgres"):
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="kills-") as name, ExitStack() as stack:
            folder = Path(name)
            place = str(folder / "registry")
            if engine == "postgres":
                place = stack.enter_context(restarting_server()).url
            story = Story(place, folder, arguments.seed)
            tally = anyio.run(story.run, arguments.rounds, lambda words: print(words, file=sys.stderr, flush=True))
        print(f"{engine}, {arguments.rounds} rounds in {time.monotonic() - begun:.0f} s, seed {arguments.seed}")
        print(tally, flush=True)


if __name__ == "__main__":
    main()
