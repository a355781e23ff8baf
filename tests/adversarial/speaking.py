"""Just enough HTTP/1.1 and JSON-RPC to lie in: raw asyncio streams, so that any byte can be sent at any time."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

JSON, EVENTS = "application/json", "text/event-stream"
GONE = (ConnectionError, asyncio.IncompleteReadError)


class Refusal(NamedTuple):
    """A JSON-RPC error instead of a result."""

    code: int = -32602
    message: str = "no such thing"


class Raw(NamedTuple):
    """An answer given as bytes: the body of an HTTP response, or a line on stdout.

    ``body`` gets the request's id. ``status``, ``kind`` and ``headers`` mean something to HTTP only; without a
    ``Content-Length`` of its own the body ends when the server hangs up. With a ``status`` of 0 there is no head.
    """

    body: Callable[[Any], AsyncIterator[bytes]]
    status: int = 200
    kind: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


Answer = dict[str, Any] | Refusal | Raw


class Asked(NamedTuple):
    """A message that reached the server, and the HTTP headers it came with."""

    method: str
    params: dict[str, Any]
    headers: dict[str, str]
    id: Any = None


def to_message(request_id: Any, answer: dict[str, Any] | Refusal) -> bytes:
    """The JSON-RPC response. Lone surrogates go out as escapes, as JSON allows."""
    kind = {"error": answer._asdict()} if isinstance(answer, Refusal) else {"result": answer}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, **kind}).encode()


def once(body: bytes) -> Callable[[Any], AsyncIterator[bytes]]:
    """A body that is always the same."""

    async def chunks(_: Any) -> AsyncIterator[bytes]:
        yield body

    return chunks


async def endless(request_id: Any) -> AsyncIterator[bytes]:
    """The beginning of an honest answer, and then more of it, for ever."""
    yield b'{"jsonrpc": "2.0", "id": %b, "result": {"skills": [], "more": "' % json.dumps(request_id).encode()
    while True:
        yield b"m" * 65536


async def drip(request_id: Any) -> AsyncIterator[bytes]:
    """The same, a few bytes at a time."""
    async for chunk in endless(request_id):
        for byte in chunk:
            yield bytes([byte])
            await asyncio.sleep(0.01)


async def silence(_: Any) -> Any:
    """No answer."""
    await asyncio.Event().wait()


class HttpRequest(NamedTuple):
    verb: str
    path: str
    headers: dict[str, str]
    body: bytes


async def read_http(reader: asyncio.StreamReader) -> HttpRequest | None:
    """The next request of a connection, if there is one."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        verb, path, _ = head[0].split(" ")
        headers: dict[str, str] = {}
        for name, value in (line.split(": ", 1) for line in head[1:] if line):
            known = headers.get(name.lower())
            headers[name.lower()] = value if known is None else f"{known}, {value}"
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    except GONE:
        return None
    return HttpRequest(verb, path, headers, body)


def http_head(status: int, kind: str, *headers: tuple[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", f"Content-Type: {kind}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def or_hung_up(work: Awaitable[None], reader: asyncio.StreamReader) -> bool:
    """Do ``work`` unless the other side hangs up before; whether it did. Clients that wait send nothing."""
    working = asyncio.ensure_future(work)
    listening = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            with suppress(*GONE):
                working.result()
                return False
        return True
    finally:
        for task in (working, listening):
            task.cancel()
        await asyncio.gather(working, listening, return_exceptions=True)
