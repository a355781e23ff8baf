"""Replicas of a registry as processes, the proxy of the documentation in front of them, and a relay that cuts."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import httpx2
import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

HAPROXY_CFG: Final = Path(__file__).parents[2] / "examples" / "registry" / "haproxy.cfg"
_FRONT: Final = 8000
_PATIENCE: Final = 60


class Replica:
    """A process of ``skillwire registry`` at a port that stays the same."""

    def __init__(self, database: str, state: Path, port: int | None = None) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._database = database
        self._state = state
        self.token: str | None = None  # of the first administrator, if this process made it
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        command = [sys.executable, "-m", "skillwire", "registry", "--http", f"127.0.0.1:{self.port}"]
        command += ["--proxy", "127.0.0.1"]
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "SKILLWIRE_"))}
        with (self._state / f"{self.port}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--database", self._database, "--state", str(self._state), "--json"],
                env={**kept, "HOME": str(self._state)},
                stdout=subprocess.PIPE,
                stderr=log,
            )

    async def until_ready(self) -> None:
        """Wait until it answers."""
        assert self._process is not None
        assert self._process.stdout is not None
        text = b""
        while not text.rstrip().endswith(b"}"):
            line = await anyio.to_thread.run_sync(self._process.stdout.readline)
            assert line, (self._state / f"{self.port}.log").read_text()
            text += line
        document = json.loads(text)
        assert document["url"] == self.url
        self.token = document["token"] or self.token

    def kill(self) -> None:
        """Kill it, as a power failure would."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def stop(self) -> None:
        """Stop it as systemd does, and wait until it has ended."""
        assert self._process is not None
        self._process.terminate()
        self._process.communicate()
        assert self._process.returncode == 0
        self._process = None

    @property
    def words(self) -> str:
        """What it printed to stderr, in all its runs."""
        return (self._state / f"{self.port}.log").read_text()


@contextmanager
def haproxy(replicas: list[Replica], folder: Path) -> Iterator[str]:
    """The address of HAProxy, with the configuration of the documentation. Only its addresses are replaced."""
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if program is None:
        reason = "HAProxy is missing: run tests/registry/install_haproxy.sh"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    port, text = free_port(), HAPROXY_CFG.read_text()
    for documented, real in [(_FRONT, port), *((_FRONT + n, each.port) for n, each in enumerate(replicas, 1))]:
        assert text.count(f"127.0.0.1:{documented}\n") + text.count(f"127.0.0.1:{documented} ") == 1
        text = text.replace(f"127.0.0.1:{documented}", f"127.0.0.1:{real}")
    configuration = folder / "haproxy.cfg"
    configuration.write_text(text)
    log = folder / "haproxy.log"
    with log.open("wb") as output:
        process = subprocess.Popen([program, "-db", "-f", str(configuration)], stdout=output, stderr=output)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


async def until_all_up(url: str, count: int) -> None:
    """Wait until the proxy has found so many replicas: as many answers in a row come from it."""
    with anyio.fail_after(_PATIENCE):
        good = 0
        async with httpx2.AsyncClient() as web:
            while good < 4 * count:
                with suppress(httpx2.HTTPError):
                    good = good + 1 if (await web.get(f"{url}/healthz")).status_code == 200 else 0


class Relay:
    """A way to a Unix socket over TCP, whose connections can be reset."""

    def __init__(self, target: str) -> None:
        self.port = 0
        self._target = target
        self._clients: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Relay]:
        """Relay until the block ends."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.reset()

    def reset(self) -> None:
        """Reset every connection, on the side of the program that uses it."""
        for client in self._clients:
            raw = client.get_extra_info("socket")
            with suppress(OSError):  # it was closed just now
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        self._clients.add(client)
        try:
            from_server, server = await asyncio.open_unix_connection(self._target)
        except OSError:
            self._clients.discard(client)
            client.transport.abort()
            return
        copying = [asyncio.create_task(_copy(*pair)) for pair in ((reader, server), (from_server, client))]
        await asyncio.wait(copying, return_when=asyncio.FIRST_COMPLETED)
        self._clients.discard(client)
        for writer in (client, server):
            writer.transport.abort()
        await asyncio.wait(copying)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
