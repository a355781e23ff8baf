"""PostgreSQL, which many processes on several machines may use at once.

- psycopg runs in worker threads, on connections that are opened when they are needed and used again. So it works
  on every event loop of anyio, and an error of a connection is the error of the call that needed it.
- What can be repeated is repeated for ``patience`` seconds on a new connection: after a lost connection, a
  restart, a failover, a deadlock. A write is not repeated once its commit was sent: it may have succeeded.
- Writes of one schema take an advisory lock, so they run one at a time, as on SQLite.
- The table ``skillwire_schema`` has the number of applied migrations of each schema. Each migration is a
  transaction under the lock of the writers and one of all migrations. A newer schema is refused, also while a
  process is running.
- ``?pgbouncer=true`` in the URL is for a pooler in transaction mode: without prepared statements, settings of a
  session and notifications. Locks of ``hold`` are those of an open transaction, so they work there too.

A program that can write the database can approve skills. Messages name the database and the host; they never
contain the URL, the user or the password.
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit, urlunsplit

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

try:
    import psycopg
    from psycopg import errors, pq
    from psycopg.conninfo import conninfo_to_dict
except ImportError as error:
    raise StoreError(
        "postgres-missing",
        "PostgreSQL needs the package psycopg, which is not installed",
        "install it: pip install 'skillwire[postgres]'",
    ) from error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from skillwire.store.database import Row, Schema

T = TypeVar("T")

MOST_CONNECTIONS: Final = 8
"""Connections of one process; two more for ``hold`` and ``wait_for_change``."""

_STATEMENT_SECONDS = 30
_IDLE_SECONDS = 15  # a process that was stopped inside a transaction lets others write again
_MIGRATION_SECONDS = 300
_CONNECT_SECONDS = 5
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4)
_HOLD_PAUSE = 0.5  # between two attempts to get a lock that another process has
_HOLD_CHECK = 2.0  # between two checks that a lock is still held

# A lost owner of a lock is noticed by the server, too, and not after two hours.
_DEDICATED = (
    "SET idle_in_transaction_session_timeout = 0;"
    " SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3"
)

_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
# After a failover the server of an old connection only reads; a new connection may find the new one.
_ON_A_NEW_CONNECTION = (
    errors.ReadOnlySqlTransaction,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.TooManyConnections,
    errors.IdleInTransactionSessionTimeout,
)

_UNREACHABLE = EngineFailure(
    "store-unreachable", "cannot be reached", "check that the server runs, and the address"
)
_DENIED = EngineFailure(
    "store-denied",
    "refuses this user or password",
    "check the user; the password can be in PGPASSWORD or in ~/.pgpass",
)
_MISSING = EngineFailure(
    "store-missing", "does not exist", "create it: createdb NAME, with the name in the address"
)
_POOLER = EngineFailure(
    "store-pooler",
    "is behind a pooler that refuses settings of a session",
    "add ?pgbouncer=true to the address, or &pgbouncer=true after other options",
)
_CROWDED = EngineFailure("store-busy", "has no free connection", "raise max_connections, or use a pooler")
_FAILURES: tuple[tuple[type[psycopg.Error], EngineFailure], ...] = (
    (
        errors.ReadOnlySqlTransaction,
        EngineFailure("store-readonly", "only answers reads", "use the address of the primary"),
    ),
    (
        errors.InsufficientPrivilege,
        EngineFailure("store-readonly", "refuses this user", "let the user create and write tables"),
    ),
    (errors.InvalidAuthorizationSpecification, _DENIED),
    (errors.InvalidPassword, _DENIED),
    (errors.InvalidCatalogName, _MISSING),
    (errors.DiskFull, FULL),
    (errors.LockNotAvailable, BUSY),
    (errors.TooManyConnections, _CROWDED),
    (
        errors.QueryCanceled,
        EngineFailure("store-slow", "took too long to answer", "try again; look at the load of the server"),
    ),
    (errors.DataCorrupted, DAMAGED),
    (errors.IndexCorrupted, DAMAGED),
    (errors.UndefinedTable, DAMAGED),
)
# A refused connection has no code, only a text.
_REFUSALS = (
    (("does not exist", "database"), _MISSING),
    (("does not exist", "role"), _DENIED),
    (("password",), _DENIED),
    (("authentication failed",), _DENIED),
    (("pg_hba.conf",), _DENIED),
    (("unsupported startup parameter",), _POOLER),
    (("too many",), _CROWDED),
    (("remaining connection slots",), _CROWDED),
)


@dataclass(frozen=True, slots=True, repr=False)
class _Address:
    """Where the database is. It has no ``repr``, because it contains the password."""

    parameters: dict[str, Any]
    label: str
    has_pooler: bool

    def connect(self) -> psycopg.Connection[Row]:
        return psycopg.connect(
            **self.parameters, autocommit=True, prepare_threshold=None if self.has_pooler else 5
        )


class PostgresDatabase(Database):
    """Open one with ``await PostgresDatabase.open(url, schema)``."""

    dialect = "postgres"

    def __init__(self, address: _Address, schema: Schema, patience: float) -> None:
        self.label = address.label
        self._address = address
        self._schema = schema
        self._patience = patience
        self._limiter = CapacityLimiter(MOST_CONNECTIONS)
        self._lock = threading.Lock()
        self._idle: list[psycopg.Connection[Row]] = []
        self._is_closed = False
        self._listener: psycopg.Connection[Row] | None = None
        self._channel = f"skillwire_{schema.name}"
        version = f"SELECT version FROM skillwire_schema WHERE name = '{schema.name}'"  # noqa: S608 - a constant
        self._begin_write = _sql(f"BEGIN; SELECT pg_advisory_xact_lock({_lock_number(schema.name)}); {version}")
        self._begin_concurrent_write = _sql(f"BEGIN; {version}")
        self._commit_changes = _sql(f"NOTIFY {self._channel}; COMMIT")

    @classmethod
    async def open(cls, url: str, schema: Schema, *, patience: float = DEFAULT_PATIENCE) -> PostgresDatabase:
        """Connect, and migrate the schema; ``StoreError`` if the database cannot be used."""
        database = cls(_parse(url, patience), schema, patience)
        try:
            await database._run(database._migrate)
        except BaseException:
            with CancelScope(shield=True):
                await database.close()
            raise
        return database

    async def rows(self, sql: str, *values: Any) -> list[Row]:
        """The rows of one query."""
        return await self._run(lambda connection: _PostgresSession(connection).rows(sql, *values))

    async def read(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` on one snapshot."""

        def read(connection: psycopg.Connection[Row]) -> T:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            done = work(_PostgresSession(connection))
            connection.execute("COMMIT")
            return done

        return await self._run(read)

    async def write(self, work: Callable[[Session], T], *, concurrent: bool = False) -> T:
        """Run ``work`` and commit, or roll back if it raises."""

        def write(connection: psycopg.Connection[Row]) -> T:
            # One message with several statements is one round trip.
            cursor = connection.execute(self._begin_concurrent_write if concurrent else self._begin_write)
            while cursor.nextset():
                pass
            self._check_version(cursor.fetchone())
            session = _PostgresSession(connection)
            done = work(session)
            try:
                connection.execute(self._commit_changes if session.changed else "COMMIT")
            except psycopg.OperationalError as error:
                if connection.broken:
                    raise StoreError(
                        "store-uncertain",
                        f"the connection to {self.label} was lost during a commit, which may have succeeded",
                        "look whether the change was made, and make it again if not",
                    ) from error
                raise
            return done

        return await self._run(write)

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncGenerator[None]:
        """Keep other processes out, with the lock of an open transaction on a connection of its own.

        A transaction and not a session, so that a pooler in transaction mode does not give the lock away.
        """
        number = _lock_number(f"{self._schema.name} {name}")
        lock = _sql(f"BEGIN; SELECT pg_try_advisory_xact_lock({number})")

        def attempt(connection: psycopg.Connection[Row]) -> bool:
            cursor = connection.execute(lock)
            cursor.nextset()
            [is_held] = cursor.fetchone() or (False,)
            if not is_held:
                connection.execute("ROLLBACK")
            return bool(is_held)

        connection = await to_thread.run_sync(self._dedicated)
        try:
            while not await self._translated(attempt, connection):  # noqa: ASYNC110 - held by another process
                await anyio.sleep(_HOLD_PAUSE)
            lost: StoreError | None = None
            failed: Exception | None = None
            async with anyio.create_task_group() as group:

                async def check() -> None:
                    nonlocal lost
                    while lost is None:
                        await anyio.sleep(_HOLD_CHECK)
                        try:
                            await self._translated(lambda held: held.execute("SELECT 1"), connection)
                        except StoreError as error:
                            lost = error
                    group.cancel_scope.cancel()

                group.start_soon(check)
                try:
                    yield
                except Exception as error:  # raised below, so that it does not become an exception group
                    failed = error
                group.cancel_scope.cancel()
            if failed or lost:
                raise failed or lost  # pyright: ignore[reportGeneralTypeIssues]
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(connection.close)

    async def wait_for_change(self, seconds: float) -> None:
        """Wait for a notification of a writer, but no longer than ``seconds``."""
        with anyio.move_on_after(seconds):
            if self._address.has_pooler:
                await anyio.sleep_forever()
            try:
                if self._listener is None:
                    self._listener = await to_thread.run_sync(self._dedicated, f"LISTEN {self._channel}")
                await anyio.wait_readable(self._listener.fileno())
                with suppress(StopIteration):
                    for _ in self._listener.notifies(timeout=0):
                        pass
            except (psycopg.Error, StoreError, OSError):
                if self._listener is not None:
                    self._listener.close()
                    self._listener = None
                await anyio.sleep_forever()  # the caller polls, and the next call connects again

    async def close(self) -> None:
        """Close all connections after the current calls. Later calls raise ``StoreError``."""
        with self._lock:
            self._is_closed = True
        with CancelScope(shield=True):
            await to_thread.run_sync(self._close_idle)

    async def _run(self, use: Callable[[psycopg.Connection[Row]], T]) -> T:
        return await to_thread.run_sync(self._with_connection, use, limiter=self._limiter)

    def _with_connection(self, use: Callable[[psycopg.Connection[Row]], T]) -> T:
        """Call ``use`` with a connection, and again if that may help; see the rules of the module."""
        deadline = time.monotonic() + self._patience
        attempt = 0
        while True:
            connection: psycopg.Connection[Row] | None = None
            try:
                connection = self._connection()
                return use(connection)
            except psycopg.Error as error:
                # Without a connection, only what cannot be reached may be there a little later.
                failure = self._failure(error)
                is_lost = connection.broken if connection is not None else failure.reference in _TRANSIENT
                if is_lost or isinstance(error, _ON_A_NEW_CONNECTION):
                    self._close_idle()  # those are lost as well
                elif not isinstance(error, _AGAIN):
                    raise failure from error
                if time.monotonic() >= deadline:
                    raise failure from error
            finally:
                if connection is not None:
                    self._release(connection)
            time.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)] * random.uniform(0.5, 1))  # noqa: S311 - a pause
            attempt += 1

    def _connection(self) -> psycopg.Connection[Row]:
        with self._lock:
            if self._is_closed:
                raise StoreError("store-closed", f"{self.label} is closed", "open it again")
            if self._idle:
                return self._idle.pop()
        return self._address.connect()

    def _release(self, connection: psycopg.Connection[Row]) -> None:
        """Keep a connection for the next call, outside of any transaction, or close it."""
        if connection.info.transaction_status != pq.TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
        with self._lock:
            if not self._is_closed and connection.info.transaction_status == pq.TransactionStatus.IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
            if self._is_closed and self._listener is not None:
                idle.append(self._listener)
                self._listener = None
        for connection in idle:
            connection.close()

    def _dedicated(self, *statements: str) -> psycopg.Connection[Row]:
        """A connection that no other call uses, whose loss both sides notice soon."""
        connection = None
        try:
            connection = self._address.connect()
            if not self._address.has_pooler:
                connection.execute(_DEDICATED)
            for statement in statements:
                connection.execute(_sql(statement))
        except psycopg.Error as error:
            if connection is not None:
                connection.close()
            raise self._failure(error) from error
        return connection

    async def _translated(
        self, use: Callable[[psycopg.Connection[Row]], T], connection: psycopg.Connection[Row]
    ) -> T:
        try:
            return await to_thread.run_sync(use, connection)
        except psycopg.Error as error:
            raise self._failure(error) from error

    # Migrations

    def _migrate(self, connection: psycopg.Connection[Row]) -> None:
        """Apply the missing migrations. A current schema is only read, so a standby can be opened."""
        migrations, name = self._schema.postgres, self._schema.name
        # The table of versions belongs to all schemas, so their migrations wait for each other.
        locks = ", ".join(f"pg_advisory_xact_lock({_lock_number(each)})" for each in ("migrations", name))
        while self._read_version(connection) < len(migrations):
            connection.execute(
                _sql(
                    f"BEGIN; SET LOCAL lock_timeout = '{_MIGRATION_SECONDS}s'; SET LOCAL statement_timeout = 0;"
                    f" SELECT {locks}"
                )
            )
            version = self._read_version(connection)
            if version < len(migrations):  # otherwise another process was first
                try:
                    connection.execute(_SCHEMA_TABLE)
                    for statement in migrations[version]:
                        connection.execute(_sql(statement))
                except (errors.DuplicateTable, errors.DuplicateObject, errors.DuplicateFunction) as error:
                    raise StoreError(
                        "store-foreign",
                        f"{self.label} has tables of another program; nothing in it was changed",
                        "use an empty database",
                    ) from error
                connection.execute(_SET_VERSION, (name, version + 1))
            connection.execute("COMMIT")

    def _read_version(self, connection: psycopg.Connection[Row]) -> int:
        # Not to_regclass: it answers from a cache that may not know yet what another process has just created.
        exists = "SELECT 1 FROM pg_class WHERE relname = 'skillwire_schema' AND pg_table_is_visible(oid)"
        if connection.execute(exists).fetchone() is None:
            return 0
        query = "SELECT version FROM skillwire_schema WHERE name = %s"
        row = connection.execute(query, (self._schema.name,)).fetchone()
        return 0 if row is None else self._check_version(row)

    def _check_version(self, row: Row | None) -> int:
        [version] = row or (0,)
        if version > len(self._schema.postgres):
            raise newer_schema(version, len(self._schema.postgres))
        return version

    def _failure(self, error: psycopg.Error) -> StoreError:
        found = next((failure for kind, failure in _FAILURES if isinstance(error, kind)), None)
        if found is None and isinstance(error, psycopg.OperationalError):
            text = str(error)
            is_refused = "FATAL" in text or "password" in text
            refusals = _REFUSALS if is_refused else ()
            found = next((each for words, each in refusals if all(word in text for word in words)), _UNREACHABLE)
        problem = f"cannot be used ({error.sqlstate or type(error).__name__})"
        return (found or EngineFailure("store-unusable", problem, "look into the log of the server")).error(
            self.label
        )


