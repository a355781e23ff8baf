"""A running ``skillwire gateway``, for the tests of its processes: its talk is read as it comes, with a bound."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from e2e.talking import Talking

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 60
SKILLWIRE = [sys.executable, "-m", "skillwire"]


class Running(Talking):
    """A running gateway."""

    def __init__(self, folder: Path, *words: str) -> None:
        super().__init__("gateway", "--state", str(folder / "state"), *words, folder=folder)

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
