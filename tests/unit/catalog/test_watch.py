"""A folder is watched here or, if it is large, by another process: the same is said either way."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import aclosing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from skillwire.catalog import watch
from skillwire.catalog.watch import watch_folder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

pytestmark = pytest.mark.anyio

PATIENCE = 60
both = pytest.mark.parametrize("is_large", [False, True], ids=["here", "elsewhere"])


async def heard(batches: AsyncGenerator[tuple[str, ...] | None], path: str) -> None:
    """Wait until ``path`` is said to have changed."""
    while path not in (await anext(batches) or ()):
        pass


def watchers(root: Path) -> list[int]:
    """The processes that watch ``root``."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if watch.PROGRAM.encode() in words and str(root).encode() in words:
            found.append(int(place.name))
    return found


async def gone(root: Path) -> None:
    while watchers(root):  # noqa: ASYNC110 - a process that ends tells nobody but its parent
        await anyio.sleep(0.01)


@both
async def test_changes_are_reported(tmp_path: Path, is_large: bool) -> None:
    name = "new/café.md"
    with anyio.fail_after(PATIENCE):
        async with aclosing(watch_folder(tmp_path, is_large=is_large)) as batches:
            assert await anext(batches) is None  # it stands
            assert bool(watchers(tmp_path)) is is_large
            (tmp_path / "new").mkdir()
            await heard(batches, "new")
            (tmp_path / name).write_text("x")
            await heard(batches, name)
            (tmp_path / ".git").mkdir()
            (tmp_path / "last").mkdir()
            assert ".git" not in (await anext(batches) or ())
        await gone(tmp_path)


async def test_a_folder_with_a_name_that_is_no_text_is_rescanned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No watch is to be had there; it comes back when the name is gone."""
    monkeypatch.setattr(watch, "RESCAN_SECONDS", 0)
    bad = tmp_path / os.fsdecode(b"caf\xe9")
    with anyio.fail_after(PATIENCE):
        async with aclosing(watch_folder(tmp_path)) as batches:
            assert await anext(batches) is None
            bad.mkdir()
            assert [await anext(batches) for _ in range(3)] == [None] * 3
            bad.rmdir()
            for number in count():
                (tmp_path / f"new-{number}").mkdir()
                if await anext(batches) is not None:
                    break


@pytest.fixture
def script(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a shell script the program that watches: it starts quicker than Python."""

    def use(text: str) -> None:
        program = tmp_path_factory.mktemp("program") / "watcher"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o700)
        monkeypatch.setattr(watch.sys, "executable", str(program))

    return use


async def test_a_watch_that_is_cancelled_leaves_no_process(tmp_path: Path, script: Callable[[str], None]) -> None:
    script("trap '' TERM; echo null; read line")
    standing = anyio.Event()

    async def follow() -> None:
        async with aclosing(watch_folder(tmp_path, is_large=True)) as batches:
            async for _ in batches:
                standing.set()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await standing.wait()
            assert len(watchers(tmp_path)) == 1
            group.cancel_scope.cancel()
        await gone(tmp_path)


async def test_if_the_other_process_ends_the_folder_is_watched_here(
    tmp_path: Path, script: Callable[[str], None]
) -> None:
    script("echo null; kill -9 $$")
    with anyio.fail_after(PATIENCE):
        async with aclosing(watch_folder(tmp_path, is_large=True)) as batches:
            assert await anext(batches) is None
            assert await anext(batches) is None  # anything may have changed meanwhile
            assert not watchers(tmp_path)
            (tmp_path / "new").mkdir()
            await heard(batches, "new")


async def test_if_no_process_can_be_had_the_folder_is_watched_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch.sys, "executable", str(tmp_path / "nothing"))
    with anyio.fail_after(PATIENCE):
        async with aclosing(watch_folder(tmp_path, is_large=True)) as batches:
            assert await anext(batches) is None
            assert not watchers(tmp_path)


@pytest.mark.parametrize("folder", [b"text", b"caf\xe9"], ids=["text", "not-text"])
async def test_a_process_whose_starter_dies_ends(tmp_path: Path, folder: bytes) -> None:
    """Its standard input ends, also while it waits for the next scan of a folder that cannot be watched."""
    (tmp_path / os.fsdecode(folder)).mkdir()
    with anyio.fail_after(PATIENCE):
        command: list[Any] = [sys.executable, "-I", "-m", watch.PROGRAM, tmp_path]
        async with await anyio.open_process(command) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            assert await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 100) == b"null"
            await process.stdin.aclose()
            assert await process.wait() == 0


async def test_a_batch_of_very_many_changes_means_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_MAX_PATHS", 2)
    with anyio.fail_after(PATIENCE):
        async with aclosing(watch_folder(tmp_path)) as batches:
            assert await anext(batches) is None
            for number in count():
                for name in "abc":
                    (tmp_path / f"{name}-{number}").mkdir()
                if await anext(batches) is None:
                    break


async def test_a_watch_that_is_cancelled_ends_its_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when nothing changes: a server must not wait for its watcher when it stops."""
    waiting, ended = threading.Event(), threading.Event()
    real = watch.watch

    def observed(*args: Any, **options: Any) -> Any:
        for batch in real(*args, **options):
            yield batch
            waiting.set()
        ended.set()

    async def follow() -> None:
        async with aclosing(watch_folder(tmp_path)) as batches:
            async for _ in batches:
                pass

    monkeypatch.setattr(watch, "watch", observed)
    async with anyio.create_task_group() as group:
        group.start_soon(follow)
        assert await anyio.to_thread.run_sync(waiting.wait, PATIENCE)
        group.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(ended.wait, PATIENCE)
