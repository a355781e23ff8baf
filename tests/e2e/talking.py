"""A running ``skillwire``: what it writes is read as it comes, with a bound, and it never outlives its test."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from starting import skillwire_command

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 240  # a busy machine takes its time


def kill_group(popen: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads its group, and whatever it started in it; close its pipes."""
    with suppress(ProcessLookupError):
        os.killpg(popen.pid, signal.SIGKILL)
    popen.wait()
    for stream in (popen.stdin, popen.stdout, popen.stderr):
        if stream is not None:
            with suppress(OSError):  # what could not be written is lost
                stream.close()


class Talking:
    """The process of ``skillwire WORDS``: a fork, or a new one where it matters how it starts.

    Use it as a context manager. The end of the block kills the process and its group, whatever happened in it.
    """

    def __init__(
        self,
        *words: str,
        folder: Path | None = None,
        new: bool = False,
        env: dict[str, str] | None = None,
    ) -> None:
        command = [sys.executable, "-m", "skillwire"] if new else skillwire_command()
        self.popen = subprocess.Popen(
            [*command, *words],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.talk = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        kill_group(self.popen)

    def wait_for_talk(self, pattern: str) -> re.Match[str]:
        """Read stderr until it holds ``pattern``."""
        assert self.popen.stderr is not None
        deadline = time.monotonic() + PATIENCE
        while (match := re.search(pattern, self.talk)) is None:
            ready, _, _ = select.select([self.popen.stderr], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"waited for {pattern!r}; heard {self.talk!r}"
            data = os.read(self.popen.stderr.fileno(), 65536)
            assert data, f"it ended; heard {self.talk!r}"
            self.talk += data.decode()
        return match

    def wait(self) -> tuple[int, str]:
        """Wait for its end: the exit code and its stdout. What it wrote to stderr is added to ``talk``."""
        out, err = self.popen.communicate(timeout=PATIENCE)
        self.talk += err.decode()
        return self.popen.returncode, out.decode()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for its end: the exit code."""
        self.popen.send_signal(number)
        return self.wait()[0]


def gateway(folder: Path, *words: str) -> Talking:
    """A running ``skillwire gateway`` whose state is in ``folder``."""
    return Talking("gateway", "--state", str(folder / "state"), *words, folder=folder)
