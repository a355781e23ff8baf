"""The audit log recovers from failures and never stops the gateway."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from gateway.stage import flat_skill, gateway_of
from skillwire import MemoryCatalog
from skillwire.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.gateway.gateway import Gateway

pytestmark = pytest.mark.anyio

FLAT = "skill://acme/flat/SKILL.md"


async def served(gateway: Gateway) -> list[Any]:
    """The lines, after everything that waits was written or failed."""
    await gateway.audit.flush()
    return [line for line in await gateway.store.lines() if line.what == "served"]


@pytest.mark.parametrize(
    "failure",
    [StoreError("store-busy", "the store is busy", "try again"), ValueError("a mistake of ours")],
    ids=["store-busy", "bug"],
)
async def test_what_could_not_be_written_is_noted_again(
    state: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    async with gateway_of(state, {"acme": MemoryCatalog([flat_skill()])}) as gateway:

        async def fail(lines: object) -> int:
            raise failure

        with monkeypatch.context() as patch:
            patch.setattr(gateway.store, "log_news", fail)
            await gateway.catalog.get_skill(FLAT)
            assert await served(gateway) == []
        await gateway.catalog.get_skill(FLAT)
        assert len(await served(gateway)) == 1


async def test_a_damaged_line_is_another_line(state: Path) -> None:
    """Other lines are not lost, and the gateway continues."""
    async with gateway_of(state, {"acme": MemoryCatalog([flat_skill()])}) as gateway:
        await gateway.catalog.get_skill(FLAT)
        await served(gateway)
    with closing(sqlite3.connect(state / "host.sqlite3")) as store, store:
        store.execute(
            "INSERT INTO log (what, origin, uri, who, at, facts, kind)"
            " VALUES ('served', 'acme', 'skill://flat/SKILL.md', 'gateway', 1.0, '{', '')"
        )
    async with gateway_of(state, {"acme": MemoryCatalog([flat_skill()])}) as gateway:
        await gateway.catalog.get_skill(FLAT)
        await gateway.audit.flush()
    with closing(sqlite3.connect(state / "host.sqlite3")) as store:
        [[count]] = store.execute("SELECT count(*) FROM log WHERE what = 'served'").fetchall()
    assert count == 3
