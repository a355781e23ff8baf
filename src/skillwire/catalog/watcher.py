"""A process that watches a large folder for another one: ``watcher.py FOLDER``.

Setting up a watch takes a while for each folder below, and nothing else of the process runs meanwhile; a server
has others to answer. So this program does it. One line of JSON for each batch: the paths that changed, or ``null``
for "anything may have"; the first line says that the watch stands. It ends when its standard input does. It is
started as a file and imports nothing of ours, to be there soon. ``watch.py`` watches small folders the same way.

Where a file has a name that is no text, there is no watch to be had: then somebody looks every few seconds.
"""

from __future__ import annotations

import json
import select
import signal
import sys
from typing import Any, cast

from watchfiles import watch  # pyright: ignore[reportUnknownVariableType] - as in `watch.py`
from watchfiles._rust_notify import WatchfilesRustInternalError as UnspeakableError

HOW: dict[str, Any] = {  # here as there; times are in milliseconds
    "watch_filter": None,
    "debounce": 100,
    "step": 20,
    "rust_timeout": 500,
    "yield_on_timeout": True,
    "ignore_permission_denied": True,
}
PAUSE_SECONDS = 10.0
_MOST_PATHS = 10_000


def is_unspeakable(error: BaseException) -> bool:
    """Whether it is about a name that is no text."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_unspeakable(inner) for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions)
    return isinstance(error, UnspeakableError)


def main() -> None:
    """Watch until nobody listens any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us
    while not _is_over(0):
        try:
            _watch(sys.argv[1])
        except UnspeakableError:
            _say(None)
            if _is_over(PAUSE_SECONDS):
                return


def _watch(root: str) -> None:
    standing = False
    for batch in watch(root, **HOW):
        if not standing:
            _say(None)
        elif batch:
            _say(None if len(batch) > _MOST_PATHS else [path for _, path in batch])
        standing = True
        if _is_over(0):
            return


def _is_over(seconds: float) -> bool:
    """Whether nobody listens any more, now or within so many seconds."""
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def _say(paths: list[str] | None) -> None:
    print(json.dumps(paths), flush=True)


if __name__ == "__main__":
    main()
