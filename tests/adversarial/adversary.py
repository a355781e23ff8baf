"""``HostileServer``: an origin in memory that tests fill honestly and then make lie.

It really serves: over HTTP from a socket, over stdio through a child process, in both protocol eras, any bytes at
any time. What it says of its skills (``entries``) and what it serves (``files``) are two things, so that every lie
is a change to one of them; ``answers`` replaces a method's answer as a whole. ``asked`` is what reached it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from base64 import b64encode
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio

from adversarial.speaking import (
    GONE,
    JSON,
    Answer,
    Asked,
    HttpRequest,
    Raw,
    Refusal,
    http_head,
    or_hung_up,
    read_http,
    to_message,
)
from skillwire import Limits
from skillwire import connect as connect_to
from skillwire.skill import digest_of, format_uri, parse_skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from skillwire.types import SkillsClient

EXTENSION = "io.modelcontextprotocol/skills"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
RELAY = Path(__file__).with_name("relay.py")
KIB, MIB = 1024, 1024 * 1024
SMALL = Limits(
    max_message_bytes=MIB,
    max_file_bytes=64 * KIB,
    max_server_bytes=4 * MIB,
    max_index_bytes=64 * KIB,
    max_archive_bytes=64 * KIB,
    max_skill_bytes=256 * KIB,
    max_archive_ratio=20,
    max_resources=50,
    max_pages=20,
    max_entries=100,
    max_cursor_length=100,
    max_call_seconds=20.0,
    max_connect_attempts=3,
    relist_seconds=0.01,
    first_retry_seconds=0.001,
    longest_retry_seconds=0.05,
    first_rest_seconds=0.01,
    longest_rest_seconds=0.05,
    last_output_seconds=0.01,
)
Transport = Literal["http", "stdio"]
Era = Literal["legacy", "modern"]


class HostileServer:
    """Fill it with ``add``, spoil it, then ``async with server.connect() as client``."""

    def __init__(self, transport: Transport = "http", era: Era = "modern") -> None:
        self.transport = transport
        self.era = era
        self.capabilities: dict[str, Any] = {"resources": {}, "extensions": {EXTENSION: {}}}
        self.instructions: str | None = None
        self.entries: list[Any] = []
        self.files: dict[str, bytes] = {}
        self.answers: dict[str, Answer | Callable[[dict[str, Any]], Any]] = {}
        self.asked: list[Asked] = []
        self.hung_up: list[str] = []  # methods whose caller hung up before the answer was whole
        self.sent = 0
        self.streams = 0  # how often a stream of events was opened with GET
        self.path = "/mcp"
        self.port = 0
        self._changed = anyio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        self._pipes: list[asyncio.StreamWriter] = []

    # What it holds

    def add(self, path: str, files: Mapping[str, bytes], *, listed: bool = True) -> dict[str, Any]:
        """Hold an honest skill; its entry, to be spoiled."""
        frontmatter = parse_skill_md(files["SKILL.md"]).frontmatter
        resources = [
            {"uri": format_uri(f"{path}/{name}"), "digest": digest_of(data), "size": len(data)}
            for name, data in files.items()
        ]
        entry = {"uri": f"skill://{path}/SKILL.md", "frontmatter": dict(frontmatter), "resources": resources}
        self.files |= {format_uri(f"{path}/{name}"): data for name, data in files.items()}
        if listed:
            self.entries.append(entry)
        return entry

    def add_index(self, *items: Any, **fields: Any) -> None:
        """Speak the ``index`` dialect instead: the extension is not declared, an index is there."""
        self.capabilities = {"resources": {}}
        self.files["skill://index.json"] = json.dumps({"skills": list(items), **fields}).encode()

    def methods(self) -> list[str]:
        """The requests that came, without those that open a connection."""
        opening = ("server/discover", "initialize")
        return [ask.method for ask in self.asked if ask.method not in opening and ask.id is not None]

    def read_uris(self) -> list[str]:
        """The files that were asked for."""
        return [ask.params["uri"] for ask in self.asked if ask.method == "resources/read"]

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something that reached the server makes ``condition`` true."""
        with anyio.fail_after(20):
            while not condition():
                await self._changed.wait()

    # What it says

    async def answer(self, method: str, params: dict[str, Any]) -> Answer:
        given = self.answers.get(method)
        if callable(given) and not isinstance(given, Raw):
            given = given(params)
            if inspect.isawaitable(given):
                given = await given
        if given is None:
            given = self.honest(method, params)
        if isinstance(given, dict) and self.era == "modern":
            return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **given}
        return given

    def raw(self, result: dict[str, Any], **options: Any) -> Raw:
        """An honest result as bytes, to be sent with headers or a status of one's own."""

        async def body(request_id: Any) -> AsyncIterator[bytes]:
            yield to_message(request_id, result)

        return Raw(body, **options)

    def honest(self, method: str, params: dict[str, Any]) -> Answer:
        info = {"name": "hostile", "version": "1"}
        words = {} if self.instructions is None else {"instructions": self.instructions}
        match method:
            case "server/discover" if self.era == "modern":
                stamp = {"_meta": {"io.modelcontextprotocol/serverInfo": info}}
                return {"supportedVersions": [MODERN], "capabilities": self.capabilities, **words, **stamp}
            case "initialize" if self.era == "legacy":
                opening = {"protocolVersion": LEGACY, "serverInfo": info}
                return {**opening, "capabilities": self.capabilities, **words}
            case "skills/list":
                return {"skills": self.entries}
            case "skills/get":
                found = [it for it in self.entries if isinstance(it, dict) and it.get("uri") == params["uri"]]
                return {"skill": found[0]} if found else Refusal()
            case "resources/read" if params["uri"] in self.files:
                return content(params["uri"], self.files[params["uri"]])
            case "resources/read":
                return Refusal()
            case "resources/list":
                return {"resources": []}
            case _:
                return Refusal(-32601, "unknown method")

    # How it is reached

    @asynccontextmanager
    async def connect(self, *, limits: Limits = SMALL, **options: Any) -> AsyncIterator[SkillsClient]:
        """Serve, and a client of that."""
        async with self.serving() as target, connect_to(target, limits=limits, **options) as client:
            yield client

    @asynccontextmanager
    async def serving(self, port: int = 0) -> AsyncIterator[str | list[str]]:
        """Serve: the URL, or the command to run."""
        speak = self._speak_http if self.transport == "http" else self._speak_lines

        def heard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._keep(speak(reader, writer))
            task.add_done_callback(lambda _: writer.close())  # also of one that was cancelled before it began

        server = await asyncio.start_server(heard, "127.0.0.1", port, limit=MIB)
        self.port = server.sockets[0].getsockname()[1]
        try:
            if self.transport == "http":
                yield f"http://127.0.0.1:{self.port}{self.path}"
            else:
                yield [sys.executable, "-I", "-S", str(RELAY), str(self.port)]
        finally:
            server.close()
            tasks = list(self.tasks)
            self.hang_up()
            await asyncio.gather(*tasks, return_exceptions=True)

    def hang_up(self) -> None:
        """Break every connection: over stdio the process dies of it."""
        for task in self.tasks - {asyncio.current_task()}:
            task.cancel()

    def _keep(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def _speak_http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with _closing(writer):
            while (request := await read_http(reader)) is not None:
                if await or_hung_up(self._reply(request, writer), reader):
                    self.hung_up.append(json.loads(request.body)["method"] if request.body else request.verb)
                    self._tell()
                    return

    async def _reply(self, request: HttpRequest, writer: asyncio.StreamWriter) -> None:
        if request.verb == "GET" and "GET" in self.answers:
            self.streams += 1
            self._tell()
            await self._send_raw(await self.answer("GET", {}), None, writer)
            return
        if request.path != self.path or request.verb != "POST":
            status = 404 if request.path != self.path else 405
            await self._write(writer, http_head(status, "text/plain", ("Content-Length", "0")))
            return
        message = json.loads(request.body)
        asked = self._log(message, request.headers)
        if "method" not in message or asked.id is None:
            await self._write(writer, http_head(202, JSON, ("Content-Length", "0")))
            return
        answer = await self.answer(asked.method, asked.params)
        if isinstance(answer, Raw):
            await self._send_raw(answer, asked.id, writer)
            return
        body = to_message(asked.id, answer)
        await self._write(writer, http_head(200, JSON, ("Content-Length", str(len(body)))) + body)

    async def _send_raw(self, answer: Any, request_id: Any, writer: asyncio.StreamWriter) -> None:
        if answer.status:
            head = http_head(answer.status, answer.kind, ("Connection", "close"), *answer.headers)
            await self._write(writer, head)
        async for chunk in answer.body(request_id):
            await self._write(writer, chunk)
        writer.close()

    async def notify(self, method: str, **params: Any) -> None:
        """Say something to every process that runs, unasked."""
        note = json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()
        for pipe in self._pipes:
            await self._write(pipe, note + b"\n")

    async def _speak_lines(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._pipes.append(writer)
        async with _closing(writer):
            while line := await reader.readline():
                message = json.loads(line)
                asked = self._log(message, {})
                if "method" in message and asked.id is not None:
                    self._keep(self._say(asked, writer))

    async def _say(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        with suppress(*GONE):
            answer = await self.answer(asked.method, asked.params)
            if isinstance(answer, Raw):
                async for chunk in answer.body(asked.id):
                    await self._write(writer, chunk)
                await self._write(writer, b"\n")
            else:
                await self._write(writer, to_message(asked.id, answer) + b"\n")

    async def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        await writer.drain()
        self.sent += len(data)

    def _log(self, message: dict[str, Any], headers: dict[str, str]) -> Asked:
        asked = Asked(message.get("method", "an answer"), message.get("params", {}), headers, message.get("id"))
        self.asked.append(asked)
        self._tell()
        return asked

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def content(uri: str, data: bytes) -> dict[str, Any]:
    """The honest answer to ``resources/read``."""
    try:
        return {"contents": [{"uri": uri, "text": data.decode()}]}
    except UnicodeDecodeError:
        return {"contents": [{"uri": uri, "blob": b64encode(data).decode()}]}


@asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        with suppress(*GONE):
            yield
    finally:
        writer.transport.abort()
