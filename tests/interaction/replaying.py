"""A server that sends answers again, and raw requests to it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import httpx2

from http_server import TestServer, serving_config
from skillwire.server.http import HttpOptions, HttpServer, WebApp, listen
from skillwire.server.skills import Skills, build_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillwire.server.access import Access

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
FLAT = "skill://flat/SKILL.md"


@dataclass
class Asking:
    """Raw requests to one server."""

    web: httpx2.AsyncClient
    skills: Skills
    url: str = ""
    through: int = 0  # requests that the SDK answered
    begun: int = 0  # requests that reached the application
    server: TestServer | None = None

    async def ask(
        self, method: str, params: dict[str, Any], *, own_id: Any = 1, **headers: str
    ) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "id": own_id, "method": method, "params": {"_meta": META, **params}}
        return await self.send(json.dumps(message), method, params, **headers)

    async def send(
        self, body: str, method: str, params: dict[str, Any] | None = None, **headers: str
    ) -> httpx2.Response:
        fields = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": method,
        }
        if "uri" in (params or {}):
            fields["mcp-name"] = str((params or {})["uri"])
        return await self.web.post(self.url, content=body, headers={**fields, **headers})

    async def replayed(self) -> float:
        """How many requests were answered without the SDK."""
        counted = await self.web.get(self.url.replace("/mcp", "/metrics"))
        lines = counted.text.splitlines()
        total = sum(float(line.split()[-1]) for line in lines if line.startswith("skillwire_requests_total{"))
        return total - self.through


@asynccontextmanager
async def asking(
    root: Path,
    access: Access | None = None,
    *,
    replay: int = 1 << 20,
    quick: bool = True,
    keep_alive: int | None = None,
) -> AsyncIterator[Asking]:
    """Without ``quick`` every request goes through the application. ``keep_alive``: seconds that may be idle."""
    listener = listen("127.0.0.1", 0)
    skills = Skills(root, visible=None if access is None else access.visible, watch=False)
    server = build_server(skills)
    asked = Asking(httpx2.AsyncClient(timeout=20), skills)

    async def seen(ctx: Any, call_next: Any) -> Any:
        asked.through += 1
        return await call_next(ctx)

    http = HttpServer(WebApp(server, HttpOptions(access, replay_bytes=replay), skills=skills), listener)
    server.middleware.insert(0, seen)
    config = http.config()
    app = cast("ASGIApp", config.app)

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        asked.begun += scope["type"] == "http"
        await app(scope, receive, send)

    config.app = counted
    if not quick:
        config.http = "httptools"
    if keep_alive is not None:
        config.timeout_keep_alive = keep_alive
    asked.url = http.url
    async with asked.web, serving_config(config, listener) as asked.server:
        yield asked
