"""Watches a folder with watchfiles; also a program that watches a large folder: ``watcher.py FOLDER``.

Setting up a watch takes time for each folder below it, and blocks the whole process. A server must answer requests
meanwhile, so it starts this file as a program for large folders. The program prints one line of JSON per batch:
the changed paths, or ``null`` for "anything may have changed". It ends when its standard input closes. It imports
no other module of skillwire, so that it starts quickly.

A folder with a file name that is not valid text cannot be watched. The caller then rescans every few seconds.
"""

from __future__ import annotations

import json
import select
import signal
import sys
from typing import TYPE_CHECKING, Protocol

# This file is the only one that uses private names of watchfiles. The reasons: the public functions report only
# after their first timeout that the watch is in place, and `awatch` cannot be cancelled before that timeout, so
# every server would stop half a second late.
try:
    from watchfiles._rust_notify import RustNotify
    from watchfiles._rust_notify import WatchfilesRustInternalError as NameNotTextError
except ImportError as error:
    raise ImportError("this version of watchfiles has no RustNotify; install watchfiles>=1.1,<2") from error

if TYPE_CHECKING:
    from collections.abc import Iterator

RESCAN_SECONDS = 10.0
_DEBOUNCE_MS = 100
_STEP_MS = 20  # also the delay until a stop is noticed
_POLL_MS = 300
_MAX_PATHS = 10_000


class Stop(Protocol):
    """A ``threading.Event``, or another object with this method."""

    def is_set(self) -> bool:
        """Whether to stop watching."""
        ...


def watch(root: str, stop: Stop, *, recursive: bool = True) -> Iterator[list[str] | None]:
    """Yield batches of changed paths until ``stop`` is set. The first is ``None``: the watch is in place."""
    with RustNotify([root], False, False, _POLL_MS, recursive, True) as notify:
        yield None
        while not isinstance(changes := notify.watch(_DEBOUNCE_MS, _STEP_MS, 0, stop), str):
            yield None if len(changes) > _MAX_PATHS else [path for _, path in changes]


class _InputClosed:
    """Set once standard input is closed."""

    def is_set(self) -> bool:
        return self.wait(0)

    def wait(self, seconds: float) -> bool:
        return bool(select.select([sys.stdin], [], [], seconds)[0])


def main() -> None:
    """Print batches until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    closed = _InputClosed()
    while not closed.is_set():
        try:
            for batch in watch(sys.argv[1], closed):
                print(json.dumps(batch), flush=True)
        except NameNotTextError:
            print(json.dumps(None), flush=True)
            closed.wait(RESCAN_SECONDS)


if __name__ == "__main__":
    main()
