"""What every engine guarantees: transactions, one writer, values, migrations, locks."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import from_thread
from hypothesis import given
from hypothesis import strategies as st

from skillwire.errors import LimitError, StoreError
from skillwire.store.database import Schema, restored, storable
from skillwire.store.place import open_database
from starting import python_command

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from databases import TestDatabases
    from skillwire.store.database import Database, Session

    Open = Callable[..., Awaitable[Database]]

pytestmark = pytest.mark.anyio

THINGS = Schema(
    "things",
    b"thng",
    (("CREATE TABLE things (name TEXT, data BLOB, number REAL, flag INTEGER)",),),
    (("CREATE TABLE things (name text, data bytea, number double precision, flag bigint)",),),
)
COUNT = "SELECT count(*) FROM things"
PUT = "INSERT INTO things (name, data, number, flag) VALUES (?, ?, ?, ?)"
HOSTILE = ["", "a\0b", "\ud800", "\x1a0000", "\x1a", "ü\udfff\0", "50% of ?", "\x1a\x1a001a"]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "own" / "things.db")
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def open_one(place: str) -> AsyncIterator[Open]:
    """Opens the database, as often as wanted, as several processes would."""
    opened: list[Database] = []

    async def open_one(schema: Schema = THINGS, **words: Any) -> Database:
        opened.append(await open_database(place, schema, **words))
        return opened[-1]

    yield open_one
    for each in opened:
        await each.close()


@pytest.fixture
async def database(open_one: Open) -> Database:
    return await open_one()


def put(name: str, data: bytes | None = None, number: float | None = None, flag: Any = 0) -> Callable[..., int]:
    return lambda session: session.run(PUT, name, data, number, flag)


# Values


async def test_values_come_back_and_are_found(database: Database) -> None:
    values = [b"\0\xff", None, b"\x1a"]
    for name in HOSTILE:
        await database.write(put(name, values[len(name) % 3], 0.1, 2**62))
    for name in HOSTILE:
        query = "SELECT name, data, number, flag FROM things WHERE name = ?"
        assert await database.rows(query, name) == [(name, values[len(name) % 3], 0.1, 2**62)]


async def test_truth_values_become_numbers(database: Database) -> None:
    for flag in (True, False):
        await database.write(put("x", flag=flag))
    assert await database.rows("SELECT flag FROM things WHERE flag = ?", True) == [(1,)]


async def test_a_statement_runs_for_each_of_many_values(database: Database) -> None:
    def work(session: Session) -> tuple[int, int]:
        return session.run_each(PUT, ([name, b"", 1.0, n] for n, name in enumerate(HOSTILE))), session.changed

    assert await database.write(work) == (len(HOSTILE), len(HOSTILE))
    assert await database.rows("SELECT name FROM things ORDER BY flag") == [(name,) for name in HOSTILE]
    assert await database.write(lambda session: session.run_each(PUT, [])) == 0


@given(one=st.text(st.characters()), other=st.text(st.characters()))
def test_texts_stay_different_and_come_back(one: str, other: str) -> None:
    assert restored((storable(one), 1, None)) == (one, 1, None)
    assert (storable(one) == storable(other)) == (one == other)
    assert not {"\0", *map(chr, range(0xD800, 0xE000))} & set(storable(one))


# Transactions


async def test_a_write_that_raises_changes_nothing(database: Database) -> None:
    def work(session: Session) -> None:
        put("x")(session)
        raise LimitError("too-many", "of them")

    with pytest.raises(LimitError):
        await database.write(work)
    assert await database.rows(COUNT) == [(0,)]
    await database.write(put("x"))
    assert await database.rows(COUNT) == [(1,)]


async def test_a_statement_that_is_wrong_is_an_error_of_the_store(database: Database) -> None:
    for call in (database.rows("SELECT nothing FROM nowhere"), database.write(lambda s: s.run("INSERT nonsense"))):
        with pytest.raises(StoreError) as caught:
            await call
        assert caught.value.hint
    assert await database.rows(COUNT) == [(0,)]


async def test_a_read_sees_one_snapshot(open_one: Open) -> None:
    one, other = await open_one(), await open_one()

    def work(session: Session) -> list[Any]:
        before = session.row(COUNT)
        from_thread.run(other.write, put("x"))
        return [before, session.row(COUNT)]

    assert await one.read(work) == [(0,), (0,)]
    assert await one.rows(COUNT) == [(1,)]


async def test_writers_run_one_at_a_time_so_that_they_can_look_first(open_one: Open) -> None:
    async def count(database: Database) -> None:
        def work(session: Session) -> None:
            [[number]] = session.rows("SELECT coalesce(max(flag), 0) FROM things")
            put("x", flag=number + 1)(session)

        for _ in range(10):
            await database.write(work)

    async with anyio.create_task_group() as group:
        for database in (await open_one(patience=60), await open_one(patience=60)):
            for _ in range(2):
                group.start_soon(count, database)
    assert await database.rows("SELECT count(DISTINCT flag), max(flag) FROM things") == [(40, 40)]


async def test_writers_that_need_no_look_do_not_wait_where_the_engine_allows(open_one: Open) -> None:
    one, other = await open_one(), await open_one(patience=0.1)

    def work(session: Session) -> None:
        put("x")(session)
        if session.dialect == "postgres":
            from_thread.run(lambda: other.write(put("y"), concurrent=True))

    await one.write(work)
    assert await one.rows(COUNT) == [(2 if one.dialect == "postgres" else 1,)]


async def test_a_writer_that_waits_too_long_is_told(open_one: Open) -> None:
    one, other = await open_one(), await open_one(patience=0.05)

    def work(session: Session) -> str:
        put("x")(session)
        with pytest.raises(StoreError) as caught:
            from_thread.run(other.write, put("y"))
        return caught.value.reference

    assert await one.write(work) == "store-busy"
    assert await other.rows("SELECT name FROM things") == [("x",)]


async def test_a_closed_database_refuses(database: Database) -> None:
    for _ in range(2):
        await database.close()
    for call in (database.rows(COUNT), database.read(lambda s: s.rows(COUNT)), database.write(put("x"))):
        with pytest.raises(StoreError) as caught:
            await call
        assert caught.value.reference == "store-closed"


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_it_runs_on_trio_too(open_one: Open, anyio_backend: str) -> None:
    database = await open_one()
    async with database.hold("x"):
        await database.write(put("x"))
        await database.wait_for_change(0.01)
    assert await database.rows(COUNT) == [(1,)]


# Migrations

LATER = replace(
    THINGS,
    sqlite=(*THINGS.sqlite, ("INSERT INTO things (name) VALUES ('migrated')",)),
    postgres=(*THINGS.postgres, ("INSERT INTO things (name) VALUES ('migrated')",)),
)


async def test_a_new_database_may_be_opened_by_several_at_once(open_one: Open) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(open_one)
    assert await (await open_one()).rows(COUNT) == [(0,)]


async def test_a_migration_is_applied_once_and_keeps_rows(open_one: Open) -> None:
    await (await open_one()).write(put("old"))
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(open_one, LATER)
    assert await (await open_one(LATER)).rows("SELECT name FROM things") == [("old",), ("migrated",)]


MIGRATE = """
import sys, anyio
from skillwire.store.database import Schema
from skillwire.store.place import open_database

