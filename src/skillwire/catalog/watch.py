"""File events of the operating system, as batches of paths below a folder.

The first batch always means "anything may have changed", so that changes between the scan and the start of the
watch are not missed. A folder with a file name that is not valid text cannot be watched
and is rescanned regularly.

Setting up a watch takes time for each folder below it, and blocks the whole process. A server must answer requests
meanwhile, so a large folder is watched by another process that runs this file as a program. It prints one line of
JSON per batch (the changed paths, or ``null`` for "anything may have changed") and ends when its standard input
closes. If it ends earlier, this process watches.
"""

from __future__ import annotations

import json
import logging
import select
import signal
import sys
from contextlib import aclosing, suppress
from subprocess import DEVNULL
from threading import Event
from typing import TYPE_CHECKING, Protocol, cast

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.to_thread import run_sync

from skillwire.catalog.safe_open import is_ignored
from skillwire.errors import UpstreamError
from skillwire.limits import MIB

# This file is the only one that uses private names of watchfiles. The reasons: the public functions report only
# after their first timeout that the watch is in place, and `awatch` cannot be cancelled before that timeout, so
# every server would stop half a second late.
try:
    from watchfiles._rust_notify import RustNotify
    from watchfiles._rust_notify import WatchfilesRustInternalError as NameNotTextError
except ImportError as error:
    raise ImportError("this version of watchfiles has no RustNotify; install watchfiles>=1.1,<2") from error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator
    from pathlib import Path

    from anyio.abc import ByteReceiveStream

RESCAN_SECONDS = 10.0
PROGRAM = "skillwire.catalog.watch"
_DEBOUNCE_MS = 100
_STEP_MS = 20  # also the delay until a stop is noticed
_POLL_MS = 300
_MAX_PATHS = 10_000
_MAX_BATCH_BYTES = 256 * MIB  # of the other process: far more than its paths need
_END: list[str] = []  # returned by `next` at the end; no batch is this object

log = logging.getLogger("skillwire.catalog")


async def watch_folder(
    root: Path, *, recursive: bool = True, is_large: bool = False
) -> AsyncGenerator[tuple[str, ...] | None]:
    """Batches of changed paths, relative to ``root``. ``None`` means that anything may have changed."""
    sources = [_watch_here(root, recursive=recursive)]  # never ends
    if is_large:
        sources.insert(0, _watch_elsewhere(root))
    for source in sources:
        async with aclosing(source) as batches:
            async for batch in batches:
                paths = None if batch is None else tuple(_relevant(root, batch))
                if paths or paths is None:
                    yield paths
        log.info("the process that watches the folder %r ended; watching it in this process", root.name)


async def _watch_here(root: Path, *, recursive: bool) -> AsyncGenerator[list[str] | None]:
    while True:
        stop = Event()
        batches = watch(str(root), stop, recursive=recursive)
        try:
            # The thread cannot be cancelled. It is abandoned, and ends soon after `stop` is set.
            while (batch := await run_sync(next, batches, _END, abandon_on_cancel=True)) is not _END:
                yield batch
        except OSError as error:
            raise UpstreamError(
                "watch-failed",
                f"the folder {root.name!r} cannot be watched: {error.strerror or error}",
                "raise the system's limit for watches (fs.inotify.max_user_watches), or serve without watching",
            ) from error
        except NameNotTextError:
            yield None
        finally:
            stop.set()
        await anyio.sleep(RESCAN_SECONDS)


async def _watch_elsewhere(root: Path) -> AsyncGenerator[list[str] | None]:
    """The batches of another process, until it ends. Its errors occur again when this process watches."""
    command = [sys.executable, "-I", "-m", PROGRAM, str(root)]
    try:
        process = await anyio.open_process(command, stderr=DEVNULL)
    except OSError:
        return
    async with process:
        output = BufferedByteReceiveStream(cast("ByteReceiveStream", process.stdout))
        try:
            while True:
                yield json.loads(await output.receive_until(b"\n", _MAX_BATCH_BYTES))
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
        # The last name may be that of a file or of a folder: what was removed cannot be looked up.
        if not is_ignored(name, is_folder=True) and not is_ignored(name, is_folder=False):
            yield inside


class Stop(Protocol):
    """A ``threading.Event``, or another object with this method."""

    def is_set(self) -> bool:
        """Whether to stop watching."""
        ...


def watch(root: str, stop: Stop, *, recursive: bool = True) -> Iterator[list[str] | None]:
    """Yield batches of changed paths until ``stop`` is set. The first is ``None``: the watch is in place."""
    with RustNotify([root], False, False, _POLL_MS, recursive, True) as notify:
        yield None
        while not isinstance(changes := notify.watch(_DEBOUNCE_MS, _STEP_MS, 0, stop), str):
            yield None if len(changes) > _MAX_PATHS else [path for _, path in changes]


class _InputClosed:
    """Set once standard input is closed."""

    def is_set(self) -> bool:
        return self.wait(0)

    def wait(self, seconds: float) -> bool:
        return bool(select.select([sys.stdin], [], [], seconds)[0])


def main() -> None:
    """The program: print batches until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    closed = _InputClosed()
    while not closed.is_set():
        try:
            for batch in watch(sys.argv[1], closed):
                print(json.dumps(batch), flush=True)
        except NameNotTextError:
            print(json.dumps(None), flush=True)
            closed.wait(RESCAN_SECONDS)


if __name__ == "__main__":
    main()
