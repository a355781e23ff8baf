"""The ``native`` dialect over every transport, in both eras: what skills bind comes and goes with them (M1–M5)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from http_server import serving_http
from interaction import native_server
from interaction.native_caller import Caller
from interaction.native_server import build, native_tree
from rotation import every_setting
from rules import rule
from skillwire import connect
from skillwire.errors import NotFoundError
from skillwire.server.dialect import Dialects
from skillwire.server.sdk_compat import lowlevel_server
from skillwire.skill.entry import digest_of
from skillwire.wire.extension import EXTENSION_ID
from skillwire.wire.meta import DIGEST, SIZE, URI
from starting import python_command
from trees import replace_file, skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from interaction.conftest import Setting

    Open = Callable[..., AbstractAsyncContextManager[Caller]]

pytestmark = pytest.mark.anyio

EVERYTHING = {"add", "lookup_order", "escalate", "pay"}
REPLY, WHO = "skill://acme/refunds/templates/reply.md", "skill://acme/refunds/escalation/who.md"
PATIENCE = 20


HIDDEN = {
    "tools": {"add"},
    "prompts": {"greet"},
    "resources": {"config://main", "orders://all"},
    "templates": {"notes://{name}"},
    "skills": {"refunds", "plain", "shipping"},
}
NESTED = "escalation"


HIDDEN_URIS = ("rules://refunds", "orders://7", "orders://%37", REPLY)
# What kind of thing is meant is said by its type, and by nothing else in the reference.
HIDDEN_REFERENCES = [
    {"type": "ref/prompt", "name": "apologise"},
    {"type": "ref/prompt", "name": "apologise", "uri": "config://main"},
    {"type": "ref/resource", "uri": "orders://{order}"},
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", native_tree())


@asynccontextmanager
async def place(setting: Setting, root: Path, *, keep_listed: bool = False) -> AsyncIterator[Any]:
    """Where a client finds the server: an object, a command, or a URL."""
    if setting.transport == "stdio":
        script = [native_server.__file__, str(root), *(["keep"] if keep_listed else [])]
        yield [*python_command(), *script]
    elif setting.transport == "memory":
        yield build(root, Dialects("native", keep_listed=keep_listed))
    else:
        async with serving_http(lowlevel_server(build(root, Dialects(keep_listed=keep_listed)))) as url:
            yield f"{url}/native"


@asynccontextmanager
async def calling(setting: Setting, target: Any, **options: Any) -> AsyncIterator[Caller]:
    if isinstance(target, list):
        target = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    async with Client(target, mode=_mode(setting), **options) as client:
        yield Caller(client, setting.era)


@pytest.fixture
def opened(setting: Setting, root: Path) -> Open:
    """``async with opened() as caller``: a server of its own for each."""

    @asynccontextmanager
    async def connection(*, keep_listed: bool = False, **options: Any) -> AsyncIterator[Caller]:
        async with (
            place(setting, root, keep_listed=keep_listed) as target,
            calling(setting, target, **options) as caller,
        ):
            yield caller

    return connection


@rule("M1")
async def test_m1_the_listing_is_light_and_paged(opened: Open, setting: Setting) -> None:
    """Names, descriptions, where the skill is and what its ``SKILL.md`` hashes to; no files, and no extension."""
    async with opened() as caller:
        listing = await caller.call("skills/list")
        [refunds] = [skill for skill in listing["skills"] if skill["name"] == "refunds"]
        text = native_tree()["acme/refunds/SKILL.md"]
        promised = {DIGEST: digest_of(text), SIZE: len(text)}
        assert refunds == {
            "name": "refunds",
            "description": "Pays back.",
            "_meta": {URI: "skill://acme/refunds/SKILL.md", **promised},
        }
        assert (listing.get("cacheScope"), listing.get("ttlMs")) == (
            (None, None) if setting.era == "legacy" else ("private", 0)
        )
        assert await caller.refused_for("skills/list", cursor="nonsense") == "cursor-invalid"
        capabilities = caller.client.server_capabilities
        assert capabilities.experimental == {"skills": {"listChanged": True}}
        assert EXTENSION_ID not in (capabilities.extensions or {})
        assert capabilities.tools is not None
        assert capabilities.tools.list_changed
        assert capabilities.prompts is not None
        assert capabilities.prompts.list_changed


@rule("M2")
async def test_m2_activating_gives_instructions_and_complete_definitions(opened: Open) -> None:
    """Whatever a client needs to call them, and what it needs to verify files."""
    async with opened() as caller:
        answer = await caller.call("skills/activate", name="refunds")
        assert answer["description"] == "Pays back."
        [message] = answer["instructions"]
        assert (message["role"], message["content"]["type"]) == ("user", "text")
        assert message["content"]["text"].strip() == "Pay back."
        tools = {tool["name"]: tool for tool in answer["tools"]}
        assert set(tools) == {"lookup_order", "pay"}
        assert tools["pay"]["inputSchema"]["required"] == ["order"]
        assert tools["pay"]["description"] == "Pays an order back."
        [prompt] = answer["prompts"]
        assert (prompt["name"], prompt["arguments"][0]["name"]) == ("apologise", "to")
        resources = {resource["uri"]: resource for resource in answer["resources"]}
        assert "rules://refunds" in resources
        assert resources[REPLY]["size"] == len(b"Dear customer,\n")
        assert resources[REPLY]["name"] == "templates/reply.md"
        assert resources[REPLY]["_meta"][DIGEST].startswith("sha256:")
        assert resources[REPLY]["_meta"][SIZE] == resources[REPLY]["size"]
        assert resources["skill://acme/refunds/SKILL.md"]["name"] == "refunds"
        assert [template["uriTemplate"] for template in answer["resourceTemplates"]] == ["orders://{order}"]
        assert [(skill["name"], skill["description"]) for skill in answer["skills"]] == [
            ("escalation", "Asks a person.")
        ]
        assert answer["_meta"][URI] == "skill://acme/refunds/SKILL.md"


@rule("M3")
async def test_m3_what_a_skill_binds_is_in_no_list_and_callable_while_it_is_active(opened: Open) -> None:
    """By the ordinary methods."""
    async with opened() as caller:
        assert await caller.everything() == HIDDEN
        await caller.call("skills/activate", name="refunds")
        assert await caller.everything() == HIDDEN
        assert await caller.ran("pay", order="7") == "paid 7"
        assert await caller.ran("lookup_order", order="7") == "order 7"
        prompt = await caller.call("prompts/get", name="apologise", arguments={"to": "Ada"})
        assert prompt["messages"][0]["content"]["text"] == "Sorry, Ada."
        assert await caller.read("rules://refunds") == "No refunds on Sundays."
        assert await caller.read("orders://7") == "order 7"
        assert await caller.read(REPLY) == "Dear customer,\n"
        reference = {"type": "ref/prompt", "name": "apologise"}
        completed = await caller.call("completion/complete", ref=reference, argument={"name": "to", "value": ""})
        assert completed["completion"]["values"] == ["one"]
        assert set(await caller.call("skills/deactivate", name="refunds")) <= {"_meta", "resultType"}
        assert await caller.everything() == HIDDEN


@rule("M3")
async def test_m3_what_is_hidden_refuses_calls_and_names_its_skill(opened: Open) -> None:
    """Tools by an error that models read, the rest by -32602; nothing runs, nothing changes."""
    async with opened() as caller:
        await caller.call("skills/activate", name="plain")  # which binds none of it
        before = await caller.everything()
        said = await caller.failed("pay", order="7")
        assert "'refunds'" in said
        assert "skills/activate" in said
        both = await caller.failed("lookup_order", order="7")
        assert "'refunds', 'shipping'" in both
        asks: list[tuple[str, dict[str, Any]]] = [
            ("prompts/get", {"name": "apologise", "arguments": {"to": "Ada"}}),
            *(("resources/read", {"uri": uri}) for uri in HIDDEN_URIS),
            *(("completion/complete", _completion(reference)) for reference in HIDDEN_REFERENCES),
        ]
        for method, params in asks:
            error = await caller.refused(method, **params)
            assert error.data["reference"] == "skill-not-active", (method, params)
            assert "'refunds'" in error.message
        assert await caller.refused_for("resources/read", uri=WHO) == "skill-not-active"
        assert await caller.everything() == before
        assert await caller.ran("add", one=1, two=2) == "3"
        assert await caller.read("orders://all") == "all orders"  # listed by itself, beside the template
        assert await caller.read("notes://x") == "note x"


@rule("M3")
async def test_m3_what_several_skills_bind_is_there_with_any_of_them(opened: Open) -> None:
    async with opened() as caller:
        for active, other in (("refunds", "shipping"), ("shipping", "refunds")):
            await caller.call("skills/activate", name=active)
            await caller.call("skills/activate", name=other)
            await caller.call("skills/deactivate", name=active)
            assert await caller.ran("lookup_order", order="1") == "order 1"
            await caller.call("skills/deactivate", name=other)
            assert await caller.usable() == set()


@rule("M2", "M3")
async def test_m3_a_nested_skill_comes_and_goes_with_the_one_around_it(opened: Open) -> None:
    """It is a scoped primitive like the others."""
    async with opened() as caller:
        error = await caller.refused("skills/activate", name="escalation")
        assert error.data["reference"] == "skill-enclosed"
        assert "'refunds'" in error.message
        assert "escalation" in await caller.failed("escalate")
        await caller.call("skills/activate", name="refunds")
        assert await caller.read(WHO) == "Ada\n"  # E4: the enclosing skill lists it too
        assert "escalate" not in await caller.usable()
        await caller.call("skills/activate", name="escalation")
        assert await caller.ran("escalate") == "escalated"
        await caller.call("skills/deactivate", name="refunds")
        assert await caller.usable() == set()
        await caller.call("skills/activate", name="refunds")
        assert await caller.usable() == {"pay", "lookup_order"}  # it was deactivated, not only hidden


@rule("M3")
async def test_m3_activating_twice_deactivating_twice_and_what_does_not_exist_are_refused(opened: Open) -> None:
    """-32602, with what to do, and no change of state."""
    async with opened() as caller:
        assert await caller.refused_for("skills/deactivate", name="refunds") == "skill-not-active"
        assert await caller.refused_for("skills/activate", name="refund") == "skill-unknown"
        assert await caller.refused_for("skills/deactivate", name="nobody") == "skill-unknown"
        assert await caller.everything() == HIDDEN
        await caller.call("skills/activate", name="acme/refunds")  # N1: a path always works
        for name in ("refunds", "acme/refunds", "skill://acme/refunds/SKILL.md"):
            assert await caller.refused_for("skills/activate", name=name) == "skill-already-active"
        for params in ({}, {"name": 7}):
            await caller.refused("skills/activate", **params)
            await caller.refused("skills/deactivate", **params)
        assert await caller.usable() == {"pay", "lookup_order"}


@every_setting
@rule("M3")
async def test_m3_two_callers_at_once_do_not_see_each_others_activation(setting: Setting, root: Path) -> None:
    """And whoever comes next sees neither."""
    async with place(setting, root) as target:
        async with calling(setting, target) as one, calling(setting, target) as two:
            await one.call("skills/activate", name="refunds")
            assert await two.usable() == set()
            await two.call("skills/activate", name="shipping")
            assert await one.usable() == {"lookup_order", "pay"}
            assert await two.usable() == {"lookup_order"}
            assert "'refunds'" in await two.failed("pay", order="1")
            await one.call("skills/deactivate", name="refunds")
            assert await two.ran("lookup_order", order="1") == "order 1"
            await one.call("skills/activate", name="refunds")
        async with calling(setting, target) as later:
            assert await later.usable() == set()


@rule("M5")
async def test_m5_an_operator_can_leave_everything_listed(opened: Open) -> None:
    """Callable without activation, which still works."""
    async with opened(keep_listed=True) as caller:
        before = await caller.everything()
        assert before["tools"] == EVERYTHING
        assert before["skills"] == {*HIDDEN["skills"], NESTED}
        assert await caller.ran("pay", order="1") == "paid 1"
        assert await caller.read(REPLY) == "Dear customer,\n"
        assert await caller.read("orders://7") == "order 7"
        answer = await caller.call("skills/activate", name="escalation")
        assert [tool["name"] for tool in answer["tools"]] == ["escalate"]
        assert await caller.refused_for("skills/activate", name="escalation") == "skill-already-active"
        await caller.call("skills/deactivate", name="escalation")
        assert await caller.everything() == before


@every_setting
@rule("M1", "M2", "M3", "K2")
async def test_our_client_does_the_whole_round(setting: Setting, root: Path) -> None:
    """Found out, listed, activated, called, read, deactivated."""
    async with place(setting, root) as target, connect(target, mode=_mode(setting)) as client:
        assert await client.dialect() == "native"
        assert {entry.name async for entry in client.list_skills()} == HIDDEN["skills"]
        refunds = await client.activate("refunds")
        assert refunds.instructions.strip() == "Pay back."
        assert (await refunds.call_tool("pay", {"order": "7"}))["content"][0]["text"] == "paid 7"
        assert (await refunds.get_prompt("apologise", {"to": "Ada"}))["messages"]
        for uri, text in (("rules://refunds", "No refunds on Sundays."), ("orders://7", "order 7")):
            assert (await refunds.read_resource(uri))["contents"][0]["text"] == text
        assert {entry.name async for entry in client.list_skills()} == HIDDEN["skills"]
        escalation = await client.activate("escalation")
        assert (await escalation.call_tool("escalate"))["content"][0]["text"] == "escalated"
        assert bool(escalation.meta) == (setting.era == "modern")
        assert (await client.read_unverified(REPLY)).data == b"Dear customer,\n"
        await client.deactivate("refunds")
        for skill, tool in ((refunds, "pay"), (escalation, "escalate")):
            assert (await skill.call_tool(tool, {}))["isError"] is True
        with pytest.raises(NotFoundError):
            await refunds.read_resource("rules://refunds")
        assert (await client.read_unverified("named://refunds/SKILL.md")).data.strip() == b"Pay back."
        assert {entry.name async for entry in client.list_skills()} == HIDDEN["skills"]  # reading left nothing


@rule("M3", "M4", "S1")
async def test_m3_a_skill_that_went_away_is_no_longer_active(opened: Open, root: Path) -> None:
    """What it bound is hidden; what another now binds is shown by that one."""
    async with opened() as caller:
        await caller.call("skills/activate", name="refunds")
        await caller.call("skills/activate", name="plain")
        (root / "acme/refunds/SKILL.md").unlink()
        replace_file(root / "plain/SKILL.md", skill_md("plain", extra="metadata:\n  mcp-tools: add\n"))
        with anyio.fail_after(PATIENCE):
            while await caller.names("skills/list", "skills") != {"plain", "shipping", "escalation"}:
                await anyio.lowlevel.checkpoint()
            while "add" in await caller.tools():  # the two changes of the folder may be noticed one by one
                await anyio.lowlevel.checkpoint()
        assert await caller.ran("add", one=1, two=2) == "3"  # now plain's, which is active
        assert "'refunds'" not in await caller.failed("pay", order="1")  # nobody can activate it any more
        await caller.call("skills/deactivate", name="plain")
        assert "'plain'" in await caller.failed("add", one=1, two=2)
        assert await caller.tools() == set()


def _mode(setting: Setting) -> str:
    return "legacy" if setting.era == "legacy" else "auto"


def _completion(reference: dict[str, str]) -> dict[str, Any]:
    return {"ref": reference, "argument": {"name": "to", "value": ""}}
