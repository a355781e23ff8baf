"""What one caller can take or learn beside its share: sessions, numbers for operators, and time."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from http_server import serving_config
from interaction.replaying import FLAT, META, asking
from rules import rule
from skillwire.catalog import directory, safe_open
from skillwire.server.access import Access, digest_token
from skillwire.server.http import HttpOptions, HttpServer, WebApp, listen
from skillwire.server.skills import Skills, build_server
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio

ACCESS = Access(
    tokens={digest_token("greedy"): "greedy", digest_token("other"): "other"},
    see={"greedy": ("acme",), "other": ("*",)},
)
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(safe_open, "_SETTLED_NS", 0)
    return write_tree(tmp_path / "skills", small_tree())


@asynccontextmanager
async def serving(root: Path, access: Access | None) -> AsyncIterator[tuple[httpx2.AsyncClient, str]]:
    """A server that has room for eight sessions."""
    listener = listen("127.0.0.1", 0)
    skills = Skills(root, visible=None if access is None else access.visible, watch=False)
    http = HttpServer(WebApp(build_server(skills), HttpOptions(access, max_sessions=8)), listener)
    async with httpx2.AsyncClient(timeout=20) as web, serving_config(http.config(), listener):
        yield web, http.url


async def opened(web: httpx2.AsyncClient, url: str, token: str = "none", **more: str) -> httpx2.Response:
    accept = {"accept": "application/json, text/event-stream"}
    return await web.post(url, json=HELLO, headers={**accept, "authorization": f"Bearer {token}", **more})


@rule("Z6")
async def test_one_subject_cannot_take_all_sessions(root: Path) -> None:
    async with serving(root, ACCESS) as (web, url):
        statuses = [(await opened(web, url, "greedy")).status_code for _ in range(4)]
        assert statuses == [200, 200, 503, 503]
        assert (await opened(web, url, "other")).status_code == 200


@rule("Z6")
async def test_one_address_cannot_take_all_sessions(root: Path) -> None:
    async with serving(root, None) as (web, url):
        claims = [{"x-forwarded-for": f"192.0.2.{n}"} for n in range(4)]  # nothing that a client says about itself
        statuses = [(await opened(web, url, **claim)).status_code for claim in claims]
        assert statuses == [200, 200, 503, 503]


@rule("Z6")
async def test_requests_without_a_session_are_answered_all_the_same(root: Path) -> None:
    async with serving(root, None) as (web, url):
        for _ in range(3):
            await opened(web, url)
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "skills/list",
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": {"_meta": META}}
        assert (await web.post(url, json=message, headers=headers)).status_code == 200


@rule("Z6")
async def test_a_session_that_ended_makes_room(root: Path) -> None:
    async with serving(root, ACCESS) as (web, url):
        answers = [await opened(web, url, "greedy") for _ in range(2)]
        for answer in answers:
            ended = {"authorization": "Bearer greedy", "mcp-session-id": answer.headers["mcp-session-id"]}
            await web.delete(url, headers=ended)
        assert (await opened(web, url, "greedy")).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [pytest.param("127.0.0.1:1", 200, id="its own"), pytest.param("evil.test", 421, id="other")],
)
async def test_numbers_for_operators_are_given_only_under_the_servers_own_name(
    root: Path, host: str, status: int
) -> None:
    async with serving(root, None) as (web, url):
        answer = await web.get(url.replace("/mcp", "/metrics"), headers={"host": host})
        assert answer.status_code == status


@rule("G1")
@pytest.mark.parametrize("method", ["skills/get", "resources/read"])
async def test_a_hidden_skill_is_not_looked_at_for_its_stamp(
    root: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it answers later than one that does not exist."""
    looked_at: list[Any] = []
    stamped = directory.stamped

    def recorded(base: str, path: str) -> Any:
        looked_at.append(path)
        return stamped(base, path)

    monkeypatch.setattr(directory, "stamped", recorded)
    async with asking(root, ACCESS) as asked:
        hidden = await asked.ask(method, {"uri": FLAT}, authorization="Bearer greedy")
        assert "error" in hidden.json()
        assert not looked_at
        shown = await asked.ask(method, {"uri": FLAT}, authorization="Bearer other")
        assert "result" in shown.json()
        assert looked_at
