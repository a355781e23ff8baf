"""File events of the operating system, as batches of paths below a folder.

The first batch always means "anything may have changed", so that changes between the scan and the start of the
watch are not missed.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import aclosing, suppress
from subprocess import DEVNULL
from threading import Event
from typing import TYPE_CHECKING, cast

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.to_thread import run_sync

from skillwire.catalog import watcher
from skillwire.catalog.records import is_ignored
from skillwire.errors import UpstreamError
from skillwire.limits import MIB

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable
    from pathlib import Path

    from anyio.abc import ByteReceiveStream

_END: list[str] = []  # returned by `next` at the end; no batch is this object
_MOST_BYTES = 256 * MIB  # of one batch of the watcher process: far more than its paths need

log = logging.getLogger("skillwire.catalog")


async def watch_folder(
    root: Path, *, recursive: bool = True, is_large: bool = False
) -> AsyncGenerator[tuple[str, ...] | None]:
    """Batches of changed paths, relative to ``root``. ``None`` means that anything may have changed.

    A large folder is watched by another process (``watcher.py``). If that process ends, this one watches.
    """
    if is_large:
        async with aclosing(_watch_elsewhere(root)) as batches:
            async for batch in batches:
                paths = None if batch is None else tuple(_relevant(root, batch))
                if paths or paths is None:
                    yield paths
        log.info("the watcher process of the folder %r ended; watching it in this process", root.name)
    async with aclosing(_watch_here(root, recursive=recursive)) as batches:
        async for batch in batches:
            yield batch


async def _watch_here(root: Path, *, recursive: bool) -> AsyncGenerator[tuple[str, ...] | None]:
    while True:
        stop = Event()
        batches = watcher.watch(str(root), stop, recursive=recursive)
        try:
            # The thread cannot be cancelled. It is abandoned, and ends soon after `stop` is set.
            while (batch := await run_sync(next, batches, _END, abandon_on_cancel=True)) is not _END:
                paths = None if batch is None else tuple(_relevant(root, batch))
                if paths or paths is None:
                    yield paths
        except OSError as error:
            raise _failed(root, error.strerror or str(error)) from error
        except watcher.NameNotTextError:
            yield None
        finally:
            stop.set()
        await anyio.sleep(watcher.RESCAN_SECONDS)


def _failed(root: Path, why: str) -> UpstreamError:
    return UpstreamError(
        "watch-failed",
        f"the folder {root.name!r} cannot be watched: {why}",
        "raise the system's limit for watches (fs.inotify.max_user_watches), or serve without watching",
    )


async def _watch_elsewhere(root: Path) -> AsyncGenerator[list[str] | None]:
    """The batches of a watcher process, until it ends. Its errors occur again when this process watches."""
    command = [sys.executable, "-I", watcher.__file__, str(root)]
    try:
        process = await anyio.open_process(command, stderr=DEVNULL)
    except OSError:
        return
    async with process:
        output = BufferedByteReceiveStream(cast("ByteReceiveStream", process.stdout))
        try:
            while True:
                yield json.loads(await output.receive_until(b"\n", _MOST_BYTES))
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound, ValueError):
            return
        finally:
            with suppress(ProcessLookupError):
                process.kill()


def _relevant(root: Path, paths: Iterable[str]) -> Iterable[str]:
    prefix = f"{root}/"
    for path in paths:
        inside = path.removeprefix(prefix) if path.startswith(prefix) else ""
        *folders, name = inside.split("/")
        if any(is_ignored(folder, is_folder=True) for folder in folders):
            continue
        if not is_ignored(name, is_folder=True) and not is_ignored(name, is_folder=False):
            yield inside