class _PostgresSession(Session):
    dialect = "postgres"

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def rows(self, sql: str, *values: Any) -> list[Row]:
        # Binary results: bytes would otherwise arrive as hexadecimal text.
        cursor = self._connection.execute(_converted(sql), tuple(map(storable, values)), binary=True)
        return [restored(row) for row in cursor.fetchall()]

    def run(self, sql: str, *values: Any) -> int:
        return self._count(self._connection.execute(_converted(sql), tuple(map(storable, values))))

    def run_each(self, sql: str, values: Iterable[Sequence[Any]]) -> int:
        with self._connection.cursor() as cursor:
            cursor.executemany(_converted(sql), [tuple(map(storable, each)) for each in values])
            return self._count(cursor)

    def _count(self, cursor: psycopg.Cursor[Row]) -> int:
        count = max(0, cursor.rowcount)
        self.changed += count
        return count


_TRANSIENT = ("store-unreachable", "store-busy")
_SCHEMA_TABLE = "CREATE TABLE IF NOT EXISTS skillwire_schema (name text PRIMARY KEY, version integer NOT NULL)"
_SET_VERSION = (
    "INSERT INTO skillwire_schema (name, version) VALUES (%s, %s)"
    " ON CONFLICT (name) DO UPDATE SET version = excluded.version"
)


