"""Servers as processes: started on the loopback, heard until they listen, weighed, and ended."""

from __future__ import annotations

import os
import re
import subprocess
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotHeardError
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from benchmarks.peers.messages import Line, Speaking, shake_hands

if TYPE_CHECKING:
    from collections.abc import Sequence

MB = 1_000_000
_LISTENING = re.compile(r"listening at http://127\.0\.0\.1:(\d+)/mcp")
_HOME = {"HOME": "", "XDG_CACHE_HOME": "cache", "XDG_STATE_HOME": "state"}  # what is remembered, and where
_TICKS = os.sysconf("SC_CLK_TCK")


class StartError(Exception):
    """A server did not get as far as listening."""


class Served:
    """A running server. Its time to the first answer counts from before its process was started."""

    def __init__(
        self,
        command: Sequence[str],
        first_uri: str,
        home: str,
        *,
        patience: float = 120.0,
        modern: bool = True,
    ) -> None:
        begun = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, **{name: os.path.join(home, place) for name, place in _HOME.items()}},
        )
        self._heard: Future[int] = Future()
        self._hearing = Thread(target=self._hear, daemon=True)
        self._hearing.start()
        try:
            self.port = self._heard.result(timeout=patience)
            line = Line(Speaking(self.port) if modern else shake_hands(self.port), patience)
            line.ask("skills/get", uri=first_uri)
            line.close()
        except (NotHeardError, OSError) as error:
            self.end()
            raise StartError(f"did not answer within {patience:.0f} s") from error
        except BaseException:
            self.end()
            raise
        self.start_seconds = time.perf_counter() - begun

    def peak_mb(self) -> float:
        """The most memory that its processes have held, together."""
        return sum(_status(process, "VmHWM") for process in self._processes())

    def resident_mb(self) -> float:
        """What they hold now."""
        return sum(_status(process, "VmRSS") for process in self._processes())

    def cpu_seconds(self) -> float:
        """The processor time that they have used, together."""
        return sum(_cpu(process) for process in self._processes())

    def settle(self, patience: float = 60.0, step: float = 0.3) -> None:
        """Wait until it has nothing left to do of its own accord."""
        deadline, before = time.monotonic() + patience, -1.0
        while (now := self.cpu_seconds()) > before + 0.02:
            if time.monotonic() > deadline:
                raise StartError(f"still at work after {patience:.0f} s without a request")
            before = now
            time.sleep(step)

    def end(self) -> None:
        """Leave nothing behind."""
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._hearing.join(timeout=20)
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _processes(self) -> list[int]:
        """The process and what it has started, and those in turn."""
        found = [self._process.pid]
        for process in found:  # grows while it is walked
            for tasks in Path(f"/proc/{process}/task").glob("*/children"):
                found += [int(child) for child in tasks.read_text().split()]
        return found

    def _hear(self) -> None:
        assert self._process.stderr is not None
        said: list[str] = []
        for line in self._process.stderr:  # to the end, or the server would wait for somebody to read
            said = [*said[-20:], line]
            found = _LISTENING.search(line)
            if found and not self._heard.done():
                self._heard.set_result(int(found[1]))
        if not self._heard.done():
            self._heard.set_exception(StartError(f"ended before it listened:\n{''.join(said)}"))


def _status(process: int, name: str) -> float:
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:  # it has just ended
        return 0.0
    found = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return 0.0 if found is None else int(found[1]) * 1024 / MB


def _cpu(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS
