"""What the database of a registry refuses by itself, what fsck finds, and what a killed process leaves."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from registries import ADA, ADMIN, BEN, NOW, RegistryBuilder, by
from skillwire.errors import StoreError
from skillwire.registry.contract import TokenInfo
from skillwire.registry.model import Namespace, SkillRef
from skillwire.registry.schema import SCHEMA
from skillwire.registry.store import SqlRegistryStore
from skillwire.skill import digest_of
from skillwire.store.place import open_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from databases import TestDatabases
    from skillwire.store.database import Database

pytestmark = pytest.mark.anyio

SKILL_MD = digest_of(b"---\nname: refunds\ndescription: Handles refunds for customers.\n---\nVersion 1.0.0.\n")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "registry.db")
    postgres: TestDatabases = request.getfixturevalue("postgres")
    return postgres.create(SCHEMA)


@pytest.fixture
async def database(place: str) -> AsyncIterator[Database]:
    """A registry with a bit of everything in it."""
    database = await open_database(place, SCHEMA)
    build = RegistryBuilder(SqlRegistryStore(database))
    await build.namespace("acme", ben="publisher")
    for version in ("1.0.0", "1.1.0"):
        await build.publish("acme/refunds", version)
    await build.store.yank(by(ADA), "acme/refunds", "1.1.0", "wrong")
    await build.store.change_namespace(by(ADA), Namespace("acme", reviewed=True))
    await build.publish("acme/refunds", "2.0.0", who=BEN)
    await build.store.put_token(by(ADA), TokenInfo("t", "t", "user:ada", None, None, None, "ada", NOW), "digest")
    yield database
    await database.close()


async def execute(database: Database, *statements: str) -> None:
    await database.write(lambda session: [session.run(statement) for statement in statements])


async def faults(database: Database) -> list[tuple[str, str]]:
    return [(fault.what, fault.where) async for fault in SqlRegistryStore(database).check()]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE version SET digest = 'other'",
        "UPDATE version SET version = '9.0.0' WHERE version = '1.0.0'",
        "UPDATE version SET published_by = 'eve'",
        "UPDATE version SET source = '{}x'",
        "UPDATE version SET manifest = (SELECT data FROM blob LIMIT 1)",
        "UPDATE version SET approved = 0",
        "DELETE FROM version WHERE version = '2.0.0'",
        "UPDATE version_file SET digest = 'other'",
        "DELETE FROM version_file",
        "UPDATE blob SET data = (SELECT manifest FROM version LIMIT 1)",
        "UPDATE blob SET digest = 'other'",
        "DELETE FROM blob",
        "UPDATE change SET actor = 'eve'",
        "DELETE FROM change",
        "UPDATE clock SET number = number - 1",
        "UPDATE clock SET number = number",
        "DELETE FROM clock",
        "DELETE FROM namespace",
        "UPDATE namespace SET key = 'other/'",
        "UPDATE skill SET path = 'acme/other'",
        "UPDATE review SET state = 'declined' WHERE state = 'replaced'",
        "DELETE FROM review",
        "UPDATE archive SET data = (SELECT manifest FROM version LIMIT 1)",
        "DELETE FROM archive",
        "INSERT INTO channel (skill_id, name, version_id) VALUES (1, 'beta', 999)",
    ],
)
async def test_the_database_refuses_to_change_what_never_changes(database: Database, statement: str) -> None:
    if "'replaced'" in statement:  # so that there is a closed review
        await execute(database, "UPDATE review SET state = 'replaced'")
    with pytest.raises(StoreError):
        await execute(database, statement)
    assert await faults(database) == []


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize("table", ["version", "version_file", "archive", "change", "clock", "skill", "namespace"])
async def test_replacing_a_row_in_sqlite_is_no_way_around(database: Database, table: str) -> None:
    with pytest.raises(StoreError):
        await execute(database, f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
@pytest.mark.parametrize("table", ["version", "version_file", "change", "clock", "blob"])
async def test_a_table_in_postgresql_cannot_be_emptied(database: Database, table: str) -> None:
    with pytest.raises(StoreError):
        await execute(database, f"TRUNCATE {table} CASCADE")


SERVED, FIRST = "acme/refunds", "acme/refunds@1.0.0"


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("UPDATE blob SET size = size + 1 WHERE digest = '{skill_md}'", ("blob-damaged", SKILL_MD)),
        ("UPDATE blob SET data = {other} WHERE digest = '{skill_md}'", ("blob-damaged", SKILL_MD)),
        ("DELETE FROM blob WHERE digest = '{skill_md}'", ("blob-missing", SKILL_MD)),
        ("UPDATE namespace SET bytes = bytes + 1", ("bytes-differ", "acme")),
        ("UPDATE version SET digest = '{skill_md}' WHERE version = '1.0.0'", ("manifest-differs", FIRST)),
        ("UPDATE version SET manifest = {other} WHERE version = '1.1.0'", ("manifest-damaged", f"{SERVED}@1.1.0")),
        ("DELETE FROM version_file WHERE path = 'SKILL.md' AND version_id = 1", ("manifest-differs", FIRST)),
        ("UPDATE version SET deleted = 'x' WHERE version = '2.0.0'", ("version-not-deleted", f"{SERVED}@2.0.0")),
        ("UPDATE channel SET version_id = 2", ("channel-invalid", f"{SERVED}@stable")),
        ("UPDATE served SET document = {other}", ("served-differs", SERVED)),
        ("UPDATE served SET public = 1", ("served-differs", SERVED)),
        ("DELETE FROM served", ("served-differs", SERVED)),
        ("UPDATE served SET path = 'acme/nowhere'", ("served-differs", "acme/nowhere")),
        ("DELETE FROM served_words", ("search-differs", SERVED)),
        ("UPDATE archive SET data = {other} WHERE version_id = 1", ("archive-damaged", FIRST)),
        (
            "UPDATE archive SET digest = (SELECT digest FROM blob WHERE digest = '{skill_md}'),"
            " data = (SELECT data FROM blob WHERE digest = '{skill_md}') WHERE version_id = 1",
            ("archive-differs", FIRST),
        ),
    ],
)  # fmt: skip
async def test_fsck_finds_damage(database: Database, damage: str, found: tuple[str, str]) -> None:
    assert await faults(database) == []
    if database.dialect == "sqlite":
        other = "x'00'"
        rows = await database.rows("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        weaken = [f"DROP TRIGGER {name}" for (name,) in rows]
        keys = ["PRAGMA defer_foreign_keys = ON"]
        if "DELETE FROM blob" in damage:
            pytest.skip("SQLite checks the reference at the end; the test on PostgreSQL shows what fsck finds")
    else:
        other = "CAST('x' AS BYTEA)"
        weaken, keys = [], ["SET LOCAL session_replication_role = replica"]
    statement = damage.format(skill_md=SKILL_MD, other=other)
    await execute(database, *weaken, *keys, statement)
    assert found in await faults(database)


PUBLISHER = """
import sys, anyio
sys.path.insert(0, {tests!r})
from registries import ADA, ADMIN, RegistryBuilder, by
from skillwire.registry.schema import SCHEMA
from skillwire.registry.store import SqlRegistryStore
from skillwire.store.place import open_database

