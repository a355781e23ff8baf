"""The shape of a store on disk, and how an older one becomes the current one.

- ``PRAGMA user_version`` counts the migrations that were made. Each is one transaction: made as a whole, or not.
- Any number of processes may open a new or an old store at once: whoever comes second finds the work done, because
  the version is read again under the write lock.
- A store of a newer version, or a database of another program, is refused, and nothing in it is touched.
- The log only grows: the database itself refuses to change or remove a line. That holds our own mistakes back, not
  the owner of the file.

A migration that has been released is never edited. What comes next is appended to ``MIGRATIONS``.
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
"""Stands in the header of the file, so that the database of another program is never taken for a store."""

MIGRATIONS: tuple[Migration, ...] = (
    (
        "CREATE TABLE origins (label TEXT NOT NULL PRIMARY KEY, settings TEXT NOT NULL, added_at REAL NOT NULL)"
        " WITHOUT ROWID",
        # One row per origin: a listing is written and read as a whole, so that rows per skill would only cost.
        "CREATE TABLE entries (label TEXT NOT NULL PRIMARY KEY, entries TEXT NOT NULL, at REAL NOT NULL,"
        " is_complete INTEGER NOT NULL)",
        # A1: the contents are one value. They are never searched, and half of them would be another approval.
        "CREATE TABLE approvals (origin TEXT NOT NULL, uri TEXT NOT NULL, contents TEXT NOT NULL,"
        " who TEXT NOT NULL, at REAL NOT NULL, grants TEXT NOT NULL, PRIMARY KEY (origin, uri))",
        # AUTOINCREMENT: the number of a line is never given to another.
        "CREATE TABLE log (number INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL, origin TEXT NOT NULL,"
        " uri TEXT NOT NULL, who TEXT NOT NULL, at REAL NOT NULL, facts TEXT NOT NULL)",
        # Each ends in the number of the line, so that the newest lines come off it without sorting.
        "CREATE INDEX log_of_origin ON log (origin)",
        "CREATE INDEX log_of_uri ON log (uri)",
        "CREATE TRIGGER log_is_not_changed BEFORE UPDATE ON log"
        " BEGIN SELECT RAISE(ABORT, 'the log only grows'); END",
        "CREATE TRIGGER log_is_not_cut BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the log only grows'); END",
        # INSERT OR REPLACE removes a row without asking the trigger above.
        "CREATE TRIGGER log_is_not_replaced BEFORE INSERT ON log"
        " WHEN EXISTS (SELECT 1 FROM log WHERE number = NEW.number)"
        " BEGIN SELECT RAISE(ABORT, 'the log only grows'); END",
    ),
    (
        # An answer is in the row of its question: whoever answers first finds none there. ``content`` is what a
        # decision about a skill answers; empty where nothing can be verified.
        "CREATE TABLE questions (id TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, origin TEXT NOT NULL,"
        " uri TEXT NOT NULL, content TEXT NOT NULL, question TEXT NOT NULL, asked_at REAL NOT NULL,"
        " waits_until REAL NOT NULL, answer TEXT)",
        # The newest decision about each skill, however much was read since.
        "CREATE INDEX log_of_decisions ON log (origin, uri) WHERE what IN ('approved', 'denied', 'revoked')",
    ),
    (
        # Counts what is news to people. SQLite's own counter would also count that an asker still waits.
        "CREATE TABLE news (number INTEGER NOT NULL)",
        "INSERT INTO news (number) VALUES (0)",
    ),
    (
        # A declined skill can be enabled again, which is a decision too.
        "DROP INDEX log_of_decisions",
        "CREATE INDEX log_of_decisions ON log (origin, uri)"
        " WHERE what IN ('approved', 'denied', 'revoked', 'enabled')",
    ),
    (
        # Fuller entries of skills that were listed short and asked for. Before, hosts kept them in the listing.
        "CREATE TABLE asked_entries (label TEXT NOT NULL, uri TEXT NOT NULL, entry TEXT NOT NULL,"
        " PRIMARY KEY (label, uri)) WITHOUT ROWID",
        "DELETE FROM entries",
    ),
)


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Make every migration that this store has not had; ``StoreError`` if it is not ours to change."""
    with transaction(connection, "DEFERRED"):  # only looks, so that opening a current store writes nothing
        version = read_version(connection, len(migrations))
    while version < len(migrations):
        with transaction(connection):
            version = read_version(connection, len(migrations))
            if version < len(migrations):  # else another process was first
                version = _apply(connection, version + 1, migrations[version])


def read_version(connection: sqlite3.Connection, newest: int = len(MIGRATIONS)) -> int:
    """How many migrations the store has had; ``StoreError`` if more than ``newest``, or if it is no store.

    Inside a transaction only: another process may be making a store of an empty file just now.
    """
    version = _number(connection, "PRAGMA user_version")
    application = _number(connection, "PRAGMA application_id")
    is_empty = version == application == 0 and not _number(connection, "SELECT count(*) FROM sqlite_master")
    if application != APPLICATION_ID and not is_empty:
        raise StoreError(
            "store-foreign",
            "the file is a database, but not one that skillwire made; nothing in it was changed",
            "name another file",
        )
    if version > newest:
        raise StoreError(
            "store-newer",
            f"the store was written by a newer skillwire (version {version} of the store, {newest} is known here);"
            " nothing in it was changed",
            "install that newer version, and restart what still runs the older one",
        )
    return version


@contextmanager
def transaction(
    connection: sqlite3.Connection, kind: Literal["DEFERRED", "IMMEDIATE"] = "IMMEDIATE"
) -> Generator[None]:
    """All that happens inside, or nothing. ``IMMEDIATE`` waits for another writer before it begins."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have ended it already
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