def _sql(text: str) -> Any:
    """A statement that is not a literal for type checkers, but made of constants only."""
    return text


@lru_cache(maxsize=1024)
def _converted(sql: str) -> Any:
    """A statement with the placeholders of psycopg. Its texts must not contain a question mark."""
    return sql.replace("%", "%%").replace("?", "%s")


def _lock_number(name: str) -> int:
    """The number of an advisory lock. They are shared by all programs that use the database."""
    return int.from_bytes(hashlib.sha256(f"skillwire {name}".encode()).digest()[:8], signed=True)


def _parse(url: str, patience: float) -> _Address:
    """The address in a URL of libpq, with our option ``pgbouncer``. No error repeats the URL."""
    parts = urlsplit(url)
    options = parts.query.split("&")  # not decoded: libpq and urllib disagree about the plus sign
    has_pooler = "pgbouncer=true" in options
    plain = urlunsplit(
        parts._replace(query="&".join(each for each in options if not each.startswith("pgbouncer=")))
    )
    try:
        given = {name: value for name, value in conninfo_to_dict(plain).items() if value is not None}
    except psycopg.ProgrammingError:
        raise StoreError(
            "store-address",
            "the address of the database is not a valid URL of PostgreSQL",
            "write postgresql://USER@HOST/NAME, and special characters as %XX",
        ) from None  # its message may contain the password
    parameters: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "skillwire",
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        **given,
    }
    if not has_pooler:
        settings = {
            "statement_timeout": f"{_STATEMENT_SECONDS}s",
            "lock_timeout": f"{max(1, round(patience * 1000))}ms",
            "idle_in_transaction_session_timeout": f"{_IDLE_SECONDS}s",
        }
        limits = [f"-c {name}={value}" for name, value in settings.items()]
        parameters["options"] = " ".join([*limits, str(given.get("options", ""))]).strip()
    host = str(given.get("host") or given.get("hostaddr") or "")
    where = f" on {host!r:.100}" if host and not host.startswith("/") else ""
    return _Address(parameters, f"the database {str(given.get('dbname', ''))!r:.100}{where}", has_pooler)
