"""Answers sent from where a request is parsed are the web server's own, byte for byte, however a request comes.

That they are right, too, is `test_replay.py`'s to say.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import anyio
import pytest

from interaction.replaying import FLAT, META, Asking, asking
from skillwire.catalog import safe_open
from skillwire.server.response_cache import MAX_BODY
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytestmark = pytest.mark.anyio


def body(own_id: int = 1, more: str = "") -> bytes:
    params = {"_meta": META, "uri": FLAT}
    message = {"jsonrpc": "2.0", "id": own_id, "method": "resources/read", "params": params}
    return json.dumps(message).encode() + more.encode()


def head(*more: str, length: int | None = None, line: str = "POST /mcp HTTP/1.1") -> bytes:
    length = len(body()) if length is None else length
    fields = [
        line,
        "Host: 127.0.0.1:1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        "MCP-Method: resources/read",
        f"MCP-Name: {FLAT}",
        *([] if length < 0 else [f"Content-Length: {length}"]),
        *more,
    ]
    return "\r\n".join([*fields, "", ""]).encode()


WHOLE = head() + body()
LAST = head("Connection: close") + body(9)  # the server ends the connection after it, so that all was read
CHUNKED = head("Transfer-Encoding: chunked", length=-1) + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body()), body())
UPGRADE = head("Connection: upgrade", "Upgrade: websocket") + body()
SENT: dict[str, dict[str, list[bytes]]] = {
    "pieces": {
        "whole": [WHOLE],
        "three, one after another": [WHOLE, head() + body(2), head() + body(3)],
        "three at once": [WHOLE + head() + body(2) + head() + body(3)],
        "one that the SDK answers between two": [WHOLE + CHUNKED + WHOLE],
        "the body later": [head(), body()],
        "the body in two": [head() + body()[:50], body()[50:]],
        "byte by byte": [WHOLE[at : at + 1] for at in range(len(WHOLE))],
        "chunked": [CHUNKED],
    },
    "versions and headers": {
        "compressed": [head("Accept-Encoding: gzip") + body()],
        "to be closed": [head("Connection: close") + body()],
        "HTTP/1.0": [head(line="POST /mcp HTTP/1.0") + body()],
        "HTTP/1.0 that stays": [head("Connection: keep-alive", line="POST /mcp HTTP/1.0") + body()],
        "asks whether to go on": [head("Expect: 100-continue") + body()],
        "a session": [head("Mcp-Session-Id: 7") + body()],
    },
    "targets": {
        "with a query": [head(line="POST /mcp?a=b") + body(), head(line="POST /mcp?a=b HTTP/1.1") + body()],
        "percent signs": [head(line="POST /%6Dcp HTTP/1.1") + body()],
        "an absolute form": [head(line="POST http://127.0.0.1:1/mcp HTTP/1.1") + body()],
        "another path": [head(line="POST /mcp/ HTTP/1.1") + body()],
        "another method": [head(line="PUT /mcp HTTP/1.1") + body()],
        "read only": [head(line="GET /healthz HTTP/1.1", length=-1)],
    },
    "lengths": {
        "no length": [head(length=-1)],
        "an empty body": [head(length=0)],
        "two lengths": [head("Content-Length: 7") + body()],
        "a length with a sign": [head(f"Content-Length: +{len(body())}", length=-1) + body()],
        "a longer body than was said": [head(length=len(body()) - 1) + body()],
        "at the bound": [head(length=MAX_BODY) + body(more=" " * (MAX_BODY - len(body())))],
        "beyond the bound": [head(length=MAX_BODY + 1) + body(more=" " * (MAX_BODY + 1 - len(body())))],
    },
    "nonsense": {
        "no JSON": [head(length=4) + b"oops"],
        "no HTTP": [b"hello\r\n\r\n"],
    },
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(safe_open, "_SETTLED_NS", 0)
    tree = write_tree(tmp_path / "skills", small_tree())
    (tree / "flat" / "SKILL.md").write_text("---\nname: flat\ndescription: Long.\n---\n" + "word " * 1000)
    return tree


async def connected(asked: Asking) -> anyio.abc.SocketStream:
    host, _, port = asked.url.removeprefix("http://").partition("/")[0].partition(":")
    return await anyio.connect_tcp(host, int(port))


async def said(asked: Asking, chunks: Iterable[bytes]) -> bytes:
    """All that a server says to what is sent, until it ends the connection; but for the date."""
    answer = b""
    with anyio.fail_after(20):
        async with await connected(asked) as stream:
            try:
                for chunk in chunks:
                    await stream.send(chunk)
                while True:
                    answer += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return re.sub(rb"date: [^\r]*\r\n", b"", answer)


@pytest.mark.parametrize("kind", SENT, ids=lambda kind: kind.replace(" ", "-"))
async def test_every_answer_is_the_web_servers_own(root: Path, kind: str) -> None:
    async with asking(root) as ours, asking(root, quick=False) as oracle:
        for what, sent in SENT[kind].items():
            right = await said(oracle, [b"".join([*sent, LAST])])
            for _ in range(3):
                assert await said(ours, [*sent, LAST]) == right, what


async def test_a_request_to_upgrade_is_answered_by_the_web_server(root: Path) -> None:
    """After it, the server reads no further, and closes the connection once it was idle."""
    async with asking(root, keep_alive=0) as ours, asking(root, quick=False, keep_alive=0) as oracle:
        right = await said(oracle, [UPGRADE, LAST])
        for _ in range(2):
            assert await said(ours, [UPGRADE, LAST]) == right


async def test_what_was_answered_before_begins_no_application(root: Path) -> None:
    """Else the tests above would compare the web server with itself."""
    async with asking(root) as ours:
        await said(ours, [WHOLE, LAST])
        assert ours.begun == 2
        await said(ours, [WHOLE, WHOLE + head() + body(2), LAST])
        assert ours.begun == 3  # the last, which is to be closed


async def test_a_request_that_is_half_here_when_the_server_ends_is_answered(root: Path) -> None:
    async with asking(root) as ours:
        assert ours.server is not None
        with anyio.fail_after(20):
            async with await connected(ours) as stream:
                await stream.send(WHOLE + head() + body(2)[:50])
                first = await stream.receive()
                while not first.endswith(b"}"):
                    first += await stream.receive()
                ours.server.stop()
                await until_refused(ours)
                await stream.send(body(2)[50:])
                answer = await stream.receive()
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"connection: close" in answer


async def test_over_the_limit_of_connections_nothing_is_answered_from_memory(root: Path) -> None:
    async with asking(root) as ours:
        assert ours.server is not None
        await said(ours, [WHOLE, LAST])
        ours.server.config.limit_concurrency = 2
        async with await connected(ours):
            assert (await said(ours, [WHOLE, LAST])).startswith(b"HTTP/1.1 503")


async def until_refused(asked: Asking) -> None:
    """Wait until the server takes no connection: then it has told those that it has."""
    while True:
        try:
            async with await connected(asked):
                await anyio.lowlevel.checkpoint()
        except OSError:
            return
