"""Whoever may not see a skill learns nothing of what it binds; a token is worth nothing to others (M3)."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from http_server import serving_app
from interaction.native_caller import Caller
from interaction.native_server import KEY, build, native_tree
from rules import rule
from skillwire.server.access import Access, digest_token, new_token
from skillwire.server.dialect import Dialects
from skillwire.server.http import HttpOptions, HttpServer, WebApp, listen
from skillwire.server.sdk_compat import lowlevel_server
from trees import write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio

TOKENS = {"all": new_token()[0], "also-all": new_token()[0], "shipper": new_token()[0], "inner": new_token()[0]}
ACCESS = Access(
    tokens={digest_token(token): subject for subject, token in TOKENS.items()},
    see={
        "all": ("*",),
        "also-all": ("*",),
        "shipper": ("shipping", "plain"),
        "inner": ("acme/refunds/escalation",),
    },
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", native_tree())


@asynccontextmanager
async def running(root: Path, access: Access = ACCESS, **options: Any) -> AsyncIterator[str]:
    listener = listen("127.0.0.1", 0)
    server = build(root, Dialects(activation_key=KEY, **options), access.visible)
    http = HttpServer(WebApp(lowlevel_server(server), HttpOptions(access)), listener)
    async with serving_app(http.app, listener):
        yield f"{http.url}/native"
        http.app.drain()


@asynccontextmanager
async def calling(url: str, subject: str, mode: str) -> AsyncIterator[Caller]:
    headers = {"Authorization": f"Bearer {TOKENS[subject]}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=20) as web,
        Client(streamable_http_client(url, http_client=web), mode=mode) as client,
    ):
        yield Caller(client, "legacy" if mode == "legacy" else "modern")


async def answer(caller: Caller, method: str, **params: Any) -> str:
    """Everything that comes back, whether it is a result or an error."""
    try:
        return json.dumps(await caller.call(method, **params), sort_keys=True)
    except MCPError as error:
        return json.dumps(error.error.model_dump(), sort_keys=True)


@rule("M3")
async def test_what_belongs_to_an_unseen_skill_answers_like_what_does_not_exist(root: Path, mode: str) -> None:
    """The server's own words for an unknown tool, prompt or resource, and ours for an unknown skill."""
    asks: list[tuple[str, str, dict[str, Any]]] = [
        ("pay", "tools/call", {"name": "{}", "arguments": {"order": "1"}}),
        ("apologise", "prompts/get", {"name": "{}", "arguments": {"to": "Ada"}}),
        ("rules://refunds", "resources/read", {"uri": "{}"}),
        ("orders://7", "resources/read", {"uri": "{}"}),
        ("skill://acme/refunds/escalation/SKILL.md", "resources/read", {"uri": "{}"}),
        ("escalation", "skills/activate", {"name": "{}"}),
        ("acme/refunds/escalation", "skills/activate", {"name": "{}"}),
        ("skill://acme/refunds/escalation/SKILL.md", "skills/activate", {"name": "{}"}),
        ("refunds", "skills/deactivate", {"name": "{}"}),
    ]
    async with running(root) as url, calling(url, "shipper", mode) as caller:
        before = await caller.everything()
        assert before["tools"] == {"add"}
        assert before["skills"] == {"shipping", "plain"}
        assert before["resources"] == {"config://main", "orders://all"}
        for name, method, params in asks:
            missing = name.replace("escalation", "elsewhere") if "escalation" in name else f"z{name}"
            hidden = await answer(caller, method, **_filled(params, name))
            unknown = await answer(caller, method, **_filled(params, missing))
            assert hidden.replace(name, missing) == unknown, method
            assert "skill-not-active" not in hidden
        assert await caller.everything() == before


@rule("M3")
async def test_a_refusal_names_only_skills_that_the_caller_may_see(root: Path, mode: str) -> None:
    """What two skills bind is refused with the one that is seen, and comes with it."""
    async with running(root) as url, calling(url, "shipper", mode) as caller:
        said = await caller.failed("lookup_order", order="1")
        assert "'shipping'" in said
        assert "refunds" not in said
        await caller.call("skills/activate", name="shipping")
        assert await caller.ran("lookup_order", order="1") == "order 1"
        assert await caller.tools() == {"add"}


@rule("M3")
async def test_a_skill_whose_enclosing_one_is_unseen_stands_by_itself(root: Path, mode: str) -> None:
    """Nobody is told to activate what they may not see."""
    async with running(root) as url, calling(url, "inner", mode) as caller:
        assert (await caller.everything())["skills"] == {"escalation"}
        await caller.call("skills/activate", name="escalation")
        assert await caller.ran("escalate") == "escalated"


@rule("M3")
async def test_a_token_is_worth_nothing_to_another_subject(root: Path) -> None:
    """Not even to one who may see the same."""
    async with running(root) as url, calling(url, "all", "auto") as one, calling(url, "also-all", "auto") as two:
        await one.call("skills/activate", name="refunds")
        assert await one.ran("pay", order="1") == "paid 1"
        two.token = one.token
        with pytest.raises(MCPError) as caught:
            await two.tools()
        assert caught.value.error.data["reference"] == "activation-invalid"


@rule("M3")
async def test_a_skill_that_may_no_longer_be_seen_is_no_longer_active(root: Path) -> None:
    """The token is good, and opens nothing."""
    narrowed = Access(tokens=ACCESS.tokens, see={"all": ("shipping",)})
    async with running(root) as url, calling(url, "all", "auto") as caller:
        await caller.call("skills/activate", name="refunds")
        await caller.call("skills/activate", name="shipping")
        token = caller.token
    async with running(root, narrowed) as url, calling(url, "all", "auto") as caller:
        caller.token = token
        assert await caller.usable() == {"lookup_order"}
        assert "refunds" not in await caller.failed("pay", order="1")


@rule("M5")
async def test_m5_what_is_kept_listed_is_still_unseen_where_its_skill_is(root: Path, mode: str) -> None:
    """The choice is about activation, not about who may see what."""
    async with running(root, keep_listed=True) as url:
        async with calling(url, "shipper", mode) as caller:
            assert await caller.tools() == {"add", "lookup_order"}
            assert "refunds" not in await caller.failed("pay", order="1")
        async with calling(url, "all", mode) as caller:
            assert await caller.tools() == {"add", "lookup_order", "pay", "escalate"}


@rule("M3")
async def test_on_the_other_endpoints_everything_stays_listed_and_callable(root: Path, mode: str) -> None:
    """There, no client would know how to activate anything."""
    async with running(root) as url:
        for path in ("", "/sep-2076"):
            async with calling(url.removesuffix("/native") + path, "all", mode) as caller:
                tools = await caller.tools()
                assert {"add", "lookup_order", "pay", "escalate"} <= tools
                assert await caller.ran("pay", order="1") == "paid 1"
                assert await caller.read("orders://7") == "order 7"


def _filled(params: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: name if value == "{}" else value for key, value in params.items()}
