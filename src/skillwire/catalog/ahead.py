"""Reading folders in a second process, while this one does something else (such as importing the SDK).

The other process is a copy of this one (``fork``), so it must be started before there are threads. It reads with
the same code, hands over what it found, and remembers it for the next start. Whatever goes wrong with it, the
folders are simply read here, and errors are said here: it can only save time.
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
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from skillwire.catalog.directory import DirectoryCatalog

    Progress = Callable[[], AbstractContextManager[Callable[[int], None]]]  # counts skills for a person who waits

_BUFFER = 1 << 20
_WORTH = 64 * KIB  # of fewer than a few dozen skills nothing is remembered: they are read as fast
_STANDARD = (0, 1, 2)


class ReadAhead:
    """Folders being read by another process. ``finish`` it, or ``abandon`` it."""

    def __init__(self, catalogs: Sequence[DirectoryCatalog], memory: Path | None, progress: Progress) -> None:
        for catalog in catalogs:
            catalog.demand_root()
        self._catalogs = catalogs
        self._progress = progress
        self._child: int | None = None
        self._pipe: BinaryIO | None = None
        with suppress(OSError):  # no process or pipe to be had
            self._start(memory)

    def _start(self, memory: Path | None) -> None:
        reading, writing = os.pipe()
        try:
            child = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            raise
        if child == 0:
            try:
                os.close(reading)
                _read_all(self._catalogs, memory, self._progress, writing)
            finally:
                os._exit(0)  # never into what the parent was doing
        os.close(writing)
        self._child, self._pipe = child, os.fdopen(reading, "rb", _BUFFER)

    def finish(self) -> None:
        """The catalogs are loaded, by the other process or here."""
        is_told = self._pipe is not None
        for catalog in self._catalogs:
            is_told = is_told and self._pipe is not None and catalog.adopt(self._pipe)
            if not is_told:
                with self._progress() as count:
                    catalog.load(count)
        self._let_go()

    def abandon(self) -> None:
        """Nobody will need it any more."""
        if self._child is not None:
            with suppress(OSError):
                os.kill(self._child, signal.SIGTERM)
        self._let_go()

    def _let_go(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._child is not None:  # it may still be writing its memory
            Thread(target=_wait_for, args=(self._child,), daemon=True).start()
        self._pipe = self._child = None


def _wait_for(child: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(child, 0)


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


def tell(catalog: DirectoryCatalog, to: BinaryIO) -> tuple[bytes, int]:
    """Hand over what ``catalog`` holds. Its digest, and how long it was."""
    hasher, size = sha256(), 0
    for line in _hashed(catalog.told(), hasher.update):
        size += to.write(line)
    return hasher.digest(), size


def keep(catalog: DirectoryCatalog, memory: Path | None, before: bytes, now: tuple[bytes, int]) -> None:
    """Remember what ``catalog`` holds, if that is worth it and was not known before."""
    digest, size = now
    if memory is not None and size >= _WORTH and digest != before:
        remember(memory, str(catalog.root), catalog.told())


def _read_all(catalogs: Sequence[DirectoryCatalog], memory: Path | None, progress: Progress, writing: int) -> None:
    """The life of the other process: hand over first, then remember."""
    with suppress(BaseException):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # raises: a progress bar is taken away again
        signal.signal(signal.SIGTERM, _leave)
        _let_go_of_the_hosts_pipes()
        with os.fdopen(writing, "wb", _BUFFER) as to:
            readings = [(catalog, load_remembered(catalog, memory, progress)) for catalog in catalogs]
            told = [tell(catalog, to) for catalog in catalogs]
        for (catalog, before), now in zip(readings, told, strict=True):
            keep(catalog, memory, before, now)


def _let_go_of_the_hosts_pipes() -> None:
    """A host that waits for the end of our output waits for the server, not for who reads its folders."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in _STANDARD:
        if not os.isatty(number):
            os.dup2(nowhere, number)
    os.close(nowhere)


def _leave(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - the shape of a signal handler
    raise SystemExit
