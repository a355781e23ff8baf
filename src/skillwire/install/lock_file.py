"""The lock on disk: read whole, replaced whole, and never by two at a time.

Whoever changes it holds the folder it lies in (``flock``), reads it again, and replaces it by a rename: what two
processes add at the same time both ends up in it, and one that is killed leaves the old file or the new one.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.errors import FormatError, NotFoundError, StoreError
from skillwire.install.lock import LOCK_NAME, Lock, format_lock, parse_lock
from skillwire.install.places import shown
from skillwire.install.transaction import replace_file

if TYPE_CHECKING:
    from collections.abc import Generator

_MAX_BYTES = 64 * 1024 * 1024
_PATIENCE_SECONDS = 30.0
_PAUSE = 0.02


class LockFile:
    """A lock that this process alone may change now; ``now`` is what is in it."""

    def __init__(self, path: Path, now: Lock) -> None:
        self._path = path
        self.now = now

    def write(self, lock: Lock) -> None:
        """Replace it, unless it would stay the same."""
        if lock != self.now or not self._path.exists():
            replace_file(self._path, format_lock(lock))
            self.now = lock


def read_lock(path: Path) -> Lock | None:
    """The lock at ``path``; ``None`` if there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(
            "lock-unreadable", f"{_called(path)} cannot be read: {error.strerror}", "look at its permissions"
        ) from error
    if len(data) > _MAX_BYTES:
        raise StoreError("lock-unreadable", f"{_called(path)} is too large to be a lock", "restore it")
    try:
        return parse_lock(data)
    except FormatError as error:
        error.message = _called(path) + error.message.removeprefix(LOCK_NAME)
        raise


def demand_lock(path: Path) -> Lock:
    """The lock at ``path``; ``NotFoundError`` if there is none."""
    lock = read_lock(path)
    if lock is None:
        raise NotFoundError(
            "lock-missing", f"there is no {LOCK_NAME} here", "add a skill first, or use --global or --project"
        )
    return lock


@contextmanager
def held_lock(path: Path, patience: float = _PATIENCE_SECONDS) -> Generator[LockFile]:
    """The lock at ``path``, for this process alone while the block runs."""
    if path.is_symlink():
        raise StoreError("lock-linked", f"{LOCK_NAME} is a symbolic link", "put the file itself there")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(
            "lock-unwritable", f"the folder of {LOCK_NAME} cannot be used: {error.strerror}", "nothing was written"
        ) from error
    try:
        _wait_for(folder, patience)
        yield LockFile(path, read_lock(path) or Lock())
    finally:
        os.close(folder)


def _called(path: Path) -> str:
    """Which lock it is: there is one in each project, and a person's own."""
    return f"./{path.name}" if path.parent == Path.cwd() else shown(path, Path.home())


def _wait_for(folder: int, patience: float) -> None:
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise StoreError(
                    "lock-busy", f"another skillwire is changing {LOCK_NAME}", "try again when it is done"
                ) from None
            time.sleep(_PAUSE)
        except OSError as error:
            raise StoreError(
                "lock-unwritable", f"{LOCK_NAME} cannot be held: {error.strerror}", "use a local disk"
            ) from error
        else:
            return
