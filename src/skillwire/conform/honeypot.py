"""The honeypot: four MCP servers that record every request of a host.

They have correct skills, wrong entries, unlisted files, foreign links and an endless list, so that a mistake of a
host is visible in its requests. The bytes of files are always correct. Entries, capabilities and lists are
falsified in the response.

The servers run over HTTP in this process, or over stdio as commands, which the host starts with
``python -m skillwire.conform.honeypot LABEL FILE``.
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

from skillwire.catalog.memory import MemoryCatalog, Skill
from skillwire.client.bounds import as_list, as_object, as_text
from skillwire.conform.report import Exchange, shorten
from skillwire.server.dialect import Dialects
from skillwire.server.http import HttpServer, WebApp, listen
from skillwire.server.skills import Skills, build_server, serve_stdio
from skillwire.skill.entry import SkillMeta, digest_of
from skillwire.skill.uri import format_uri, skill_md_uri
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from pathlib import Path

    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.lowlevel import Server

    from skillwire.server.dialect import Context

    Entry = dict[str, Any]

GUIDE = skill_md_uri("guide")
GUIDE_REFERENCES = format_uri("guide/references")
MENTIONED = format_uri("guide/references/steps.md")
UNMENTIONED = format_uri("guide/references/background.md")
UNLISTED = format_uri("guide/references/unlisted.md")
SPARE = skill_md_uri("spare")
WRONG_DIGEST = skill_md_uri("wrong-digest")
WRONG_SIZE = skill_md_uri("wrong-size")
WRONG_FRONTMATTER = skill_md_uri("wrong-frontmatter")
GENERATED = skill_md_uri("generated")
VAULT = skill_md_uri("vault")
REPEATED = "again"
ENOUGH = 50  # repetitions of a cursor before the list ends

_GUIDE_BODY = """\
Follow [the steps](references/steps.md). There is [more](references/unlisted.md), and another skill at
skill://vault/SKILL.md. Settings of this machine are in [this file](file:///etc/hostname).
"""


@dataclass(frozen=True, slots=True)
class BaitServer:
    """One server. ``settings`` is its declaration of the extension; ``None`` is a server without skills."""

    label: str
    skills: tuple[Skill, ...] = ()
    settings: dict[str, Any] | None = field(default_factory=dict[str, Any])
    repeats: bool = False

    def falsified(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """The falsified result of a method."""
        match method:
            case "initialize" | "server/discover":
                capabilities = dict(as_object(result.get("capabilities")))
                extensions = as_object(capabilities.pop("extensions", None))
                if self.settings is not None:
                    capabilities["extensions"] = {key: dict(self.settings) for key in extensions}
                return {**result, "capabilities": capabilities}
            case "skills/list":
                skills = [_falsified_entry(as_object(entry)) for entry in as_list(result.get("skills"))]
                more = {"nextCursor": REPEATED} if self.repeats else {}
                return {**result, "skills": skills, **more}
            case "skills/get":
                return {**result, "skill": _falsified_entry(as_object(result.get("skill")))}
            case _:
                return result


def _falsified_entry(entry: Entry) -> Entry:
    falsify = _FALSIFICATIONS.get(entry.get("uri", ""))
    return entry if falsify is None else falsify(entry)


def _with_file(entry: Entry, uri: str, **fields: Any) -> Entry:
    files = [{**file, **fields} if file["uri"] == uri else file for file in entry["resources"]]
    return {**entry, "resources": files}


_FALSIFICATIONS: dict[str, Callable[[Entry], Entry]] = {
    GUIDE: lambda entry: {**entry, "resources": [file for file in entry["resources"] if file["uri"] != UNLISTED]},
    WRONG_DIGEST: lambda entry: _with_file(entry, WRONG_DIGEST, digest=digest_of(b"something else")),
    WRONG_SIZE: lambda entry: _with_file(entry, WRONG_SIZE, size=7),
    WRONG_FRONTMATTER: lambda entry: {
        **entry,
        "frontmatter": {**entry["frontmatter"], "description": "Has this description in its entry."},
    },
    GENERATED: lambda entry: {**entry, "resources": "dynamic"},
}


def _skill(path: str, description: str, body: str = "Do it.\n", **files: str) -> Skill:
    text = f"---\nname: {path}\ndescription: {description}\n---\n\n{body}"
    references = {f"references/{name}.md": f"# {name}\n" for name in files or {"more": ""}}
    return Skill(path, {"SKILL.md": text, **references})


_SECRET = Skill(
    "vault", {"SKILL.md": "---\nname: vault\ndescription: Unlisted.\n---\n\nx\n"}, SkillMeta(listed=False)
)

FIRST = BaitServer(
    "watched",
    (
        _skill("guide", "How to do the usual thing.", _GUIDE_BODY, steps="", background="", unlisted=""),
        _skill("generated", "Generated on each read."),
        _skill("spare", "Bait of a conformance run; do not load it."),
        _skill("wrong-digest", "Does not match the digest in its entry."),
        _skill("wrong-frontmatter", "Has a different description in its file."),
        _skill("wrong-size", "Does not match the size in its entry."),
    ),
    {"directoryRead": True},
)
SECOND = BaitServer("watched-second", (_skill("partner", "Belongs to another server."), _SECRET))
PLAIN = BaitServer("watched-plain", settings=None)
REPEATING = BaitServer("watched-repeating", (_skill("again", "Its list never ends."),), repeats=True)
SERVERS = (FIRST, SECOND, PLAIN, REPEATING)
LABELS = {server.label: server for server in SERVERS}

_SMALL_PAGE = 4
_KEPT = ("uri", "cursor", "name")
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


class _Observer:
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
            found = await self._answer(ctx, call_next)
        except MCPError as error:
            self._record(ctx, {"error": {"code": error.code, "message": error.message}})
            raise
        if isinstance(found, BaseModel):
            found = found.model_dump(by_alias=True, mode="json", exclude_none=True)
        result = self._bait.falsified(ctx.method, dict(found or {}))
        if self._repeated >= ENOUGH:
            result.pop("nextCursor", None)
        self._record(ctx, {"result": result})
        return result

    async def _answer(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if self._bait.settings is None and ctx.method.startswith(("skills/", "resources/directory/")):
            raise MCPError(code=METHOD_NOT_FOUND, message="Method not found")
        if self._bait.settings is None and ctx.method == "resources/read":
            raise MCPError(code=INVALID_PARAMS, message="Resource not found")  # it has no index
        params = dict(ctx.params or {})
        if self._bait.repeats and params.get("cursor") == REPEATED:
            self._repeated += 1
            ctx = replace(ctx, params={key: value for key, value in params.items() if key != "cursor"})
        return await call_next(ctx)

    def _record(self, ctx: Context, outcome: dict[str, Any]) -> None:
        params = dict(ctx.params or {})
        result = as_object(outcome.get("result"))
        entries = [*as_list(result.get("skills")), result.get("skill")]
        envelope = {"jsonrpc": "2.0", "id": ctx.request_id}
        # K3: the declaration is in the handshake, or in each request of the stateless era.
        declared = params.get("capabilities") if ctx.method == "initialize" else None
        meta = as_object(params.get("_meta"))
        declared = next((meta[key] for key in meta if key.endswith("/clientCapabilities")), declared)
        self._note(
            ObservedRequest(
                self._bait.label,
                ctx.method,
                {key: params[key] for key in _KEPT if key in params},
                None if declared is None else EXTENSION_ID in as_object(as_object(declared).get("extensions")),
                [as_text(as_object(entry).get("uri")) for entry in entries if entry],
                as_text(result.get("nextCursor")) or None,
                shorten({**envelope, "method": ctx.method, "params": params}),
                shorten({**envelope, **outcome}),
            )
        )


def _observed_server(bait: BaitServer, note: Callable[[ObservedRequest], None]) -> Server[Any]:
    """A server for ``bait``; ``note`` receives every request."""
    skills = Skills(
        MemoryCatalog(bait.skills), page_size=_SMALL_PAGE, watch=False, dialects=Dialects(fallback="never")
    )
    server = build_server(skills, name=bait.label)
    server.middleware.insert(0, _Observer(bait, note))
    return server


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

    listeners = {bait.label: listen("127.0.0.1", 0) for bait in SERVERS}
    https = [HttpServer(WebApp(_observed_server(bait, note)), listeners[bait.label]) for bait in SERVERS]
    webs = [
        _Web(uvicorn.Config(http.app, log_level="critical", ws="none", timeout_graceful_shutdown=1))
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
                    http.app.drain()
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
    commands = {
        bait.label: (sys.executable, "-m", "skillwire.conform.honeypot", bait.label, str(log)) for bait in SERVERS
    }
    servers = {label: {"command": words[0], "args": list(words[1:])} for label, words in commands.items()}
    yield ServedProbe({"mcpServers": servers}, None, commands[FIRST.label], lambda: _read_log(log))


def _read_log(log: Path) -> list[ObservedRequest]:
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
        os.write(log, json.dumps(asdict(one)).encode() + b"\n")

    anyio.run(serve_stdio, _observed_server(LABELS[label], note))


if __name__ == "__main__":
    main()