async def main():
    build = RegistryBuilder(SqlRegistryStore(await open_database({place!r}, SCHEMA, patience=60)))
    for number in range({first}, 1000):
        published = await build.publish("acme/refunds", f"3.0.{{number}}", body=f"Body {{number}}.\\n" * 200)
        print(published.outcome, published.version, flush=True)

anyio.run(main)
"""


@pytest.mark.slow
async def test_a_killed_publisher_leaves_whole_versions_only(place: str, database: Database) -> None:
    """Each of the processes is killed at another point of its work; the next one repeats and goes on."""
    store = SqlRegistryStore(database)
    await store.change_namespace(by(ADA), Namespace("acme"))
    acknowledged: list[str] = []
    for attempt in range(8):
        first = max(0, len(acknowledged) - 1)  # the answer to the last one may have been lost: it is repeated
        program = PUBLISHER.format(tests=str(Path(__file__).parents[1]), place=place, first=first)
        command = [sys.executable, "-c", program]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
            assert process.stdout is not None
            for _ in range(attempt + 1):
                outcome, version = process.stdout.readline().split()
                if version not in acknowledged:
                    acknowledged.append(version)
                    assert outcome in ("created", "unchanged")
            process.send_signal(signal.SIGKILL)
        assert await faults(database) == []
        history = {line.version for line in await store.history(ADA, "acme/refunds")}
        assert set(acknowledged) <= history
        newest = await store.release(ADA, SkillRef("acme/refunds"))
        assert newest is not None
        for file in newest.manifest.files:
            data = await store.read(ADA, SkillRef("acme/refunds"), file.path)
            assert data is not None
            assert digest_of(data) == file.digest
        numbers = [line.number for line in await store.changes(0)]
        assert numbers == list(range(1, await store.clock() + 1))


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
async def test_publishers_in_several_replicas_share_one_order(place: str, database: Database) -> None:
    replicas = [await open_database(place, SCHEMA) for _ in range(3)]
    await SqlRegistryStore(database).change_namespace(by(ADMIN), Namespace("acme"))
    seen: list[str] = []

    async def publish(replica: Database, number: int) -> None:
        build = RegistryBuilder(SqlRegistryStore(replica))
        for index in range(3):
            published = await build.publish("acme/other", body=f"{number} {index}.\n")
            seen.append(published.version)

    async with anyio.create_task_group() as group:
        for number, replica in enumerate(replicas):
            group.start_soon(publish, replica, number)
    assert sorted(seen) == [f"0.1.{number}" for number in range(9)]
    lines = await SqlRegistryStore(database).changes(0)
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert await faults(database) == []
    for replica in replicas:
        await replica.close()
