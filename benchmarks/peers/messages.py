"""JSON-RPC over HTTP/1.1 as bytes: the requests of the load client, and a parser of responses. No SDK.

Only what servers on the loopback do is understood: keep-alive, ``Content-Length`` or chunks, one JSON message as
the body or as one server-sent event. Everything else is an error and ends the measurement.
"""

from __future__ import annotations

import json
import re
import socket
import time
from base64 import b64decode
from dataclasses import dataclass, field
from typing import Any

MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"
EXTENSION: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/skills": {}}}
CLIENT = {"name": "benchmark", "version": "1"}
FIRST_ID = 100_000_000  # ids have the same width, so that a request's length does not depend on its id

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_SESSION = re.compile(rb"\r\nmcp-session-id: *([^\r]+)", re.IGNORECASE)
_CURSOR = re.compile(rb'"nextCursor" ?: ?"([^"]*)"')


class BadAnswerError(Exception):
    """A server answered with something that is not the result that was asked for."""


@dataclass(frozen=True, slots=True)
class Speaking:
    """How a server is spoken to: where it is, and in which era."""

    port: int
    path: str = "/mcp"
    session: str | None = None  # only the handshake era has one
    modern: bool = True

    def request(self, method: str, **params: Any) -> tuple[bytes, bytes]:
        """A request in two parts; the digits of its id go between them."""
        if self.modern:
            meta = {"protocolVersion": MODERN, "clientInfo": CLIENT, "clientCapabilities": EXTENSION}
            params["_meta"] = {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}
        rest = json.dumps({"method": method, "params": params}, separators=(",", ":"))
        tail = f",{rest[1:]}".encode()
        body = b'{"jsonrpc":"2.0","id":'
        length = len(body) + len(str(FIRST_ID)) + len(tail)
        return self._head(method, params.get("uri"), length) + body, tail

    def _head(self, method: str, name: str | None, length: int) -> bytes:
        lines = [
            f"POST {self.path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {MODERN if self.modern else HANDSHAKE}",
        ]
        if self.modern:
            lines.append(f"Mcp-Method: {method}")
            if method == "resources/read":
                lines.append(f"Mcp-Name: {name}")
        if self.session is not None:
            lines.append(f"Mcp-Session-Id: {self.session}")
        return "\r\n".join([*lines, f"Content-Length: {length}", "", ""]).encode()


@dataclass(slots=True)
class Answer:
    """What has arrived of one answer."""

    data: bytearray = field(default_factory=bytearray)
    begins: int = -1  # where the body begins, once the head is there
    length: int = -1  # of the body; -1 while chunks are expected

    def add(self, data: bytes) -> bool:
        """Take what arrived; true when the answer is whole."""
        self.data += data
        if self.begins < 0:
            end = self.data.find(b"\r\n\r\n")
            if end < 0:
                return False
            self.begins = end + 4
            head = bytes(self.data[: end + 2])
            found = _LENGTH.search(head)
            if found is not None:
                self.length = int(found[1])
            elif _CHUNKED.search(head) is None:
                raise BadAnswerError(f"an answer of unknown length: {head[:200]!r}")
        if self.length >= 0:
            return len(self.data) >= self.begins + self.length
        return self.data.endswith(b"0\r\n\r\n")

    def body(self) -> bytes:
        """The body of a whole answer, which has to be a result."""
        body = bytes(self.data[self.begins :]) if self.length >= 0 else _joined(self.data, self.begins)
        if not self.data.startswith(b"HTTP/1.1 200") or b'"result"' not in body:
            raise BadAnswerError(f"not a result: {bytes(self.data[:12])!r} {body[:300]!r}")
        return body

    def session(self) -> str | None:
        """The session that a server opened with this answer."""
        found = _SESSION.search(self.data[: self.begins])
        return None if found is None else found[1].decode()


def _joined(data: bytearray, place: int) -> bytes:
    """The chunks from ``place`` on, without their lengths."""
    parts: list[bytes] = []
    while True:
        end = data.index(b"\r\n", place)
        size = int(bytes(data[place:end]).partition(b";")[0], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(bytes(data[end + 2 : end + 2 + size]))
        place = end + 2 + size + 2


def message(body: bytes) -> dict[str, Any]:
    """The JSON-RPC message of a body, also where it came as a server-sent event."""
    if not body.startswith(b"{"):
        body = body[body.index(b"data:") + 5 :].partition(b"\n")[0]
    return json.loads(body)


def content(answer: dict[str, Any]) -> bytes:
    """The bytes that an answer to ``resources/read`` carries."""
    [found] = answer["result"]["contents"]
    return found["text"].encode() if "text" in found else b64decode(found["blob"], validate=True)


def next_cursor(body: bytes) -> str | None:
    """The cursor of a page, found without decoding it (the end first: most servers put it there)."""
    at = max(body.rfind(b'"nextCursor"'), 0)
    found = _CURSOR.search(body, at)
    return None if found is None else json.loads(b'"' + found[1] + b'"')


class Line:
    """One connection that waits for each answer."""

    def __init__(self, speaking: Speaking, patience: float = 60.0) -> None:
        self.speaking = speaking
        self._patience = patience
        self._socket = socket.create_connection(("127.0.0.1", speaking.port), timeout=patience)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._id = FIRST_ID

    def ask(self, method: str, **params: Any) -> bytes:
        """The body of the answer."""
        return self.answer(method, **params).body()

    def answer(self, method: str, **params: Any) -> Answer:
        head, tail = self.speaking.request(method, **params)
        self._id += 1
        return self.exchange(b"%b%d%b" % (head, self._id, tail))

    def exchange(self, request: bytes) -> Answer:
        deadline, answer = time.perf_counter() + self._patience, Answer()
        self._socket.sendall(request)
        while not answer.add(data := self._socket.recv(262_144)):
            if not data:
                raise BadAnswerError("the server closed the connection")
            if time.perf_counter() > deadline:  # some servers send signs of life instead of an answer
                raise BadAnswerError(f"no answer within {self._patience:.0f} seconds")
        return answer

    def close(self) -> None:
        self._socket.close()


def shake_hands(port: int, path: str = "/mcp") -> Speaking:
    """The handshake era: open a session that all connections then share."""
    params = {"protocolVersion": HANDSHAKE, "clientInfo": CLIENT, "capabilities": EXTENSION}
    line = Line(Speaking(port, path, modern=False))
    try:
        answer = line.answer("initialize", **params)
        answer.body()
        return Speaking(port, path, answer.session(), modern=False)
    finally:
        line.close()
