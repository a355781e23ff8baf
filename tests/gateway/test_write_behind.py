"""Fetched files wait a moment, can be read meanwhile, and are written together: nothing is lost."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import anyio
import pytest

from gateway.stage import SECONDS, gateway_of, hostile
from rules import rule
from skillwire.limits import MIB
from skillwire.skill import Resource, digest_of
from skillwire.skill.verify import VerifiedFile
from skillwire.store.content_cache import ContentCache, WriteBehind

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

NOTES = "skill://acme/flat/notes.md"


@pytest.fixture
def cache(tmp_path: Path) -> ContentCache:
    return ContentCache(tmp_path / "cache", forbidden=[])


def file_of(data: bytes, name: str = "a.md") -> VerifiedFile:
    return VerifiedFile(f"skill://flat/{name}", data, digest_of(data))


def promised(file: VerifiedFile) -> Resource:
    return Resource(file.uri, file.digest, len(file.data))


@rule("C1")
async def test_what_waits_is_found_and_is_then_on_the_disk(cache: ContentCache) -> None:
    keeper, files = WriteBehind("acme", cache), [file_of(b"one"), file_of(b"two"), file_of(b"one", "b.md")]
    for file in [*files, files[0]]:
        keeper.put(file)
    assert cache.usage().files == 0
    assert [await keeper.get(promised(file)) for file in files] == [b"one", b"two", b"one"]
    assert await keeper.get(promised(file_of(b"three"))) is None
    assert await keeper.get(Resource("skill://flat/a.md", None, None)) is None
    async with anyio.create_task_group() as group:
        group.start_soon(keeper.run)
        with anyio.fail_after(SECONDS):
            while keeper.waiting[0]:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert cache.usage().files == 3
    assert keeper.waiting == (0, 0)
    assert [await keeper.get(promised(file)) for file in files] == [b"one", b"two", b"one"]


async def test_what_waits_when_the_gateway_ends_is_kept(cache: ContentCache) -> None:
    keeper = WriteBehind("acme", cache)
    async with anyio.create_task_group() as group:
        group.start_soon(keeper.run)
        await anyio.wait_all_tasks_blocked()
        keeper.put(file_of(b"one"))
        group.cancel_scope.cancel()
    assert cache.usage().files == 1


@rule("B1")
async def test_only_so_much_waits(cache: ContentCache) -> None:
    """Files that do not fit are fetched again."""
    keeper = WriteBehind("acme", cache)
    files = [file_of(bytes([number]) * 8 * MIB) for number in range(6)]
    for file in files:
        keeper.put(file)
    found = [await keeper.get(promised(file)) is not None for file in files]
    assert found == [True] * 4 + [False] * 2


async def test_a_file_that_is_larger_than_all_that_may_wait_is_kept(cache: ContentCache) -> None:
    keeper = WriteBehind("acme", cache)
    file = file_of(b"m" * 33 * MIB)
    keeper.put(file)
    assert await keeper.get(promised(file)) is not None


async def test_a_disk_that_hangs_does_not_keep_the_gateway_from_ending(
    cache: ContentCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillwire.store.content_cache._SHUTDOWN_SECONDS", 0.01)
    hangs, works_again = threading.Event(), threading.Event()

    def put(origin: str, file: VerifiedFile) -> None:
        hangs.set()
        works_again.wait(SECONDS)

    monkeypatch.setattr(cache, "put", put)
    keeper = WriteBehind("acme", cache)
    try:
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(keeper.run)
                keeper.put(file_of(b"one"))
                await anyio.to_thread.run_sync(hangs.wait)
                group.cancel_scope.cancel()
    finally:
        works_again.set()


async def test_what_cannot_be_written_is_said_and_lets_go_of(
    cache: ContentCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def put(origin: str, file: VerifiedFile) -> None:
        raise ValueError("a mistake of ours")

    monkeypatch.setattr(cache, "put", put)
    keeper = WriteBehind("acme", cache)
    async with anyio.create_task_group() as group:
        group.start_soon(keeper.run)
        for data in (b"one", b"two"):
            keeper.put(file_of(data))
            with anyio.fail_after(SECONDS):
                while keeper.waiting[0]:
                    await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert len([record for record in caplog.records if record.name == "skillwire.cache"]) == 2
    assert keeper.waiting == (0, 0)


@rule("C1")
async def test_a_file_is_fetched_once(state: Path) -> None:
    """Requests before the write are served from memory, later ones from the disk."""
    server = hostile()
    async with gateway_of(state, {"acme": server}) as gateway:
        for _ in range(3):
            assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"
        with anyio.fail_after(SECONDS):
            while not (await anyio.to_thread.run_sync(gateway.cache.usage)).files:
                await anyio.lowlevel.checkpoint()
        assert (await gateway.catalog.read_file(NOTES)).data == b"notes\n"
    assert len([ask for ask in server.asked if ask.method == "resources/read"]) == 1
