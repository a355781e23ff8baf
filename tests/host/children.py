"""A host in a process of its own, which tests start, listen to and kill."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import Process

SECONDS = 60

# Every child: a host of the server at argv[2], with its memory at argv[1]; ``main(host)`` is what it does.
PRELUDE = """
import os, sys, threading, anyio
from skillwire.host.approvals import Answer, Policy, Rule
from skillwire.host.host import SkillHost

def say(text):
    print(text, flush=True)

def stop(*_, **__):
    say("stopped")
    threading.Event().wait()

async def yes(request):
    return Answer(True)

async def run(main, **options):
    options.setdefault("ask", yes)
    async with SkillHost.open(servers={"one": sys.argv[2]}, state=sys.argv[1], **options) as host:
        await host.settle()
        await main(host)
"""


class Child:
    """A process that says one line after another."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        self._process = process
        self._said = BufferedByteReceiveStream(process.stdout)
        self._heard = process.stdin

    async def line(self) -> str:
        with anyio.fail_after(SECONDS):
            return (await self._said.receive_until(b"\n", 1 << 20)).decode()

    async def tell(self) -> None:
        """Let it go on: it waits for a line."""
        await self._heard.send(b"go\n")

    async def kill(self) -> None:
        """``kill -9``."""
        self._process.send_signal(signal.SIGKILL)
        with anyio.fail_after(SECONDS):
            assert await self._process.wait() == -signal.SIGKILL

    async def end(self) -> None:
        with anyio.fail_after(SECONDS):
            assert await self._process.wait() == 0


@asynccontextmanager
async def child(code: str, *arguments: object) -> AsyncIterator[Child]:
    """Run ``code`` after the prelude. It is gone when the block ends, however that was."""
    command = [sys.executable, "-c", PRELUDE + code, *map(str, arguments)]
    async with await anyio.open_process(command, stdin=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            yield Child(process)
        finally:
            if process.returncode is None:
                process.kill()
                with anyio.CancelScope(shield=True):
                    await process.wait()
