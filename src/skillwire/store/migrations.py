"""The schema of a SQLite store, and the migrations from older versions.

- ``PRAGMA user_version`` is the number of migrations that were applied. Each is one transaction.
- Several processes may open a new or an old store at once. The version is read again under the write lock, so a
  migration is applied once.
- A store of a newer version and a database of another program are refused and not changed.
- The log is append-only: triggers refuse to change or remove a line. They protect against defects in this package,
  not against the owner of the file.

A released migration is never edited. New ones are appended to ``MIGRATIONS``.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

from skillwire.errors import StoreError

if TYPE_CHECKING:
    import sqlite3
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


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Apply the missing migrations; ``StoreError`` if the file is not a store, or is newer."""
    with transaction(connection, "DEFERRED"):  # read only, so that opening a current store writes nothing
        version = read_version(connection, len(migrations))
    while version < len(migrations):
        with transaction(connection):
            version = read_version(connection, len(migrations))
            if version < len(migrations):  # otherwise another process was first
                version = _apply(connection, version + 1, migrations[version])


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
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have rolled it back already
            connection.execute("ROLLBACK")
        raise


def _apply(connection: sqlite3.Connection, number: int, migration: Migration) -> int:
    for statement in migration:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {number}")
    return number


def _number(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]
