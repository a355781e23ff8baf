"""A process of ours over HTTP, for as long as a block takes; whatever it says is read, so that it never waits."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE = 120.0
_LISTENING = "listening at"


class Running(NamedTuple):
    """Where it listens, and which process it is."""

    url: str
    pid: int


@contextmanager
def running(*words: str, ready: str = _LISTENING) -> Iterator[Running]:
    """``skillwire WORDS --http 0``, from when it has said ``ready``."""
    command = [sys.executable, "-m", "skillwire", *words, "--http", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url: Future[str] = Future()
    hearing = Thread(target=_hear, args=(process.stderr, ready, url), daemon=True)
    hearing.start()
    try:
        yield Running(url.result(timeout=_PATIENCE), process.pid)
    finally:
        process.terminate()
        process.wait()
        hearing.join()
        process.stderr.close()


def _hear(stderr: IO[str], ready: str, url: Future[str]) -> None:
    said: list[str] = []
    address = ""
    for line in stderr:
        said = [*said[-20:], line]
        if line.startswith(_LISTENING):
            address = line.split()[2]
        if line.startswith(ready) and not url.done():
            url.set_result(address)
    if not url.done():
        url.set_exception(RuntimeError(f"it ended before it was ready:\n{''.join(said)}"))
