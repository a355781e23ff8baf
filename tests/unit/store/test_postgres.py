"""What only a server can do wrong: lost connections, refused users, commits that may have succeeded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import anyio
import psycopg
import pytest
from anyio.abc import SocketAttribute

from skillwire.errors import StoreError
from skillwire.registry.schema import SCHEMA as REGISTRY_SCHEMA
from skillwire.store.place import open_database, without_password, without_place
from skillwire.store.postgres import MOST_CONNECTIONS, PostgresDatabase
from skillwire.store.records import LogLine
from skillwire.store.schema import HOST_SCHEMA
from skillwire.store.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import SocketStream

    from databases import TestDatabases
    from skillwire.store.database import Schema, Session

pytestmark = pytest.mark.anyio
LINE = LogLine("read", "acme", "skill://a/SKILL.md", "ada", 1.0)


@pytest.fixture
async def store(postgres_store: str) -> AsyncIterator[Store]:
    store = await Store.open(postgres_store)
    yield store
    await store.close()


def run(url: str, *statements: str) -> list[Any]:
    """Run statements on a connection that is not ours; the rows of the last one."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def cut(url: str) -> None:
    """End all other connections to the database, as a restart does."""
    run(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid != pg_backend_pid()",
    )


async def refusal(url: str) -> StoreError:
    with pytest.raises(StoreError) as caught:
        await PostgresDatabase.open(url, HOST_SCHEMA, patience=0)
    shown = f"{caught.value} {caught.value!r} {caught.value.__cause__}"
    assert "s3cret" not in shown
    assert caught.value.hint
    return caught.value


# Connections


async def test_a_lost_connection_is_replaced(store: Store, postgres_store: str) -> None:
    for count in (1, 2, 3):
        await store.log(LINE)
        cut(postgres_store)
        assert len(await store.lines()) == count
        cut(postgres_store)


async def test_a_connection_that_is_lost_in_a_write_loses_and_doubles_nothing(
    store: Store, postgres_store: str
) -> None:
    attempts: list[int] = []

    def work(session: Session) -> None:
        session.run("UPDATE news SET number = number + 1")
        attempts.append(len(attempts))
        if len(attempts) < 3:
            cut(postgres_store)
            session.rows("SELECT 1")

    await store.database.write(work)
    assert attempts == [0, 1, 2]
    assert await store.version() == 1


async def test_a_connection_that_is_lost_during_the_commit_is_reported(store: Store, postgres_store: str) -> None:
    """A trigger that runs at the commit ends the connection."""
    run(
        postgres_store,
        "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$",
        "CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON log DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION cut()",
    )
    with pytest.raises(StoreError) as caught:
        await store.log(LINE)
    assert caught.value.reference == "store-uncertain"
    assert await store.lines() == []


async def test_a_process_that_stops_in_a_write_does_not_stop_others_for_ever(store: Store) -> None:
    [[seconds]] = await store.database.rows("SHOW idle_in_transaction_session_timeout")
    assert seconds == "15s"


async def test_a_cancelled_call_leaves_no_transaction_open(store: Store, postgres_store: str) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(store.log, LINE)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    await store.log(LINE)
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
    assert run(postgres_store, query) == [(0,)]


async def test_a_pooler_in_transaction_mode_needs_an_option(postgres_store: str) -> None:
    mark = "&" if "?" in postgres_store else "?"
    store = await Store.open(f"{postgres_store}{mark}pgbouncer=true")
    for _ in range(8):  # more often than psycopg waits before it prepares a statement
        await store.log(LINE)
        assert await store.database.rows("SELECT count(*) FROM pg_prepared_statements") == [(0,)]
        await store.database.wait_for_change(0.01)
    async with store.database.hold("polling"):
        pass
    await store.close()


async def test_a_host_and_a_registry_may_create_their_tables_in_one_database_at_once(postgres_url: str) -> None:
    async def create(schema: Schema) -> None:
        await (await open_database(postgres_url, schema)).close()

    async with anyio.create_task_group() as group:
        for schema in (HOST_SCHEMA, REGISTRY_SCHEMA):
            group.start_soon(create, schema)
    assert run(postgres_url, "SELECT count(*) FROM skillwire_schema") == [(2,)]


async def test_calls_wait_for_a_connection_when_all_are_taken(store: Store, postgres_store: str) -> None:
    """The number of connections is bounded, and none is opened for a call that can have an idle one."""
    counted: list[int] = []

    def count(session: Session) -> None:
        query = "SELECT count(*), pg_sleep(0.01) FROM pg_stat_activity WHERE datname = current_database()"
        counted.append(session.rows(query)[0][0])

    async with anyio.create_task_group() as group:
        for _ in range(10 * MOST_CONNECTIONS):
            group.start_soon(store.database.read, count)
    assert len(counted) == 10 * MOST_CONNECTIONS
    assert max(counted) <= MOST_CONNECTIONS
    cut(postgres_store)
    async with anyio.create_task_group() as group:  # all of them are lost, and all calls are answered
        for _ in range(2 * MOST_CONNECTIONS):
            group.start_soon(store.database.read, count)
    assert max(counted) <= MOST_CONNECTIONS


