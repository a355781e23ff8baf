"""The file of a SQLite store: created and opened safely, with errors of SQLite and the disk as ``StoreError``.

A program that can write the file can approve skills. So the folder and the file are created for this user alone
(0700, 0600). A folder or a file that other users own or can write is refused. An error message contains the name
of the file, and no other path.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.errors import StoreError
from skillwire.store.migrations import migrate

if TYPE_CHECKING:
    from collections.abc import Generator

_PAUSE = 0.02
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_SUFFIXES = ("", "-wal", "-shm", "-journal")  # files that SQLite writes; each takes the mode of the first
# Closing any descriptor of a file drops the locks that this process holds on it, SQLite's too. So this module
# opens a file only while creating it, when no other code of the process can have it open yet.
_CREATING = threading.Lock()

_BUSY = ("store-busy", "is in use by another program", "try again, or stop the other program")
_FULL = ("store-full", "cannot grow: the disk is full", "free some space; everything stored earlier is intact")
_READONLY = ("store-readonly", "cannot be written", "make the file and its folder writable for you")
_DAMAGED = (
    "store-damaged",
    "is damaged, or is not a store",
    "move the file away and start again; nothing was deleted from it",
)
_FAILURES = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_PROTOCOL: _BUSY,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: _FULL,  # no space for the index of the write-ahead log
    sqlite3.SQLITE_IOERR: ("store-unusable", "cannot be used: the disk reports an error", "check the disk"),
    sqlite3.SQLITE_CANTOPEN: (
        "store-unusable",
        "cannot be opened, or no file can be created next to it",
        "free some space, and make the folder writable for you",
    ),
    sqlite3.SQLITE_READONLY: _READONLY,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
}
_OS_FAILURES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _READONLY,
    errno.EACCES: _READONLY,
    errno.EPERM: _READONLY,
}


def open_file(named: str | os.PathLike[str], patience: float) -> sqlite3.Connection:
    """Open or create the store, and migrate it. Wait up to ``patience`` seconds for other writers."""
    path = Path(os.path.realpath(named))  # SQLite puts its other files next to the real one
    with translated_errors(path.name):
        _prepare(path)
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=patience, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")  # off by default, and a setting of each connection
            migrate(connection)
            _use_wal(connection, patience)
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def translated_errors(name: str) -> Generator[None]:
    """Raise errors of SQLite and the disk as ``StoreError``. Their own messages may contain paths."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        known = _FAILURES.get(code) or _FAILURES.get(code & 0xFF)  # the upper bits of the code seldom matter
        raise _failure(name, known, getattr(error, "sqlite_errorname", type(error).__name__)) from error
    except OSError as error:
        raise _failure(name, _OS_FAILURES.get(error.errno or 0), error.strerror or type(error).__name__) from error


@contextmanager
def decoding_rows(name: str) -> Generator[None]:
    """Raise errors of decoding a row as ``StoreError``: the store is damaged."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _failure(name, _DAMAGED, "") from error


def _failure(name: str, known: tuple[str, str, str] | None, otherwise: str) -> StoreError:
    reference, problem, hint = known or (
        "store-unusable",
        f"cannot be used ({otherwise})",
        "check the disk and the folder of the store",
    )
    return StoreError(reference, f"the store {name!r:.100} {problem}", hint)


def _prepare(path: Path) -> None:
    """Create the folder and the file for this user alone; ``StoreError`` if another user could change them."""
    with _CREATING:
        for folder in reversed([folder for folder in path.parents if not folder.exists()]):
            with suppress(FileExistsError):  # another process was first
                os.mkdir(folder, 0o700)
        _refuse_if_shared(os.stat(path.parent), f"the folder of the store {path.name!r:.100}")
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for suffix in _SUFFIXES:
        with suppress(FileNotFoundError):
            _refuse_if_shared(os.stat(f"{path}{suffix}"), f"the store {path.name + suffix!r:.100}")


def _refuse_if_shared(status: os.stat_result, what: str) -> None:
    if status.st_uid != os.geteuid():
        raise StoreError(
            "store-unsafe",
            f"{what} belongs to another user, who could approve skills in your name",
            "use a file in a folder that you own",
        )
    if status.st_mode & _OTHERS_MAY_WRITE:
        raise StoreError(
            "store-unsafe",
            f"{what} can be written by other users, who could approve skills in your name",
            "review the approvals, then remove the right to write: chmod go-w",
        )


def _use_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Switch to WAL, a lasting property of the file. SQLite does not always wait for others here, so we do."""
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE)
