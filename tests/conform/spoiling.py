"""Our own server with one fault: a function may change each response."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from http_server import serving_app
from skillwire.catalog.memory import MemoryCatalog, Skill
from skillwire.client.servers import UrlServer
from skillwire.conform.report import Verdict
from skillwire.conform.server import check_server
from skillwire.server.http import HttpServer, WebApp, listen
from skillwire.server.skills import Skills, build_server
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillwire.conform.report import Report

    Spoil = Callable[[str, dict[str, Any], dict[str, Any]], Any]

TRAPS = "when: 2026-01-01\nanswer: yes\nnotes: |\n  A block\n  at the end\n"
TREE = [
    Skill("team/outer", {"SKILL.md": skill_md("outer"), "inner/SKILL.md": skill_md("inner"), "a/b.md": b"b\n"}),
    Skill(
        "traps", {"SKILL.md": skill_md("traps", extra=TRAPS), "crlf.txt": b"one\r\ntwo\r\n", "x.bin": b"\xff\x00"}
    ),
    Skill("plain", {"SKILL.md": skill_md("plain"), "notes.md": b"notes\n"}),
]


class Spoiled:
    """A web application whose JSON answers are changed on their way out."""

    def __init__(self, app: ASGIApp, spoil: Spoil) -> None:
        self._app = app
        self._spoil = spoil

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body, parts, status, headers = b"", [], 0, []
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message.get("more_body"):
                break
        given = [{"type": "http.request", "body": body}]

        async def again() -> Any:
            return given.pop() if given else await receive()

        async def keep(message: Any) -> None:
            nonlocal status, headers
            status, headers = message.get("status", status), message.get("headers", headers)
            parts.append(message.get("body", b""))

        plain = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
        await self._app({**scope, "headers": plain}, again, keep)
        request, answer = json.loads(body), b"".join(parts)
        if "id" in request and answer:
            spoiled = self._spoil(request["method"], request.get("params", {}), json.loads(answer))
            answer = spoiled if isinstance(spoiled, bytes) else json.dumps(spoiled).encode()
        kept = [pair for pair in headers if pair[0] != b"content-length"]
        await send({"type": "http.response.start", "status": status, "headers": kept})
        await send({"type": "http.response.body", "body": answer})


def honest(method: str, params: dict[str, Any], message: dict[str, Any]) -> Any:
    """No fault at all."""
    return message


@asynccontextmanager
async def serving(spoil: Spoil = honest, skills: list[Skill] = TREE) -> AsyncIterator[str]:
    """The URL of our server over ``skills``, with its answers spoiled."""
    listener = listen("127.0.0.1", 0)
    server = build_server(Skills(MemoryCatalog(skills), page_size=2, watch=False))
    app = Spoiled(HttpServer(WebApp(server), listener).app, spoil)
    async with serving_app(app, listener) as address:
        yield f"{address}/mcp"


async def report_of(spoil: Spoil = honest, path: str = "", **options: Any) -> Report:
    """What a run says of the spoiled server. It speaks without sessions in the stateless era."""
    async with serving(spoil) as url:
        return await check_server(UrlServer(url + path), **{"eras": ("modern",), **options})


def rules(report: Report, verdict: Verdict = Verdict.FAIL) -> set[str]:
    """The ids of the rules that came out so, in any era."""
    return {
        result.rule.id
        for section in report.sections
        if section.spoken
        for result in section.results
        if result.verdict is verdict
    }
