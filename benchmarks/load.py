"""Many light MCP clients in one process: JSON-RPC over HTTP connections that are kept; all answers are verified.

Half of them speak the stateless era, half the handshake era, with a session. Every so many requests a client
leaves and comes back as somebody new, so that whatever a server keeps for one that left shows in its memory.
"""

from __future__ import annotations

import asyncio
import json
import time
from array import array
from base64 import b64decode
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

T = TypeVar("T")
Era = Literal["stateless", "handshake"]

_VERSIONS: dict[Era, str] = {"stateless": "2026-07-28", "handshake": "2025-11-25"}
_WHO = {"name": "benchmark", "version": "1"}
_META = {
    "io.modelcontextprotocol/protocolVersion": _VERSIONS["stateless"],
    "io.modelcontextprotocol/clientInfo": _WHO,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_LONGEST_ANSWER = 1 << 23
_SECONDS_A_REQUEST = 60.0
_REQUESTS_A_VISIT = 100
_LIST_EVERY, _GET_EVERY = 100, 20


class WrongAnswerError(Exception):
    """An answer that is none, or not the right one."""


@dataclass
class Tally:
    """What came of it all."""

    seconds: dict[str, array[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    read: set[str] = field(default_factory=set)
    visits: int = 0

    def count(self, method: str, seconds: float) -> None:
        """One request that was answered rightly."""
        self.seconds.setdefault(method, array("d")).append(seconds)

    @property
    def requests(self) -> int:
        """How many were answered rightly."""
        return sum(map(len, self.seconds.values()))


class Wire:
    """One client's connection, from ``open`` to ``close``."""

    def __init__(self, port: int, era: Era) -> None:
        self._port = port
        self._era: Era = era
        self._session = ""
        self._asked = 0

    async def open(self) -> None:
        """Connect; in the handshake era, shake hands."""
        await self._connect()
        if self._era == "handshake":
            hello = {"protocolVersion": _VERSIONS[self._era], "capabilities": {}, "clientInfo": _WHO}
            await self.ask("initialize", hello)
            await self._send("POST", _body("notifications/initialized", {}), "notifications/initialized")

    async def close(self) -> None:
        """Leave: a session is ended, as the protocol asks."""
        if self._session:
            await self._send("DELETE", b"", "")
        self._session = ""
        self.drop()

    def drop(self) -> None:
        """Hang up."""
        self._writer.close()

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result, or ``WrongAnswerError``."""
        self._asked += 1
        if self._era == "stateless":
            params = {**params, "_meta": _META}
        status, data = await self._send("POST", _body(method, params, self._asked), method, params.get("uri"))
        answer = json.loads(data) if status == 200 else {}
        if answer.get("id") != self._asked or "result" not in answer:
            said = answer.get("error", {}).get("message") or data[:200].decode(errors="replace")
            raise WrongAnswerError(f"{method}: HTTP {status}: {said}")
        return answer["result"]

    async def _send(self, verb: str, body: bytes, method: str, name: str | None = None) -> tuple[int, bytes]:
        lines = [
            f"{verb} /mcp HTTP/1.1",
            f"host: 127.0.0.1:{self._port}",
            "accept: application/json, text/event-stream",
            "content-type: application/json",
            f"content-length: {len(body)}",
            f"mcp-protocol-version: {_VERSIONS[self._era]}",
        ]
        if self._session:
            lines.append(f"mcp-session-id: {self._session}")
        if self._era == "stateless":
            lines += [f"mcp-method: {method}", *([f"mcp-name: {name}"] if name else [])]
        request = "\r\n".join([*lines, "", ""]).encode() + body
        try:
            return await self._exchange(request)
        except (EOFError, ConnectionError):
            self.drop()  # a server may end what was idle for seconds: like every client, come back once
            await self._connect()
            return await self._exchange(request)

    async def _connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=_LONGEST_ANSWER)

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        self._session = headers.get("mcp-session-id", self._session)
        return int(head[0].split()[1]), await self._reader.readexactly(int(headers.get("content-length", "0")))


async def _answered(what: str, answer: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_SECONDS_A_REQUEST):
            return await answer
    except TimeoutError:
        raise WrongAnswerError(f"{what}: no answer in {_SECONDS_A_REQUEST:g} s") from None


def _body(method: str, params: Mapping[str, Any], number: int | None = None) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if number is None else {**message, "id": number}).encode()


class Load:
    """``clients`` that read ``files`` of the server at ``port``: digests by URI, as they are on disk."""

    def __init__(self, port: int, files: Mapping[str, str], clients: int) -> None:
        self.tally = Tally()
        self._port = port
        self._files = files
        self._uris = sorted(files)
        self._skills = [uri for uri in self._uris if uri.endswith("/SKILL.md")]
        self._clients = clients

    async def herd(self, uri: str) -> None:
        """Everybody reads one file at the same moment."""
        wires = [Wire(self._port, "stateless") for _ in range(self._clients)]
        await asyncio.gather(*(wire.open() for wire in wires))
        await asyncio.gather(*(self._once(wire, "resources/read", uri) for wire in wires))
        for wire in wires:
            wire.drop()

    async def run(self, seconds: float) -> None:
        """Everybody asks, one question after another, for so long."""
        until = time.monotonic() + seconds
        eras: list[Era] = ["stateless", "handshake"]
        await asyncio.gather(*(self._client(number, eras[number % 2], until) for number in range(self._clients)))

    async def _client(self, number: int, era: Era, until: float) -> None:
        chance = Random(number)
        while time.monotonic() < until:
            wire = Wire(self._port, era)
            try:
                await _answered(f"opening, {era}", wire.open())
                for _ in range(_REQUESTS_A_VISIT):
                    if time.monotonic() >= until:
                        break
                    await self._once(wire, *self._next(chance))
                await _answered(f"closing, {era}", wire.close())
                self.tally.visits += 1
            except (OSError, EOFError, WrongAnswerError) as error:
                self.tally.errors[f"{type(error).__name__}: {error}"] += 1
                await asyncio.sleep(1)  # a client that failed does not hammer

    def _next(self, chance: Random) -> tuple[str, str]:
        draw = chance.randrange(_LIST_EVERY)
        if draw == 0:
            return "skills/list", ""
        if draw <= _LIST_EVERY // _GET_EVERY:
            return "skills/get", chance.choice(self._skills)
        return "resources/read", chance.choice(self._uris)

    async def _once(self, wire: Wire, method: str, uri: str) -> None:
        begun = time.perf_counter()
        result = await _answered(method, wire.ask(method, {"uri": uri} if uri else {}))
        self.tally.count(method, time.perf_counter() - begun)
        if method == "resources/read":
            self._check_bytes(uri, result)
        else:
            self._check_entries(result["skills"] if method == "skills/list" else [result["skill"]])

    def _check_bytes(self, uri: str, result: Mapping[str, Any]) -> None:
        [content] = result["contents"]
        data = content["text"].encode() if "text" in content else b64decode(content["blob"])
        if f"sha256:{sha256(data).hexdigest()}" != self._files[uri]:
            raise WrongAnswerError(f"other bytes at {uri}")
        self.tally.read.add(uri)

    def _check_entries(self, entries: list[dict[str, Any]]) -> None:
        if not entries:
            raise WrongAnswerError("a page without skills")
        for entry in entries:
            for file in entry["resources"]:
                if file["digest"] != self._files[file["uri"]]:
                    raise WrongAnswerError(f"another digest for {file['uri']}")
