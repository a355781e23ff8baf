"""SQLite: one file, which several processes may use at once; created and opened safely, migrated.

- A program that can write the file can approve skills. So the folder and the file are created for this user alone
  (0700, 0600). A folder or a file that other users own or can write is refused. An error message contains the name
  of the file, and no other path.
- In WAL mode readers do not wait for a writer, and a transaction of a killed process leaves no trace.
- ``synchronous = FULL``: a committed write survives a power failure. With NORMAL, a power failure could undo the
  last commits. A lost approval only means that a user is asked twice. A lost revocation would let a skill act that
  a user had stopped (A2), and a lost log line is a gap in the log. The cost is one disk flush for each write.
- ``PRAGMA user_version`` is the number of migrations that were applied. Each is one transaction. Several processes
  may open a new or an old file at once: the version is read again under the write lock, so a migration is applied
  once. A file of a newer version and a database of another program are refused and not changed.
- Nothing is ever deleted or repaired because of an error.

All SQL runs in a worker thread, on one connection, one call at a time.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
import threading
import time
import weakref
from collections import defaultdict
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio
from anyio import CancelScope, CapacityLimiter, to_thread

from skillwire.errors import StoreError
from skillwire.store.database import (
    BUSY,
    DAMAGED,
    DEFAULT_PATIENCE,
    FULL,
    Database,
    EngineFailure,
    Session,
    newer_schema,
    restored,
    storable,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence

    from skillwire.store.database import Row, Schema

T = TypeVar("T")

_PAUSE = 0.02
_HOLD_PAUSE = 0.5  # between two attempts to get a lock that another process has
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_SUFFIXES = ("", "-wal", "-shm", "-journal")  # files that SQLite writes; each takes the mode of the first
# Closing any descriptor of a file drops the locks that this process holds on it, SQLite's too. So this module
# opens a file only while creating it, when no other code of the process can have it open yet.
_CREATING = threading.Lock()

_READONLY = EngineFailure("store-readonly", "cannot be written", "make the file and its folder writable for you")
_FAILURES = {
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_PROTOCOL: BUSY,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: FULL,  # no space for the index of the write-ahead log
    sqlite3.SQLITE_IOERR: EngineFailure(
        "store-unusable", "cannot be used: the disk reports an error", "check the disk"
    ),
    sqlite3.SQLITE_CANTOPEN: EngineFailure(
        "store-unusable",
        "cannot be opened, or no file can be created next to it",
        "free some space, and make the folder writable for you",
    ),
    sqlite3.SQLITE_READONLY: _READONLY,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
}
_OS_FAILURES = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EROFS: _READONLY,
    errno.EACCES: _READONLY,
    errno.EPERM: _READONLY,
}


class SqliteDatabase(Database):
    """Open one with ``await SqliteDatabase.open(path, schema)`` or ``SqliteDatabase.memory(schema)``."""

    dialect = "sqlite"

    def __init__(
        self, connection: sqlite3.Connection, name: str, schema: Schema, path: Path | None = None
    ) -> None:
        self.label = f"the store {name!r:.100}"
        self._connection: sqlite3.Connection | None = connection
        self._name = name
        self._schema = schema
        self._path = path
        self._turn = CapacityLimiter(1)  # works as a lock on the connection
        self._held = defaultdict[str, anyio.Lock](anyio.Lock)  # in memory there is no other process
        self._has_changed = anyio.Event()

    @classmethod
    async def open(
        cls, path: str | os.PathLike[str], schema: Schema, *, patience: float = DEFAULT_PATIENCE
    ) -> SqliteDatabase:
        """Open or create the file, and migrate it. Wait up to ``patience`` seconds for other writers."""
        connection, real = await to_thread.run_sync(open_file, path, schema, patience)
        return cls(connection, os.path.basename(path), schema, real)

    @classmethod
    def memory(cls, schema: Schema) -> SqliteDatabase:
        """Make a new database in memory, which ends with this object."""
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA foreign_keys = ON")  # as in a file
        migrate(connection, schema)
        database = cls(connection, "memory", schema)
        weakref.finalize(database, connection.close)  # it may not be closed, and nothing is lost
        return database

    async def rows(self, sql: str, *values: Any) -> list[Row]:
        """The rows of one query."""
        return await self._run(lambda connection: _SqliteSession(connection).rows(sql, *values))

    async def read(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` on one snapshot."""

        def read(connection: sqlite3.Connection) -> T:
            with transaction(connection, "DEFERRED"):
                return work(_SqliteSession(connection))

        return await self._run(read)

    async def write(self, work: Callable[[Session], T], *, concurrent: bool = False) -> T:  # noqa: ARG002
        """Run ``work`` and commit, or roll back if it raises. There is always only one writer."""

        def write(connection: sqlite3.Connection) -> T:
            with transaction(connection):
                read_version(connection, self._schema)  # a newer skillwire may have migrated the file since
                return work(_SqliteSession(connection))

        done = await self._run(write)
        self._has_changed.set()
        return done

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncGenerator[None]:
        """Keep other processes out, with a lock on a file of its own. It ends with the process."""
        if self._path is None:
            async with self._held[name]:
                yield
            return
        with translated_errors(self._name):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            file = os.open(f"{self._path}-{name}.lock", flags, 0o600)
        try:
            while not _is_locked(file):  # noqa: ASYNC110 - another process cannot set an event
                await anyio.sleep(_HOLD_PAUSE)
            yield
        finally:
            os.close(file)

    async def wait_for_change(self, seconds: float) -> None:
        """Wait until this process has written, but no longer than ``seconds``."""
        with anyio.move_on_after(seconds):
            await self._has_changed.wait()
        if self._has_changed.is_set():
            self._has_changed = anyio.Event()

    async def close(self) -> None:
        """Close the file after the current call. Later calls raise ``StoreError``."""
        with CancelScope(shield=True):
            await to_thread.run_sync(self._close, limiter=self._turn)

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await to_thread.run_sync(self._with_connection, work, limiter=self._turn)

    def _with_connection(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            raise StoreError("store-closed", f"{self.label} is closed", "open it again")
        with translated_errors(self._name):
            return work(self._connection)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _SqliteSession(Session):
    dialect = "sqlite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, *values: Any) -> list[Row]:
        return [restored(row) for row in self._connection.execute(sql, tuple(map(storable, values)))]

    def run(self, sql: str, *values: Any) -> int:
        return self._count(self._connection.execute(sql, tuple(map(storable, values))))

    def run_each(self, sql: str, values: Iterable[Sequence[Any]]) -> int:
        return self._count(self._connection.executemany(sql, (tuple(map(storable, each)) for each in values)))

    def _count(self, cursor: sqlite3.Cursor) -> int:
        count = max(0, cursor.rowcount)  # -1 if the statement changes no rows
        self.changed += count
        return count


def open_file(named: str | os.PathLike[str], schema: Schema, patience: float) -> tuple[sqlite3.Connection, Path]:
    """Open or create the file, and migrate it; also its real path."""
    path = Path(os.path.realpath(named))  # SQLite puts its other files next to the real one
    with translated_errors(path.name):
        _prepare(path)
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=patience, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")  # off by default, and a setting of each connection
            migrate(connection, schema)
            _use_wal(connection, patience)
        except BaseException:
            connection.close()
            raise
        return connection, path


def _is_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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


def migrate(connection: sqlite3.Connection, schema: Schema) -> None:
    """Apply the missing migrations; ``StoreError`` if the file is not a store of this schema, or is newer."""
    with transaction(connection, "DEFERRED"):  # read only, so that opening a current store writes nothing
        version = read_version(connection, schema)
    while version < len(schema.sqlite):
        with transaction(connection):
            version = read_version(connection, schema)
            if version < len(schema.sqlite):  # otherwise another process was first
                for statement in schema.sqlite[version]:
                    connection.execute(statement)
                version += 1
                connection.execute(f"PRAGMA application_id = {int.from_bytes(schema.application)}")
                connection.execute(f"PRAGMA user_version = {version}")


def read_version(connection: sqlite3.Connection, schema: Schema) -> int:
    """The number of applied migrations; ``StoreError`` if ``schema`` has fewer, or the file is another one's.

    Call it inside a transaction: another process may be creating the store at the same time.
    """
    version = _number(connection, "PRAGMA user_version")
    application = _number(connection, "PRAGMA application_id")
    is_empty = version == application == 0 and not _number(connection, "SELECT count(*) FROM sqlite_master")
    if application != int.from_bytes(schema.application) and not is_empty:
        raise StoreError(
            "store-foreign",
            "the file is a database of another program; nothing in it was changed",
            "use another file",
        )
    if version > len(schema.sqlite):
        raise newer_schema(version, len(schema.sqlite))
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


def _failure(name: str, known: EngineFailure | None, otherwise: str) -> StoreError:
    problem = f"cannot be used ({otherwise})"
    failure = known or EngineFailure("store-unusable", problem, "check the disk and the folder of the store")
    return failure.error(f"the store {name!r:.100}")
