"""Header values as some clients write them, over a raw socket: no library sends spaces after a value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import pytest

from http_server import serving_http
from rules import rule
from skillwire.server.skills import Skills, build_server

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.anyio

URI = "skill://flat/SKILL.md"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
FIELDS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "resources/read",
    "Mcp-Name": URI,
}
SECONDS = 20


async def ask(url: str, fields: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    """Status and body of the answer to a read of ``URI``, sent byte by byte as it stands here."""
    place = urlsplit(url)
    message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"_meta": META, "uri": URI}}
    body = json.dumps(message).encode()
    own = {"Host": place.netloc, "Connection": "close", "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**own, **fields}.items())
    head = f"POST {place.path} HTTP/1.1\r\n{lines}\r\n".encode()
    with anyio.fail_after(SECONDS):
        async with await anyio.connect_tcp(place.hostname or "", place.port or 0) as line:
            await line.send(head + body)
            answer = b"".join([chunk async for chunk in line])
    top, _, rest = answer.partition(b"\r\n\r\n")
    return int(top.split()[1]), json.loads(rest)


@rule("R1")
@pytest.mark.parametrize("kept", [False, True], ids=["by-the-sdk", "sent-again"])
async def test_spaces_after_a_header_value_are_no_part_of_it(root: Path, kept: bool) -> None:
    """A name that is compared with the request's own is compared without them."""
    skills = Skills(root, watch=False)
    async with serving_http(build_server(skills), skills=skills if kept else None) as url:
        for after in ("", " ", "\t", " \t  "):
            status, answer = await ask(url, {name: f"{value}{after}" for name, value in FIELDS.items()})
            assert (status, answer["result"]["contents"][0]["uri"]) == (200, URI), repr(after)


@rule("R1")
async def test_another_name_than_the_requests_own_is_refused(root: Path) -> None:
    """So the test above would fail if the spaces were taken for a part of the name."""
    async with serving_http(build_server(Skills(root, watch=False))) as url:
        for name in (f"{URI}.", f"{URI} ."):
            status, answer = await ask(url, {**FIELDS, "Mcp-Name": name})
            assert status == 400
            assert "error" in answer
