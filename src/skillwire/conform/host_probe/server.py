"""The origins where a host can reach them: over HTTP in this process, or as commands that the host starts."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import uvicorn

from skillwire.conform.host_probe.honeypot import FIRST, ORIGINS
from skillwire.conform.host_probe.observations import Seen, observed_server
from skillwire.server.http import HttpServer, listen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from pathlib import Path

_LOOPBACK = "127.0.0.1"
_MODULE = "skillwire.conform.host_probe.stdio"
_MAX_LINE = 1024 * 1024
_MAX_SEEN = 100_000


class Served(NamedTuple):
    """How a host reaches the origins, and what has been seen so far."""

    config: dict[str, Any]  # an ``mcpServers`` document
    url: str | None  # of the first origin
    command: tuple[str, ...] | None
    seen: Callable[[], list[Seen]]


@asynccontextmanager
async def served_over_http() -> AsyncGenerator[Served]:
    """Every origin on a port of its own."""
    seen: list[Seen] = []

    def note(one: Seen) -> None:
        if len(seen) < _MAX_SEEN:
            seen.append(one)

    listeners = {origin.label: listen(_LOOPBACK, 0) for origin in ORIGINS}
    https = [HttpServer(observed_server(origin, note), listeners[origin.label]) for origin in ORIGINS]
    webs = [
        _Web(uvicorn.Config(http.app(), log_level="critical", ws="none", timeout_graceful_shutdown=1))
        for http in https
    ]
    servers = {
        origin.label: {"type": "http", "url": http.url} for origin, http in zip(ORIGINS, https, strict=True)
    }
    try:
        async with anyio.create_task_group() as group:
            for web, listener in zip(webs, listeners.values(), strict=True):
                group.start_soon(web.serve, [listener])
            try:
                yield Served({"mcpServers": servers}, servers[FIRST.label]["url"], None, lambda: list(seen))
            finally:
                for http, web in zip(https, webs, strict=True):
                    http.drain()
                    web.should_exit = True
    finally:
        for listener in listeners.values():
            listener.close()


class _Web(uvicorn.Server):
    """A web server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Nothing is captured."""
        yield


@asynccontextmanager
async def served_on_stdio(folder: Path) -> AsyncGenerator[Served]:
    """Every origin as a command; the processes write what they see to files in ``folder``."""
    log = folder / "seen.jsonl"
    commands = {origin.label: (sys.executable, "-m", _MODULE, origin.label, str(log)) for origin in ORIGINS}
    servers = {label: {"command": words[0], "args": list(words[1:])} for label, words in commands.items()}
    yield Served({"mcpServers": servers}, None, commands[FIRST.label], lambda: read_log(log))


def read_log(log: Path) -> list[Seen]:
    """What the processes wrote; a line that was cut short is left out."""
    if not log.exists():
        return []
    found: list[Seen] = []
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                found.append(Seen(**json.loads(line[:_MAX_LINE])))
            except (ValueError, TypeError):
                continue
    return found[:_MAX_SEEN]
