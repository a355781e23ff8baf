"""Reading folders in a second process, while this one does something else (such as importing the SDK).

The other process is a copy of this one (``fork``), so it must be started before there are threads. It reads with
the same code, hands over what it found, and remembers it for the next start. Whatever goes wrong with it, the
folder is simply read here, and errors are said here: it can only save time.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from hashlib import sha256
from threading import Thread
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from skillwire.catalog.remembered import remember, remembered
from skillwire.limits import KIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from skillwire.catalog.directory import DirectoryCatalog

    Progress = Callable[[], AbstractContextManager[Callable[[int], None]]]  # counts skills for a person who waits

_BUFFER = 1 << 20
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
        with os.fdopen(self._pipe, "rb", _BUFFER) as lines:
            is_loaded = self._catalog.adopt(lines)
        Thread(target=os.waitpid, args=(self._child, 0), daemon=True).start()  # it may still be writing its memory
        if not is_loaded:
            with self._progress() as count:
                self._catalog.load(count)


def load_remembered(catalog: DirectoryCatalog, memory: Path | None, progress: Progress) -> bytes:
    """Load ``catalog``, reading only what changed since it was remembered. The digest of what was remembered."""
    hasher = sha256()
    if memory is not None:
        with remembered(memory, str(catalog.root)) as lines:
            catalog.recall(_hashed(lines, hasher.update))
    with progress() as count:
        catalog.load(count)
    return hasher.digest()


def _hashed(lines: Iterable[bytes], update: Callable[[bytes], None]) -> Iterator[bytes]:
    for line in lines:
        update(line)
        yield line


def tell(catalog: DirectoryCatalog, memory: Path | None, before: bytes, to: BinaryIO) -> None:
    """Hand over what ``catalog`` holds; then remember it, if that is worth it and was not known ``before``."""
    hasher, size = sha256(), 0
    with to:
        for line in _hashed(catalog.told(), hasher.update):
            size += to.write(line)
    if memory is not None and size >= _WORTH and hasher.digest() != before:
        remember(memory, str(catalog.root), catalog.told())


def _read_and_leave(catalog: DirectoryCatalog, memory: Path | None, progress: Progress, writing: int) -> NoReturn:
    """The life of the other process. It must not return into what its parent was doing."""
    with suppress(BaseException):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        before = load_remembered(catalog, memory, progress)
        tell(catalog, memory, before, os.fdopen(writing, "wb", _BUFFER))
    os._exit(0)
