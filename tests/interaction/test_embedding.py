"""``Skills.asgi`` and ``Gateway.asgi``: web applications that run alone, or mounted below any prefix."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from http_server import serving_app, serving_config
from skillwire import MemoryCatalog, Skill, Skills, catalog_page, connect, open_gateway
from skillwire.errors import FormatError
from skillwire.server.access import JwtSettings, new_token
from skillwire.server.http import listen
from skillwire.types import Access
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from starlette.types import ASGIApp

    from skillwire.types import WebApp

pytestmark = pytest.mark.anyio

TOKEN, DIGEST = new_token()
ACCESS = Access({DIGEST: "ada"}, see={"ada": ("acme",)})


def skills() -> Skills:
    return Skills(
        MemoryCatalog([Skill(path, {"SKILL.md": skill_md(path[-7:])}) for path in ("acme/refunds", "release")])
    )


def mounted(kind: str, app: WebApp) -> tuple[ASGIApp, str]:
    """An application around ``app``, and the prefix of ``app`` in it."""
    if kind == "alone":
        return app, ""
    if kind == "Starlette":
        return Starlette(routes=[Mount("/x", app)], lifespan=app.lifespan), "/x"
    if kind == "Starlette, twice":
        inner = Starlette(routes=[Mount("/y", app)])
        return Starlette(routes=[Mount("/x", inner)], lifespan=app.lifespan), "/x/y"
    outer = FastAPI(lifespan=app.lifespan)
    outer.mount("/x", app)
    return outer, "/x"


MOUNTS = pytest.mark.parametrize("kind", ["alone", "Starlette", "Starlette, twice", "FastAPI"])


@MOUNTS
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_dialect_is_below_the_prefix(kind: str, mode: str) -> None:
    app, prefix = mounted(kind, skills().asgi("/skills"))
    async with serving_app(app) as address:
        for endpoint in ("", "/sep-2076", "/native"):
            async with connect(f"{address}{prefix}/skills{endpoint}", mode=mode) as client:
                assert [entry.name async for entry in client.list_skills()] == ["refunds", "release"]
                assert await client.dialect() == (endpoint.strip("/") or "extension")


async def test_the_prefix_of_a_proxy_is_honoured() -> None:
    """A web server that was told its prefix adds it to every path."""
    listener, app = listen("127.0.0.1", 0), skills().asgi()
    config = uvicorn.Config(app, log_level="warning", ws="none", root_path="/team")
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp/sep-2076"
    async with serving_config(config, listener), connect(url) as client:
        assert [entry.name async for entry in client.list_skills()] == ["refunds", "release"]


@MOUNTS
async def test_health_metrics_and_page_are_below_the_prefix(kind: str) -> None:
    app, prefix = mounted(kind, skills().asgi(page=catalog_page))
    async with serving_app(app) as address, httpx2.AsyncClient(base_url=f"{address}{prefix}") as web:
        assert (await web.get("/healthz")).text == "ok\n"
        assert (await web.get("/readyz")).text == "ready\n"
        assert "skillwire_requests" in (await web.get("/metrics")).text
        page = (await web.get("/")).text
        links = set(re.findall(r'(?:href|src)="(/[^"]*)"', page))
        assert f"{prefix}/skill/acme/refunds" in links
        for link in links:
            assert link.startswith(f"{prefix}/")
            answer = await web.get(f"{address}{link}")
            assert answer.status_code == 200, link
        assert f"{address}{prefix}/mcp" in (await web.get("/connect")).text
        assert (await web.get("/nothing")).status_code == 404


@MOUNTS
async def test_repeated_requests_are_answered_from_the_cache(kind: str) -> None:
    inner = skills().asgi()
    app, prefix = mounted(kind, inner)
    async with serving_app(app) as address, httpx2.AsyncClient() as web:
        answers = [await web.post(f"{address}{prefix}/mcp", **list_request(number)) for number in (1, 2)]
        assert [answer.json()["id"] for answer in answers] == [1, 2]
        assert answers[0].json()["result"] == answers[1].json()["result"]
    assert inner.cache is not None
    assert len(inner.cache._entries) == 1


async def test_a_function_of_the_caller_turns_the_cache_off() -> None:
    assert Skills(MemoryCatalog(), visible=lambda _: ["*"]).asgi().cache is None


@pytest.mark.parametrize("kind", ["Starlette", "FastAPI"])
async def test_without_its_lifespan_a_mounted_application_answers_which_line_to_add(kind: str) -> None:
    app = skills().asgi()
    outer = FastAPI() if kind == "FastAPI" else Starlette()
    outer.mount("/x", app)
    async with serving_app(outer) as address, httpx2.AsyncClient() as web:
        answer = await web.post(f"{address}/x/mcp", **list_request(1))
    assert answer.status_code == 500
    assert f"{kind}(lifespan=app.lifespan)" in answer.text


async def test_an_application_can_be_started_again() -> None:
    app = skills().asgi()
    for _ in range(2):
        async with serving_app(app) as address, connect(f"{address}/mcp") as client:
            assert [entry.name async for entry in client.list_skills()] == ["refunds", "release"]


@MOUNTS
async def test_callers_need_a_token_and_see_their_part(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    file.write_text(f'[[token]]\nsubject = "ada"\nsha256 = "{DIGEST}"\nsee = ["acme"]\n')
    app, prefix = mounted(kind, skills().asgi(access=file, page=catalog_page))
    async with serving_app(app) as address, httpx2.AsyncClient() as web:
        assert (await web.post(f"{address}{prefix}/mcp", **list_request(1))).status_code == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with connect(f"{address}{prefix}/mcp", headers=headers) as client:
            assert [entry.name async for entry in client.list_skills()] == ["refunds"]
        signed_out = await web.get(f"{address}{prefix}/skill/acme/refunds")
        assert signed_out.status_code == 401
        form = {"token": TOKEN, "to": f"{prefix}/skill/acme/refunds"}
        entered = await web.post(f"{address}{prefix}/sign-in", data=form, headers={"Origin": address})
        assert (entered.status_code, entered.headers["location"]) == (303, f"{prefix}/skill/acme/refunds")
        assert f'value="{prefix}/skill/acme/refunds"' in signed_out.text
        assert (await web.get(f"{address}{prefix}/skill/acme/refunds")).status_code == 200
        assert (await web.get(f"{address}{prefix}/skill/release")).status_code == 404


@pytest.mark.parametrize(
    ("public_url", "host", "status"),
    [
        pytest.param(None, "127.0.0.1:1", 200, id="loopback"),
        pytest.param(None, "evil.test", 421, id="a name that resolves to loopback"),
        pytest.param("https://example.com/x/mcp", "example.com", 200, id="the public name"),
        pytest.param("https://example.com/x/mcp", "evil.test", 421, id="another name"),
    ],
)
async def test_on_loopback_and_with_a_public_url_other_host_names_are_refused(
    public_url: str | None, host: str, status: int
) -> None:
    app = skills().asgi(public_url=public_url, page=catalog_page)
    async with serving_app(app) as address, httpx2.AsyncClient(headers={"Host": host}) as web:
        request = list_request(1)
        for _ in range(2):
            assert (await web.post(f"{address}/mcp", **request)).status_code == status
        assert (await web.get(f"{address}/")).status_code == status
        assert (await web.get(f"{address}/metrics")).status_code == status
        assert (await web.get(f"{address}/healthz")).status_code == 200


async def test_a_test_client_needs_no_settings() -> None:
    app = skills().asgi()
    transport = httpx2.ASGITransport(app)
    async with app.lifespan(), httpx2.AsyncClient(transport=transport, base_url="http://testserver") as web:
        assert (await web.post("/mcp", **list_request(1))).status_code == 200


async def test_metrics_can_be_omitted() -> None:
    async with serving_app(skills().asgi(metrics=False)) as address, httpx2.AsyncClient() as web:
        assert (await web.get(f"{address}/metrics")).status_code == 404


async def test_metadata_for_web_tokens_can_be_at_the_root_of_the_host() -> None:
    access = Access(jwt=JwtSettings("https://login.example.com", "a", "https://login.example.com/keys.json"))
    app = skills().asgi(access=access, public_url="https://example.com/x/mcp")
    outer = Starlette(routes=[*app.metadata_routes, Mount("/x", app)], lifespan=app.lifespan)
    async with serving_app(outer) as address, httpx2.AsyncClient(headers={"Host": "example.com"}) as web:
        refused = await web.post(f"{address}/x/mcp", **list_request(1))
        place = re.search(r'resource_metadata="https://example.com([^"]*)"', refused.headers["www-authenticate"])
        assert place is not None
        answer = (await web.get(f"{address}{place[1]}")).json()
        assert answer["resource"] == "https://example.com/x/mcp"
    with pytest.raises(FormatError) as caught:
        skills().asgi(access=access)
    assert caught.value.reference == "public-url-missing"


async def test_a_gateway_is_mounted_too(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "mine", {"refunds/SKILL.md": skill_md("refunds")})

    @asynccontextmanager
    async def lifespan(outer: FastAPI) -> AsyncIterator[None]:
        async with open_gateway(
            servers={"acme": f"{upstream}/mcp"}, folders=[folder], state=tmp_path / "state"
        ) as gateway:
            await gateway.settle(20)
            app = gateway.asgi(page=catalog_page)
            outer.mount("/skills", app)
            async with app.lifespan():
                yield

    async with serving_app(skills().asgi()) as upstream, serving_app(FastAPI(lifespan=lifespan)) as address:
        for endpoint in ("", "/sep-2076", "/native"):
            async with connect(f"{address}/skills/mcp{endpoint}") as client:
                assert len([entry.name async for entry in client.list_skills()]) == 3
        async with httpx2.AsyncClient(base_url=f"{address}/skills") as web:
            assert "/skills/skill/mine/refunds" in (await web.get("/")).text
            assert "skillwire_requests" in (await web.get("/metrics")).text


@pytest.mark.parametrize("state", [None, "user", "own"])
async def test_a_gateway_has_its_own_state_unless_it_is_told_where(
    state: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a host. Hints depend on it: no other program can approve a skill in the gateway's own state."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    own = tmp_path / "own"
    policy = tmp_path / "gateway.toml"
    policy.write_text('mode = "admit"\n')
    async with serving_app(skills().asgi()) as upstream:
        place = own if state == "own" else state
        async with open_gateway(servers={"acme": f"{upstream}/mcp"}, policy=policy, state=place) as gateway:
            await gateway.settle(20)
            problems = await gateway.upstreams["acme"].gate.problems(for_operator=True)
            hints = {problem.hint for problem in problems if problem.reference == "approval-missing"}
    assert (tmp_path / "xdg/skillwire/host.sqlite3").exists() == (state == "user")
    assert (own / "host.sqlite3").exists() == (state == "own")
    assert len(hints) > 1
    assert all(("[[approved]]" in hint) == (state is None) for hint in hints)
    assert all((f"--state {own}" in hint) == (state == "own") for hint in hints)


async def test_a_gateway_checks_what_it_is_given(tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        async with open_gateway(state=tmp_path / "state"):
            pass
    with pytest.raises(FormatError):
        async with open_gateway(servers={"not a label": "http://127.0.0.1:1/mcp"}, state=tmp_path / "state"):
            pass


def list_request(number: int) -> dict[str, Any]:
    """A ``skills/list`` of the stateless era."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {
        "json": {"jsonrpc": "2.0", "id": number, "method": "skills/list", "params": {"_meta": meta}},
        "headers": {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "skills/list",
        },
    }
