"""The servers of the probe. They record every request, and run over HTTP here, or over stdio as commands.

A host starts one on stdio with ``python -m skillwire.conform.host_probe.servers LABEL FILE``.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import uvicorn
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND
from pydantic import BaseModel

from skillwire.catalog.memory import MemoryCatalog
from skillwire.client.shapes import as_list, as_object, as_text
from skillwire.conform.host_probe.honeypot import ENOUGH, FIRST, LABELS, REPEATED, SERVERS
from skillwire.conform.report import Exchange, shorten
from skillwire.server.endpoints import Dialects
from skillwire.server.http import HttpServer, listen
from skillwire.server.skills import Skills, build_server, serve_stdio
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping
    from pathlib import Path

    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.lowlevel import Server

    from skillwire.conform.host_probe.honeypot import BaitServer
    from skillwire.server.dialect import Context

_SMALL_PAGE = 4
_OF_SKILLS = ("skills/", "resources/directory/")
_KEPT = ("uri", "cursor", "name")
_LOOPBACK = "127.0.0.1"
_MODULE = "skillwire.conform.host_probe.servers"
_MAX_LINE = 1024 * 1024
_MAX_SEEN = 100_000


@dataclass(frozen=True, slots=True)
class ObservedRequest:
    """One recorded request. ``given`` are the URIs of the entries in its response."""

    origin: str
    method: str
    params: dict[str, Any]
    declares: bool | None  # whether it declares the extension; None if it has no capabilities
    given: list[str] = field(default_factory=list[str])
    next_cursor: str | None = None
    request: dict[str, Any] = field(default_factory=dict[str, Any])
    answer: Any = None

    @property
    def uri(self) -> str:
        """The URI parameter of the request."""
        return as_text(self.params.get("uri"))

    @property
    def exchange(self) -> Exchange:
        """The request and the response."""
        return Exchange(self.request, self.answer)

    def to_json(self) -> dict[str, Any]:
        """The record as a line of the log that the processes share."""
        return asdict(self)


class Observer:
    """The outermost middleware, so that it sees every request and the final response."""

    def __init__(self, bait: BaitServer, note: Callable[[ObservedRequest], None]) -> None:
        self._bait = bait
        self._note = note
        self._repeated = 0

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer like the bait server, and record the request."""
        if ctx.request_id is None:
            return await call_next(ctx)
        try:
            result = self._bait.falsified(ctx.method, _as_object(await self._answer(ctx, call_next)))
        except MCPError as error:
            self._write(ctx, {"error": {"code": error.code, "message": error.message}})
            raise
        if self._repeated >= ENOUGH:
            result.pop("nextCursor", None)
        self._write(ctx, {"result": result})
        return result

    async def _answer(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if self._bait.settings is None and ctx.method.startswith(_OF_SKILLS):
            raise MCPError(code=METHOD_NOT_FOUND, message="Method not found")
        if self._bait.settings is None and ctx.method == "resources/read":
            raise MCPError(code=INVALID_PARAMS, message="Resource not found")  # it has no index
        params = dict(ctx.params or {})
        if self._bait.repeats and params.get("cursor") == REPEATED:
            self._repeated += 1
            ctx = replace(ctx, params={key: value for key, value in params.items() if key != "cursor"})
        return await call_next(ctx)

    def _write(self, ctx: Context, outcome: dict[str, Any]) -> None:
        params = dict(ctx.params or {})
        result = as_object(outcome.get("result"))
        entries = [*as_list(result.get("skills")), result.get("skill")]
        envelope = {"jsonrpc": "2.0", "id": ctx.request_id}
        self._note(
            ObservedRequest(
                self._bait.label,
                ctx.method,
                {key: params[key] for key in _KEPT if key in params},
                _declares(ctx.method, params),
                [as_text(as_object(entry).get("uri")) for entry in entries if entry],
                as_text(result.get("nextCursor")) or None,
                shorten({**envelope, "method": ctx.method, "params": params}),
                shorten({**envelope, **outcome}),
            )
        )


def _declares(method: str, params: Mapping[str, Any]) -> bool | None:
    """K3: the declaration in the handshake, or in each request of the stateless era."""
    meta = as_object(params.get("_meta"))
    declared = params.get("capabilities") if method == "initialize" else None
    declared = next((meta[key] for key in meta if key.endswith("/clientCapabilities")), declared)
    capabilities = as_object(declared)
    return None if declared is None else EXTENSION_ID in as_object(capabilities.get("extensions"))


def observed_server(bait: BaitServer, note: Callable[[ObservedRequest], None]) -> Server[Any]:
    """A server for ``bait``; ``note`` receives every request."""
    skills = Skills(
        MemoryCatalog(bait.skills), page_size=_SMALL_PAGE, watch=False, dialects=Dialects(fallback="never")
    )
    server = build_server(skills, name=bait.label)
    server.middleware.insert(0, Observer(bait, note))
    return server


def _as_object(result: HandlerResult) -> dict[str, Any]:
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dict(result or {})


class ServedProbe(NamedTuple):
    """How a host reaches the servers, and the requests so far."""

    config: dict[str, Any]  # an ``mcpServers`` document
    url: str | None  # of the first server
    command: tuple[str, ...] | None
    seen: Callable[[], list[ObservedRequest]]


@asynccontextmanager
async def served_over_http() -> AsyncGenerator[ServedProbe]:
    """Run every server over HTTP, each on its own port."""
    seen: list[ObservedRequest] = []

    def note(one: ObservedRequest) -> None:
        if len(seen) < _MAX_SEEN:
            seen.append(one)

    listeners = {bait.label: listen(_LOOPBACK, 0) for bait in SERVERS}
    https = [HttpServer(observed_server(bait, note), listeners[bait.label]) for bait in SERVERS]
    webs = [
        _Web(uvicorn.Config(http.app(), log_level="critical", ws="none", timeout_graceful_shutdown=1))
        for http in https
    ]
    servers = {bait.label: {"type": "http", "url": http.url} for bait, http in zip(SERVERS, https, strict=True)}
    try:
        async with anyio.create_task_group() as group:
            for web, listener in zip(webs, listeners.values(), strict=True):
                group.start_soon(web.serve, [listener])
            try:
                yield ServedProbe({"mcpServers": servers}, servers[FIRST.label]["url"], None, lambda: list(seen))
            finally:
                for http, web in zip(https, webs, strict=True):
                    http.drain()
                    web.should_exit = True
    finally:
        for listener in listeners.values():
            listener.close()


class _Web(uvicorn.Server):
    """A web server that does not handle signals."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture no signals."""
        yield


@asynccontextmanager
async def served_on_stdio(folder: Path) -> AsyncGenerator[ServedProbe]:
    """Offer every server as a command. The processes write their requests to a log in ``folder``."""
    log = folder / "seen.jsonl"
    commands = {bait.label: (sys.executable, "-m", _MODULE, bait.label, str(log)) for bait in SERVERS}
    servers = {label: {"command": words[0], "args": list(words[1:])} for label, words in commands.items()}
    yield ServedProbe({"mcpServers": servers}, None, commands[FIRST.label], lambda: read_log(log))


def read_log(log: Path) -> list[ObservedRequest]:
    """Read the requests from the log, and skip incomplete lines."""
    if not log.exists():
        return []
    found: list[ObservedRequest] = []
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                found.append(ObservedRequest(**json.loads(line[:_MAX_LINE])))
            except (ValueError, TypeError):
                continue
    return found[:_MAX_SEEN]


def main() -> None:
    """Serve one server on stdio until stdin closes."""
    label, path = sys.argv[1:]
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(one: ObservedRequest) -> None:
        # One write in append mode, so that the lines of several processes do not mix.
        os.write(log, json.dumps(one.to_json()).encode() + b"\n")

    anyio.run(serve_stdio, observed_server(LABELS[label], note))


if __name__ == "__main__":
    main()
