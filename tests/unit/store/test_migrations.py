"""How an older store becomes the current one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from skillwire.errors import StoreError
from skillwire.store.schema import HOST_SCHEMA
from skillwire.store.sqlite import migrate, read_version, transaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skillwire.store.database import Migration, Schema

NEXT = (
    "CREATE TABLE moods (mood TEXT)",
    "INSERT INTO moods SELECT who FROM log",
)
MIGRATIONS = HOST_SCHEMA.sqlite
BROKEN = ("CREATE TABLE half (x)", "INSERT INTO nowhere VALUES (1)")


def with_tables(*migrations: Migration) -> Schema:
    return replace(HOST_SCHEMA, sqlite=migrations)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as connection:
        yield connection


def shape(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()


def version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def test_a_new_file_becomes_a_store_of_the_newest_version(connection: sqlite3.Connection) -> None:
    migrate(connection, HOST_SCHEMA)
    assert version(connection) == len(MIGRATIONS)
    assert connection.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"skwr"),)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_migrating_twice_changes_nothing(connection: sqlite3.Connection) -> None:
    migrate(connection, HOST_SCHEMA)
    before = shape(connection), connection.total_changes, connection.execute("PRAGMA schema_version").fetchone()
    migrate(connection, HOST_SCHEMA)
    after = shape(connection), connection.total_changes, connection.execute("PRAGMA schema_version").fetchone()
    assert after == before
    assert not connection.in_transaction


def test_an_old_store_gets_what_it_has_not_had_and_keeps_what_it_holds(connection: sqlite3.Connection) -> None:
    migrate(connection, HOST_SCHEMA)
    connection.execute(
        "INSERT INTO log (what, origin, uri, who, at, facts, kind) VALUES ('read', 'a', 'b', 'ada', 1, '{}', '')"
    )
    migrate(connection, with_tables(*MIGRATIONS, NEXT))
    assert version(connection) == len(MIGRATIONS) + 1
    assert connection.execute("SELECT mood FROM moods").fetchall() == [("ada",)]
    assert connection.execute("SELECT count(*) FROM log").fetchone() == (1,)


def test_a_migration_that_fails_leaves_the_store_as_it_was(connection: sqlite3.Connection) -> None:
    migrate(connection, HOST_SCHEMA)
    before = shape(connection)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, with_tables(*MIGRATIONS, BROKEN))
    assert shape(connection) == before
    assert version(connection) == len(MIGRATIONS)
    assert not connection.in_transaction


def test_the_migrations_before_one_that_fails_stay_made(connection: sqlite3.Connection) -> None:
    """Each is a transaction of its own, so that the next attempt goes on from there."""
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, with_tables(*MIGRATIONS, NEXT, BROKEN))
    assert version(connection) == len(MIGRATIONS) + 1
    migrate(connection, with_tables(*MIGRATIONS, NEXT, ("CREATE TABLE whole (x)",)))
    assert version(connection) == len(MIGRATIONS) + 2


def test_a_newer_store_is_refused(connection: sqlite3.Connection) -> None:
    migrate(connection, with_tables(*MIGRATIONS, NEXT))
    before = shape(connection)
    with pytest.raises(StoreError) as caught:
        migrate(connection, HOST_SCHEMA)
    assert caught.value.reference == "store-newer"
    assert shape(connection) == before
    assert not connection.in_transaction


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE bookmarks (url)",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 7",
    ],
    ids=["tables", "version", "application"],
)
def test_the_database_of_another_program_is_refused(connection: sqlite3.Connection, made: str) -> None:
    connection.execute(made)
    before = shape(connection), version(connection)
    with pytest.raises(StoreError) as caught:
        migrate(connection, HOST_SCHEMA)
    assert caught.value.reference == "store-foreign"
    assert (shape(connection), version(connection)) == before


def test_a_migration_that_another_made_in_the_meantime_is_not_made_again(
    connection: sqlite3.Connection, tmp_path: Path
) -> None:
    """The version is read again under the write lock: here, the other is done just before we get it."""
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        begun: list[str] = []

        def overtake(statement: str) -> None:
            begun.append(statement)
            if begun.count("BEGIN IMMEDIATE") == 1 and statement == "BEGIN IMMEDIATE":
                connection.set_trace_callback(None)
                migrate(other, HOST_SCHEMA)

        connection.set_trace_callback(overtake)
        migrate(connection, HOST_SCHEMA)
    assert "BEGIN IMMEDIATE" in begun
    assert version(connection) == len(MIGRATIONS)


def test_a_transaction_that_fails_is_undone_and_the_failure_goes_on(connection: sqlite3.Connection) -> None:
    def interrupted() -> None:
        with transaction(connection):
            connection.execute("INSERT INTO origins VALUES ('a', '{}', 1)")
            raise KeyboardInterrupt

    migrate(connection, HOST_SCHEMA)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert connection.execute("SELECT count(*) FROM origins").fetchone() == (0,)
    with transaction(connection):
        assert read_version(connection, HOST_SCHEMA) == len(MIGRATIONS)
