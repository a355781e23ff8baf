"""A running ``skillwire gateway``, for the tests of its processes: its talk is read as it comes, with a bound."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 60
SKILLWIRE = [sys.executable, "-m", "skillwire"]


class Running:
    """A running gateway; its talk is read as it comes, with a bound."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.popen = subprocess.Popen(
            [*SKILLWIRE, "gateway", "--state", str(folder / "state"), *words],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.talk = ""

    def wait_for_talk(self, pattern: str) -> re.Match[str]:
        assert self.popen.stderr is not None
        deadline = time.monotonic() + PATIENCE
        while (match := re.search(pattern, self.talk)) is None:
            ready, _, _ = select.select([self.popen.stderr], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"waited for {pattern!r}; heard {self.talk!r}"
            data = os.read(self.popen.stderr.fileno(), 65536)
            assert data, f"it ended; heard {self.talk!r}"
            self.talk += data.decode()
        return match

    def end(self, number: int = signal.SIGTERM) -> int:
        self.popen.send_signal(number)
        self.popen.communicate(timeout=PATIENCE)
        return self.popen.returncode


@contextmanager
def running(folder: Path, *words: str) -> Iterator[Running]:
    process = Running(folder, *words)
    try:
        yield process
    finally:
        process.popen.kill()
        process.popen.communicate()