steps = tuple((f"INSERT INTO things (name) VALUES ('{step}')",) for step in range(5))

async def main():
    first = (("CREATE TABLE things (name text)",),)
    schema = Schema("things", b"thng", first + steps, first + steps)
    print("ready", flush=True)
    for place in map(str.strip, sys.stdin):
        database = await open_database(place, schema, patience=60)
        rows = await database.rows("SELECT name FROM things")
        await database.close()
        print("".join(name for name, in rows), flush=True)

anyio.run(main)
"""


@pytest.mark.slow
def test_processes_may_create_and_migrate_a_database_at_once(
    place: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Each step is made once, and no process sees a database with some of them."""
    places = [str(tmp_path / f"own-{number}" / "things.db") for number in range(6)]
    if "://" in place:
        postgres: TestDatabases = request.getfixturevalue("postgres")
        places = [place, *(postgres.create() for _ in range(5))]
    with ExitStack() as stack:
        words = [*python_command(), "-c", MIGRATE]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes = [stack.enter_context(subprocess.Popen(words, **pipes)) for _ in range(3)]
        assert [told(each) for each in processes] == ["ready"] * 3
        for each in places:
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(f"{each}\n")
                process.stdin.flush()
            assert [told(process) for process in processes] == ["01234"] * 3


def told(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


async def test_a_newer_schema_is_refused_also_while_running(open_one: Open) -> None:
    older = await open_one()
    newer = await open_one(LATER)
    for call in (open_one(), older.write(put("x"))):
        with pytest.raises(StoreError) as caught:
            await call
        assert caught.value.reference == "store-newer"
    assert await newer.rows("SELECT name FROM things") == [("migrated",)]


async def test_a_migration_that_fails_leaves_everything_unchanged(open_one: Open) -> None:
    database = await open_one()
    half = ("INSERT INTO things (name) VALUES ('half')", "INSERT INTO nowhere VALUES (1)")
    broken = replace(THINGS, sqlite=(*THINGS.sqlite, half), postgres=(*THINGS.postgres, half))
    with pytest.raises(StoreError):
        await open_one(broken)
    assert await database.rows(COUNT) == [(0,)]
    await database.write(put("x"))


# Locks and changes


async def test_a_lock_is_held_by_one_and_then_by_the_next(open_one: Open) -> None:
    one, other = await open_one(), await open_one()
    happened: list[str] = []

    async def wait() -> None:
        async with other.hold("polling"):
            happened.append("other")

    async with anyio.create_task_group() as group, one.hold("polling"):
        group.start_soon(wait)
        async with other.hold("another"):  # only the same name excludes
            happened.append("one")
    assert happened == ["one", "other"]


async def test_an_error_of_the_block_ends_the_lock_and_goes_on(open_one: Open) -> None:
    one, other = await open_one(), await open_one()
    with pytest.raises(LimitError):
        async with one.hold("polling"):
            raise LimitError("too-many", "of them")
    async with other.hold("polling"):
        pass


async def test_a_change_wakes_a_waiter(open_one: Open) -> None:
    """On SQLite only a change of the same process does."""
    one, other = await open_one(), await open_one()
    writer = other if one.dialect == "postgres" else one

    async def keep_writing() -> None:
        while True:  # a wake-up before the waiter listens is lost
            await writer.write(put("x"))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(keep_writing)
            await one.wait_for_change(3600)
            group.cancel_scope.cancel()


async def test_a_waiter_does_not_wait_longer_than_it_wants(database: Database) -> None:
    with anyio.fail_after(60):
        await database.wait_for_change(0)
        await database.wait_for_change(0.01)
