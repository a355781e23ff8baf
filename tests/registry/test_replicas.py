"""Two registries on one PostgreSQL database: what one publishes, the other serves and its subscribers hear."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest

from registry.replicas import Replica
from registry.stage import operator, publish, refunds, running_registry
from registry.test_notices import REFUNDS, listening
from rotation import every_setting
from rules import rule
from skillwire.registry.app import Registry
from skillwire.registry.model import Namespace
from skillwire.registry.schema import SCHEMA
from skillwire.registry.store import SqlRegistryStore
from skillwire.skill import digest_of
from skillwire.store.place import open_database

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.store.database import Database, Row

pytestmark = pytest.mark.anyio


@every_setting
@rule("S1")
async def test_what_one_replica_publishes_the_other_serves_and_tells(mode: str, postgres_url: str) -> None:
    async with running_registry(place=postgres_url) as one, running_registry(place=postgres_url) as other:
        await one.namespace("acme", roles={"user:eve": "reader"})
        eve = await one.token("user:eve")
        async with one.api(await one.token("user:operator")) as ada:
            await publish(ada, "acme/refunds", refunds("One.\n"))
            async with listening(other, eve, mode, [REFUNDS]) as ears, other.mcp(eve, mode) as wire:
                await publish(ada, "acme/refunds", refunds("Two.\n"))
                text = (await wire.call("resources/read", uri=REFUNDS))["contents"][0]["text"]
                assert "Two." in text  # at once, not when it is heard of
                await ears.wait_for(f"updated {REFUNDS}", "list")
                found = await wire.call("skills/get", uri="skill://acme/@0.1.0/refunds/SKILL.md")
                assert found["skill"]["frontmatter"]["name"] == "refunds"
            async with other.mcp(mode=mode) as stranger:
                assert (await stranger.call("skills/list"))["skills"] == []


class Tidied(SqlRegistryStore):
    """A store that tells when it is tidied."""

    times = 0

    async def tidy(self, now: float) -> int:
        done = await super().tidy(now)
        self.times += 1
        return done


async def test_one_replica_tidies_until_it_ends_and_then_the_other_does(postgres_url: str) -> None:
    databases = [await open_database(postgres_url, SCHEMA) for _ in range(2)]
    first, second = map(Tidied, databases)
    one, other = (Registry(store, hold=each.hold) for store, each in zip((first, second), databases, strict=True))
    async with anyio.create_task_group() as group:
        owner = anyio.CancelScope()

        async def own() -> None:
            with owner:
                await one.tidy()

        with anyio.fail_after(60):
            group.start_soon(own)
            while not first.times:  # noqa: ASYNC110 - the store under test sets no event
                await anyio.sleep(0.01)
            group.start_soon(other.tidy)
            refused = "SELECT 1 FROM pg_stat_activity WHERE query = 'ROLLBACK' AND datname = current_database()"
            # Until the other one has asked for the lock, in vain.
            while not await databases[0].rows(refused):  # noqa: ASYNC110 - another session cannot set an event
                await anyio.sleep(0.01)
            assert second.times == 0
            owner.cancel()
            while not second.times:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    assert first.times == 1
    for store in (first, second):
        await store.close()


@pytest.mark.slow
async def test_when_the_replica_that_tidies_is_killed_another_one_goes_on(
    postgres_url: str, tmp_path: Path
) -> None:
    database = await open_database(postgres_url, SCHEMA)
    store = SqlRegistryStore(database)
    two_days_ago = replace(operator(), at=time.time() - 2 * 24 * 3600)
    await store.create_namespace(operator(), Namespace("acme"))

    async def until(query: str, expected: list[Row]) -> None:
        with anyio.fail_after(60):
            while await database.rows(query) != expected:  # noqa: ASYNC110 - of another process
                await anyio.sleep(0.02)

    one, other = (Replica(postgres_url, tmp_path) for _ in range(2))
    try:
        await store.put_blob(two_days_ago, "acme", digest_of(b"one"), b"one")
        one.start()
        await one.until_ready()
        await until("SELECT count(*) FROM blob", [(0,)])
        other.start()
        await other.until_ready()
        await until(
            "SELECT 1 FROM pg_stat_activity WHERE query = 'ROLLBACK' AND datname = current_database()", [(1,)]
        )  # the other one asked for the lock, in vain
        await store.put_blob(two_days_ago, "acme", digest_of(b"two"), b"two")
        one.kill()
        await until("SELECT count(*) FROM blob", [(0,)])
    finally:
        one.kill()
        other.kill()
        await store.close()


async def test_of_replicas_that_start_at_once_one_makes_the_first_administrator(postgres_url: str) -> None:
    databases = [await open_database(postgres_url, SCHEMA) for _ in range(3)]
    made: list[str | None] = []

    async def start(database: Database) -> None:
        made.append(await Registry(SqlRegistryStore(database), hold=database.hold).first_administrator())

    async with anyio.create_task_group() as group:
        for each in databases:
            group.start_soon(start, each)
    assert len(made) == 3
    assert len([token for token in made if token]) == 1
    for each in databases:
        await each.close()
