"""The ``sep-2076`` endpoint of servers with things of their own, for callers who may see a part, beside others."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError

from http_server import serving_http
from interaction.conftest import Wire
from interaction.test_access import ACCESS, TOKENS, caller, running
from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.server.dialect import Dialects
from skillwire.server.sdk_compat import lowlevel_server
from skillwire.server.skills import Skills
from skillwire.skill.entry import digest_of
from skillwire.wire.extension import Freshness
from trees import SMALL_TREE_SKILLS, skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
KEEP = {"ttlMs": 5000, "cacheScope": "public", "resultType": "complete"}


def needing(name: str, needs: str) -> Skill:
    return Skill(name, {"SKILL.md": skill_md(name, extra=f"dependencies: {needs}\n"), "a.md": b"a"})


def catalog() -> MemoryCatalog:
    return MemoryCatalog(
        [
            needing("all-there", '{tools: [add], prompts: [greet], resources: ["config://main", "notes://x"]}'),
            needing("by-file", '{resources: ["skill://by-file/a.md", "skill://all-there/SKILL.md"]}'),
            needing("no-file", '{resources: ["skill://by-file/b.md"]}'),
            needing("no-prompt", "{prompts: [{type: ref/prompt, name: thank}]}"),
            needing("no-resource", '{resources: ["config://other", "notes://x/y"]}'),
            needing("no-tool", "{tools: [add, pay]}"),
            needing("nothing", "{}"),
        ]
    )


LISTED = ["all-there", "by-file", "nothing"]
LACKING = {
    "no-file": ["'skill://by-file/b.md'"],
    "no-prompt": ["'thank'"],
    "no-resource": ["'config://other'", "'notes://x/y'"],
    "no-tool": ["'pay'"],
}


def mcp_server() -> MCPServer:
    server = MCPServer("own")

    @server.tool()
    def add(one: int, two: int) -> int:
        return one + two

    @server.prompt()
    def greet(name: str) -> str:
        return f"Hello, {name}"

    @server.resource("config://main")
    def config() -> str:
        return "a=1"

    @server.resource("notes://{name}")
    def note(name: str) -> str:
        return f"note {name}"

    return server


def low_server() -> Server[Any]:
    """The same by hand; tools come in two pages."""

    async def tools(ctx: Any, params: Any) -> Any:
        name, more = ("add", {}) if params.cursor else ("other", {"nextCursor": "2"})
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}}], **more, **KEEP}

    async def prompts(ctx: Any, params: Any) -> Any:
        return {"prompts": [{"name": "greet"}], **KEEP}

    async def resources(ctx: Any, params: Any) -> Any:
        return {"resources": [{"uri": "config://main", "name": "main"}], **KEEP}

    async def templates(ctx: Any, params: Any) -> Any:
        return {"resourceTemplates": [{"uriTemplate": "notes://{name}", "name": "note"}], **KEEP}

    return Server(
        "low",
        on_list_tools=tools,
        on_list_prompts=prompts,
        on_list_resources=resources,
        on_list_resource_templates=templates,
    )


SERVERS = pytest.mark.parametrize("make", [mcp_server, low_server], ids=["mcp-server", "low-level"])


async def names(wire: Wire) -> list[str]:
    return [skill["name"] for skill in (await wire.call("skills/list"))["skills"]]


@SERVERS
async def test_p3_a_skill_is_shown_if_the_server_offers_what_it_needs(make: Any, mode: str) -> None:
    """Tools, prompts, resources, templates that match, and files of skills count."""
    server = Skills(catalog(), dialects=Dialects("sep-2076")).attach(make())
    async with Client(server, mode=mode) as client:
        wire = Wire(client, "modern")
        assert await names(wire) == LISTED
        for name in LISTED:
            assert "instructions" in await wire.call("skills/get", name=name)
        for name, lacks in LACKING.items():
            with pytest.raises(MCPError) as caught:
                await wire.call("skills/get", name=name)
            error = caught.value.error
            assert (error.code, error.data["reference"]) == (-32602, "dependency-missing")
            assert all(what in error.message for what in lacks)


@SERVERS
async def test_p3_what_is_missing_is_said_once_when_the_server_starts(make: Any, caplog: Any) -> None:
    """Before anybody has asked for anything; not again when somebody does."""
    caplog.set_level(logging.WARNING, "skillwire.server")
    server = Skills(catalog(), dialects=Dialects("sep-2076")).attach(make())
    async with Client(server) as client:
        with anyio.fail_after(20):
            while len(caplog.messages) < 5:
                await anyio.lowlevel.checkpoint()
        await names(Wire(client, "modern"))
    said = [(f"{name}/SKILL.md", what) for name, lacks in LACKING.items() for what in lacks]
    assert len(caplog.messages) == len(said)
    for (file, what), message in zip(said, caplog.messages, strict=True):
        assert file in message
        assert what in message
        assert "[dependency-missing]" in message


async def test_p3_a_server_that_cannot_be_asked_at_its_start_is_asked_later(caplog: Any) -> None:
    caplog.set_level(logging.WARNING, "skillwire.server")

    async def tools(ctx: Any, params: Any) -> Any:
        if ctx.request_id is None:
            raise RuntimeError("nobody is there")
        return {"tools": [{"name": "add", "inputSchema": {"type": "object"}}], **KEEP}

    skills = MemoryCatalog([needing("works", "{tools: [add]}"), needing("lacks", "{tools: [pay]}")])
    server = Skills(skills, dialects=Dialects("sep-2076")).attach(Server("x", on_list_tools=tools))
    async with Client(server) as client:
        assert await names(Wire(client, "modern")) == ["works"]
    [message] = caplog.messages
    assert "lacks/SKILL.md" in message


async def test_p3_a_listing_that_fails_offers_nothing_and_fails_nothing_else() -> None:
    async def tools(ctx: Any, params: Any) -> Any:
        raise RuntimeError("broken")

    skills = MemoryCatalog([needing("lacks", "{tools: [add]}"), needing("works", "{}")])
    server = Skills(skills, dialects=Dialects("sep-2076")).attach(Server("x", on_list_tools=tools))
    async with Client(server) as client:
        assert await names(Wire(client, "modern")) == ["works"]


async def test_p3_other_dialects_serve_the_skill_unchanged() -> None:
    server = Skills(catalog()).attach(mcp_server())
    async with serving_http(lowlevel_server(server)) as url:
        async with Client(url) as client:
            entries = (await Wire(client, "modern").call("skills/list"))["skills"]
            assert [entry["frontmatter"]["name"] for entry in entries] == sorted([*LISTED, *LACKING])
            assert {frozenset(entry) for entry in entries} == {frozenset({"uri", "frontmatter", "resources"})}
        async with Client(f"{url}/sep-2076") as client:
            assert await names(Wire(client, "modern")) == LISTED
            assert (await client.call_tool("add", {"one": 1, "two": 2})).structured_content == {"result": 3}


@rule("L1")
async def test_an_answer_keeps_no_longer_than_what_it_depends_on() -> None:
    """And what a caller's arguments went into is nobody else's."""
    public = Freshness(60_000, "public")
    skills = MemoryCatalog(
        [
            Skill("asks", {"SKILL.md": skill_md("asks", extra="arguments: [a]\n")}),
            needing("needs", "{tools: [add]}"),
        ]
    )
    server = Skills(skills, freshness=public, dialects=Dialects("sep-2076")).attach(low_server())
    async with Client(server) as client:
        wire = Wire(client, "modern")

        async def kept(method: str, **params: Any) -> tuple[int, str]:
            result = await wire.call(method, **params)
            return result["ttlMs"], result["cacheScope"]

        assert await kept("skills/get", name="asks") == (60_000, "public")
        assert await kept("skills/get", name="asks", arguments={"a": "b"}) == (60_000, "private")
        assert await kept("skills/get", name="needs") == (5000, "public")
        assert await kept("skills/list") == (5000, "public")


@rule("P1")
async def test_l3_pages_follow_each_other(mode: str) -> None:
    """Also where a page has nothing that works."""
    skills = [needing(f"s{number}", "{tools: [pay]}" if number in (2, 3) else "{}") for number in range(6)]
    server = Skills(MemoryCatalog(skills), page_size=2, dialects=Dialects("sep-2076")).attach(Server("x"))
    seen: list[list[str]] = []
    async with Client(server, mode=mode) as client:
        cursor: dict[str, str] = {}
        while True:
            page = await Wire(client, "modern").call("skills/list", **cursor)
            seen.append([skill["name"] for skill in page["skills"]])
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
    assert seen == [["s0", "s1"], [], ["s4", "s5"]]


@rule("P4")
async def test_a_dynamic_skill_has_the_files_that_it_links_to(mode: str) -> None:
    """Nothing is promised about them."""
    skills, made = Skills(dialects=Dialects("sep-2076")), iter(range(100))

    @skills.skill("today", dynamic=True)
    async def today() -> dict[str, str]:
        body = f"Number {next(made)}: [it](a.md), [more](sub/)."
        return {"SKILL.md": skill_md("today", body=body).decode(), "a.md": "a", "b.md": "b"}

    async with Client(skills.attach(Server("x")), mode=mode) as client:
        wire = Wire(client, "modern")
        [listed] = (await wire.call("skills/list"))["skills"]
        assert list(listed["_meta"]) == ["io.github.skillwire/uri"]
        first, second = [await wire.call("skills/get", name="today") for _ in range(2)]
        assert first["instructions"] != second["instructions"]
        file = {"name": "a.md", "title": "it", "uri": "skill://today/a.md", "mimeType": "text/markdown"}
        described = first["instructions"].strip().replace("[it](a.md), [more](sub/)", "it, more")
        assert first["files"] == [{**file, "description": described, "required": True}]
        assert (await wire.call("resources/read", uri="skill://today/a.md"))["contents"][0]["text"] == "a"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    hidden = skill_md("refunds", "Hidden.")
    return write_tree(tmp_path / "skills", {**small_tree(), "acme/hidden/refunds/SKILL.md": hidden})


@rule("P1", "P2", "N1")
async def test_each_caller_sees_and_hears_of_its_own_part_only(root: Path, mode: str) -> None:
    """Also in labels, in suggestions and in what skills need."""
    needs = 'dependencies: {resources: ["skill://acme/release/SKILL.md"]}\n'
    write_tree(root, {"flat/SKILL.md": skill_md("flat", extra=needs)})
    async with running(root, ACCESS) as url:
        async with caller(f"{url}/sep-2076", TOKENS["all"], mode) as wire:
            assert len(await names(wire)) == len(SMALL_TREE_SKILLS) + 1
            assert {"acme/billing/refunds", "acme/hidden/refunds", "flat"} <= set(await names(wire))
        async with caller(f"{url}/sep-2076", TOKENS["nobody"], mode) as wire:
            assert await names(wire) == []
        async with caller(f"{url}/sep-2076", TOKENS["billing"], mode) as wire:
            assert await names(wire) == ["refunds"]  # what "flat" needs is not there for this caller
            told = []
            for name in ("release", "zelease"):
                with pytest.raises(MCPError) as caught:
                    await wire.call("skills/get", name=name)
                told.append(json.dumps(caught.value.error.model_dump()).replace("release", "zelease"))
            assert told[0] == told[1]
            with pytest.raises(MCPError):
                await wire.call("resources/read", uri="skill://acme/release/notes.md")


@rule("R2")
async def test_the_instructions_are_what_the_entry_describes(root: Path) -> None:
    """The digest beside them is that of the very file they are from."""
    server = Skills(root, dialects=Dialects("sep-2076")).attach(Server("x"))
    async with Client(server) as client:
        got = await Wire(client, "modern").call("skills/get", name="flat")
        assert got["_meta"]["io.github.skillwire/digest"] == digest_of((root / "flat/SKILL.md").read_bytes())
