"""The file of a SQLite store: created and opened safely, migrated, with errors of SQLite as ``StoreError``.

A program that can write the file can approve skills. So the folder and the file are created for this user alone
(0700, 0600). A folder or a file that other users own or can write is refused. An error message contains the name
of the file, and no other path.

- ``PRAGMA user_version`` is the number of migrations that were applied. Each is one transaction.
- Several processes may open a new or an old store at once. The version is read again under the write lock, so a
  migration is applied once.
- A store of a newer version and a database of another program are refused and not changed.
- The log is append-only: triggers refuse to change or remove a line. They protect against defects in this package,
  not against the owner of the file.

A released migration is never edited. New ones are appended to ``MIGRATIONS``.
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
from typing import TYPE_CHECKING, Literal, TypeAlias

from skillwire.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

Migration: TypeAlias = tuple[str, ...]
"""Statements, run in this order in one transaction."""

APPLICATION_ID = int.from_bytes(b"skwr")
"""Written to the header of the file, so that the database of another program is not mistaken for a store."""

MIGRATIONS: tuple[Migration, ...] = (
    (
        "CREATE TABLE origins (label TEXT NOT NULL PRIMARY KEY, settings TEXT NOT NULL, added_at REAL NOT NULL)"
        " WITHOUT ROWID",
        # One row per origin: a listing is written and read completely, so rows per skill would be slower.
        "CREATE TABLE entries (label TEXT NOT NULL PRIMARY KEY, entries TEXT NOT NULL, at REAL NOT NULL,"
        " is_complete INTEGER NOT NULL)",
        # A1: the contents are one value. They are never searched, and a part of them would be another approval.
        "CREATE TABLE approvals (origin TEXT NOT NULL, uri TEXT NOT NULL, contents TEXT NOT NULL,"
        " who TEXT NOT NULL, at REAL NOT NULL, grants TEXT NOT NULL, PRIMARY KEY (origin, uri))",
        # AUTOINCREMENT: the number of a line is never used again.
        "CREATE TABLE log (number INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL, origin TEXT NOT NULL,"
        " uri TEXT NOT NULL, who TEXT NOT NULL, at REAL NOT NULL, facts TEXT NOT NULL)",
        # An index entry ends with the number of the line, so the newest lines need no sorting.
        "CREATE INDEX log_of_origin ON log (origin)",
        "CREATE INDEX log_of_uri ON log (uri)",
        "CREATE TRIGGER log_is_not_changed BEFORE UPDATE ON log"
        " BEGIN SELECT RAISE(ABORT, 'the log only grows'); END",
        "CREATE TRIGGER log_is_not_cut BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the log only grows'); END",
        # INSERT OR REPLACE removes a row without firing the trigger above.
        "CREATE TRIGGER log_is_not_replaced BEFORE INSERT ON log"
        " WHEN EXISTS (SELECT 1 FROM log WHERE number = NEW.number)"
        " BEGIN SELECT RAISE(ABORT, 'the log only grows'); END",
    ),
    (
        # An answer is in the row of its question, so that only the first one is stored. ``content`` is the
        # fingerprint that a decision about a skill must match; empty if nothing can be verified.
        "CREATE TABLE questions (id TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, origin TEXT NOT NULL,"
        " uri TEXT NOT NULL, content TEXT NOT NULL, question TEXT NOT NULL, asked_at REAL NOT NULL,"
        " waits_until REAL NOT NULL, answer TEXT)",
        # For the newest decision about each skill: most lines of the log are reads.
        "CREATE INDEX log_of_decisions ON log (origin, uri) WHERE what IN ('approved', 'denied', 'revoked')",
    ),
    (
        # Counts changes. SQLite's own counter would also count renewed questions.
        "CREATE TABLE news (number INTEGER NOT NULL)",
        "INSERT INTO news (number) VALUES (0)",
    ),
    (
        # To enable a declined skill again is a decision too.
        "DROP INDEX log_of_decisions",
        "CREATE INDEX log_of_decisions ON log (origin, uri)"
        " WHERE what IN ('approved', 'denied', 'revoked', 'enabled')",
    ),
    (
        # Requested entries, with more detail than the listed ones. Earlier, hosts stored them in the listing.
        "CREATE TABLE asked_entries (label TEXT NOT NULL, uri TEXT NOT NULL, entry TEXT NOT NULL,"
        " PRIMARY KEY (label, uri)) WITHOUT ROWID",
        "DELETE FROM entries",
    ),
)

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


def open_memory() -> sqlite3.Connection:
    """Open a new store in memory, which ends with its connection."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate(connection)
    return connection


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


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Apply the missing migrations; ``StoreError`` if the file is not a store, or is newer."""
    with transaction(connection, "DEFERRED"):  # read only, so that opening a current store writes nothing
        version = read_version(connection, len(migrations))
    while version < len(migrations):
        with transaction(connection):
            version = read_version(connection, len(migrations))
            if version < len(migrations):  # otherwise another process was first
                for statement in migrations[version]:
                    connection.execute(statement)
                version += 1
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {version}")


def read_version(connection: sqlite3.Connection, newest: int = len(MIGRATIONS)) -> int:
    """The number of applied migrations; ``StoreError`` if it exceeds ``newest``, or the file is not a store.

    Call it inside a transaction: another process may be creating the store at the same time.
    """
    version = _number(connection, "PRAGMA user_version")
    application = _number(connection, "PRAGMA application_id")
    is_empty = version == application == 0 and not _number(connection, "SELECT count(*) FROM sqlite_master")
    if application != APPLICATION_ID and not is_empty:
        raise StoreError(
            "store-foreign",
            "the file is a database of another program; nothing in it was changed",
            "use another file",
        )
    if version > newest:
        raise StoreError(
            "store-newer",
            f"the store was written by a newer skillwire (store version {version}, known here: {newest});"
            " nothing in it was changed",
            "update skillwire, and restart the processes that run the older version",
        )
    return version


@contextmanager
def transaction(
    connection: sqlite3.Connection, kind: Literal["DEFERRED", "IMMEDIATE"] = "IMMEDIATE"
) -> Generator[None]:
    """Commit the statements of the block, or roll them all back. ``IMMEDIATE`` waits for other writers first."""
    connection.execute(f"BEGIN {kind}")
    with connection:
        yield


def _number(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]


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
