"""The lock on disk, which only one process changes at a time.

A process that changes it locks its folder (``flock``), reads the file again, and replaces it by a rename. So the
changes of two processes are both kept, and a killed process leaves the old file or the new one.
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
    """A lock that only this process may change; ``now`` is its content."""

    def __init__(self, path: Path, now: Lock) -> None:
        self._path = path
        self.now = now

    def write(self, lock: Lock) -> None:
        """Replace the file if its content changes."""
        if lock != self.now or not self._path.exists():
            replace_file(self._path, format_lock(lock))
            self.now = lock


def read_lock(path: Path) -> Lock | None:
    """Read the lock at ``path``; ``None`` if there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(
            "lock-unreadable", f"{_called(path)} cannot be read: {error.strerror}", "check its permissions"
        ) from error
    if len(data) > _MAX_BYTES:
        raise StoreError(
            "lock-unreadable", f"{_called(path)} is too large for a lock", "restore it from version control"
        )
    try:
        return parse_lock(data)
    except FormatError as error:
        error.message = _called(path) + error.message.removeprefix(LOCK_NAME)
        raise


def require_lock(path: Path) -> Lock:
    """Read the lock at ``path``, which must exist."""
    lock = read_lock(path)
    if lock is None:
        raise NotFoundError(
            "lock-missing",
            f"no {LOCK_NAME} here",
            "add a skill first (skillwire add), or use --global or --project",
        )
    return lock


@contextmanager
def held_lock(path: Path, patience: float = _PATIENCE_SECONDS) -> Generator[LockFile]:
    """Hold the lock at ``path`` for this process while the block runs."""
    if path.is_symlink():
        raise StoreError("lock-linked", f"{LOCK_NAME} is a symbolic link", "replace it by a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(
            "lock-unwritable",
            f"the folder of {LOCK_NAME} cannot be used: {error.strerror}",
            "check its permissions; nothing was written",
        ) from error
    try:
        _wait_for(folder, patience)
        yield LockFile(path, read_lock(path) or Lock())
    finally:
        os.close(folder)


def _called(path: Path) -> str:
    """Return which lock it is: that of a project, or that of the user."""
    return f"./{path.name}" if path.parent == Path.cwd() else shown(path, Path.home())


def _wait_for(folder: int, patience: float) -> None:
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise StoreError(
                    "lock-busy",
                    f"another process is changing {LOCK_NAME}",
                    "run the command again when it has ended",
                ) from None
            time.sleep(_PAUSE)
        except OSError as error:
            raise StoreError(
                "lock-unwritable", f"{LOCK_NAME} cannot be locked: {error.strerror}", "use a local disk"
            ) from error
        else:
            return