# Locks


HOLD = """
import anyio, sys
from skillwire.store.place import open_database
from skillwire.store.schema import HOST_SCHEMA

async def main():
    database = await open_database(sys.argv[1], HOST_SCHEMA)
    async with database.hold("polling"):
        print("held", flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_lock_moves_when_its_owner_is_killed(
    engine: str, tmp_path: Any, request: pytest.FixtureRequest
) -> None:
    place = tmp_path / "own" / "store.db"
    if engine == "postgres":
        place = request.getfixturevalue("postgres_url")
    async with await anyio.open_process([sys.executable, "-c", HOLD, str(place)], stderr=None) as owner:
        assert owner.stdout is not None
        try:
            assert b"held" in await owner.stdout.receive()
            database = await open_database(place, HOST_SCHEMA)
            with anyio.move_on_after(0.2) as waited:
                async with database.hold("polling"):
                    pass
            assert waited.cancelled_caught
        finally:
            owner.kill()
        with anyio.fail_after(60):
            async with database.hold("polling"):
                await database.close()


async def test_a_lock_that_is_lost_ends_its_block(store: Store, postgres_store: str) -> None:
    async def be_cut() -> None:
        async with store.database.hold("polling"):
            cut(postgres_store)
            await anyio.sleep_forever()

    with anyio.fail_after(60), pytest.raises(StoreError) as caught:
        await be_cut()
    assert caught.value.reference == "store-unreachable"


# What is refused


def other_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"stranger:s3cret@{parts.netloc.rpartition('@')[2]}"))


async def test_a_database_that_cannot_be_used_is_told_by_its_reason(postgres_url: str) -> None:
    name = urlsplit(postgres_url).path
    expected = {
        postgres_url.replace(name, "/nowhere"): "store-missing",
        other_user(postgres_url): "store-denied",
        "postgresql://ada:s3cret@127.0.0.1:1/skills": "store-unreachable",
        "postgresql://ada:s3cret@host/skills?nonsense=s3cret": "store-address",
        "postgresql://ada:s3%cret@host/skills": "store-address",
    }
    assert {url: (await refusal(url)).reference for url in expected} == expected


async def test_a_pooler_that_refuses_settings_is_told_with_the_option_that_helps() -> None:
    """The answer is that of PgBouncer 1.18."""
    fields = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0"
    answer = b"E" + (len(fields) + 4).to_bytes(4) + fields

    async def refuse(client: SocketStream) -> None:
        async with client:
            await client.receive()
            await client.send(answer)

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, refuse)
        port = listener.extra(SocketAttribute.local_port)
        found = await refusal(
            f"postgresql://ada:s3cret@127.0.0.1:{port}/skills?sslmode=disable&gssencmode=disable"
        )
        assert found.reference == "store-pooler"
        assert "pgbouncer=true" in found.hint
        group.cancel_scope.cancel()


async def test_tables_of_another_program_are_refused_and_not_touched(postgres_url: str) -> None:
    run(postgres_url, "CREATE TABLE log (line text)")
    assert (await refusal(postgres_url)).reference == "store-foreign"
    query = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'"
    assert run(postgres_url, query) == [("log",)]


async def test_a_database_that_only_reads_is_read_and_not_written(
    store: Store, postgres: TestDatabases, postgres_store: str
) -> None:
    await store.log(LINE)
    name = urlsplit(postgres_store).path[1:]
    run(postgres.server, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    standby = await Store.open(postgres_store, patience=0)
    assert len(await standby.lines()) == 1
    with pytest.raises(StoreError) as caught:
        await standby.log(LINE)
    assert caught.value.reference == "store-readonly"
    await standby.close()


async def test_the_log_only_grows(store: Store, postgres_store: str) -> None:
    await store.log(LINE)
    for statement in ("UPDATE log SET who = 'eve'", "DELETE FROM log", "TRUNCATE log"):
        with pytest.raises(psycopg.errors.RaiseException):
            run(postgres_store, statement)
    with pytest.raises(psycopg.errors.GeneratedAlways):
        run(postgres_store, "INSERT INTO log VALUES (1, 'read', 'a', 'b', 'eve', 1, '{}', '')")
    assert [line.by for line in await store.lines()] == ["ada"]


async def test_a_long_uri_can_be_stored(store: Store) -> None:
    """An index of PostgreSQL would refuse it: it is long, and cannot be compressed."""
    uri = "skill://" + "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(4000))
    await store.log(LogLine("approved", "acme", uri, "ada", 1.0))
    assert [line.uri for line in await store.lines(uri=uri)] == [uri]
    assert len(await store.decisions("acme", uri)) == 1


def test_an_address_is_shown_without_its_password() -> None:
    url = "postgresql://ada:s3cret@db.example:5433/skills?sslmode=require&password=s3cret"
    assert without_password(url) == "postgresql://ada@db.example:5433/skills?sslmode=require"
    assert without_place(url) == "postgresql:///skills"
