"""Reading folders in a second process, while this one does something else (such as importing the SDK).

The other process is a copy of this one (``fork``), so it must be started before there are threads. It reads with
the same code, hands over what it found, and remembers it for the next start. Whatever goes wrong with it, the
folder is simply read here, and errors are said here: it can only save time.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from skillwire.catalog.remembered import remember, remembered
from skillwire.limits import KIB

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from skillwire.catalog.directory import DirectoryCatalog

    Progress = Callable[[], AbstractContextManager[Callable[[int], None]]]  # counts skills for a person who waits

_CHUNK = 1 << 20
_WORTH = 64 * KIB  # of fewer than a few dozen skills nothing is remembered: they are read as fast


class ReadAhead:
    """One folder being read by another process. ``finish`` it."""

    def __init__(self, catalog: DirectoryCatalog, memory: Path | None, progress: Progress) -> None:
        catalog.demand_root()
        self._catalog = catalog
        self._progress = progress
        self._pipe, writing = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(self._pipe)
            _read_and_leave(catalog, memory, progress, writing)
        os.close(writing)

    def finish(self) -> None:
        """The catalog is loaded, by the other process or here."""
        chunks: list[bytes] = []
        try:
            while chunk := os.read(self._pipe, _CHUNK):
                chunks.append(chunk)
            _, status = os.waitpid(self._child, 0)
        finally:
            os.close(self._pipe)
        if status != 0 or not self._catalog.adopt(b"".join(chunks)):
            with self._progress() as count:
                self._catalog.load(count)


def load_remembered(catalog: DirectoryCatalog, memory: Path | None, progress: Progress) -> bytes:
    """Load ``catalog``, reading only what changed since it was remembered; what was found is remembered again."""
    root = str(catalog.root)
    before = None if memory is None else remembered(memory, root)
    if before is not None:
        catalog.recall(before)
    with progress() as count:
        catalog.load(count)
    now = catalog.told()
    if memory is not None and now != before and len(now) >= _WORTH:
        remember(memory, root, now)
    return now


def _read_and_leave(catalog: DirectoryCatalog, memory: Path | None, progress: Progress, writing: int) -> NoReturn:
    """The life of the other process. It must not return into what its parent was doing."""
    code = 1
    with suppress(BaseException):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        data = memoryview(load_remembered(catalog, memory, progress))
        while data:
            data = data[os.write(writing, data) :]
        code = 0
    os._exit(code)
