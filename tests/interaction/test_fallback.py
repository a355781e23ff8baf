"""Skills for hosts that know nothing of skills: plain tools and prompts, over every transport, in both eras."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.client.extension import advertise
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from interaction.conftest import Wire
from rotation import every_setting
from rules import rule
from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills, build_server
from skillwire.wire.extension import EXTENSION_ID
from starting import skillwire_command
from trees import SMALL_TREE_SKILLS, files_of, skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from skillwire.server.dialect import Fallback

    Connect = Callable[..., AbstractAsyncContextManager[Wire]]

pytestmark = pytest.mark.anyio

TOOLS = {"list_skills", "search_skills", "load_skill", "read_skill_file"}
NAMES = ["refunds", "release", "changelog", "flat", "odd-names", "windows"]  # in the order of URIs
KNOWS_SKILLS = {"extensions": [advertise(EXTENSION_ID)]}
REFUNDS = "skill://acme/billing/refunds/SKILL.md"
SPELLINGS = [
    "templates/reply.md",
    "./templates/reply.md",
    "references/../templates/reply.md",
    "templates/reply%2Emd#top",
    "skill://acme/billing/refunds/templates/reply.md",
]


async def call(wire: Wire, tool: str, **arguments: Any) -> dict[str, Any]:
    return await wire.call("tools/call", name=tool, arguments=arguments)


async def said(wire: Wire, tool: str, **arguments: Any) -> str:
    """What the model reads first."""
    result = await call(wire, tool, **arguments)
    assert not result.get("isError"), result
    return result["content"][0]["text"]


async def refused(wire: Wire, tool: str, **arguments: Any) -> str:
    """What the model reads of a refusal: one text, no more."""
    result = await call(wire, tool, **arguments)
    assert result["isError"] is True, result
    [block] = result["content"]
    assert "Traceback" not in block["text"]
    return block["text"]


@rule("X1")
async def test_a_model_is_told_what_each_tool_takes(connect: Connect) -> None:
    """Exact schemas, every argument described, and hints that nothing is changed by a call."""
    async with connect() as wire:
        tools = (await wire.call("tools/list"))["tools"]
        assert {tool["name"] for tool in tools} == TOOLS
        for tool in tools:
            schema = tool["inputSchema"]
            Draft202012Validator.check_schema(schema)
            assert schema["additionalProperties"] is False
            assert all(argument["description"] for argument in schema["properties"].values())
            assert tool["annotations"]["readOnlyHint"] is tool["annotations"]["idempotentHint"] is True
            assert tool["annotations"]["openWorldHint"] is False
            assert tool["title"]
            assert len(tool["description"]) < 400
        assert wire.client.server_capabilities.tools is not None
        assert wire.client.server_capabilities.prompts is not None
        assert wire.client.server_capabilities.prompts.list_changed is True


@rule("X1", "X2")
async def test_a_host_that_knows_only_tools_gets_from_a_task_to_a_file(connect: Connect) -> None:
    """Search, load, read; each answer says where it comes from and what to do next."""
    async with connect() as wire:
        found = await call(wire, "search_skills", query="give a customer's refund back")
        assert "load_skill" in found["content"][0]["text"]
        name = found["structuredContent"]["skills"][0]["name"]
        assert name == "refunds"
        loaded = (await call(wire, "load_skill", skill=name))["content"]
        assert [block["type"] for block in loaded] == ["text", "text"]
        for words in ('"skillwire"', REFUNDS, "- templates/reply.md"):  # the origin, and the other files
            assert words in loaded[0]["text"]
        assert loaded[1]["text"].encode() == small_tree()["acme/billing/refunds/SKILL.md"]
        read = (await call(wire, "read_skill_file", skill=name, path="templates/reply.md"))["content"]
        assert '"skillwire"' in read[0]["text"]
        assert read[1] == {"type": "text", "text": "Dear customer,\n"}


@rule("X2", "F6")
async def test_every_file_is_what_the_extension_serves(connect: Connect) -> None:
    """Byte for byte: text, a BOM, CRLF, odd names, binary, empty."""
    async with connect() as wire:
        for skill in SMALL_TREE_SKILLS:
            entry = (await wire.call("skills/get", uri=f"skill://{skill}/SKILL.md"))["skill"]
            served = [await wire.call("resources/read", uri=item["uri"]) for item in entry["resources"]]
            contents = [content for result in served for content in result["contents"]]
            for path in files_of(small_tree(), skill):
                [_, block] = (await call(wire, "read_skill_file", skill=skill, path=path))["content"]
                if block["type"] == "text":
                    assert block["text"].encode() == small_tree()[f"{skill}/{path}"]
                    assert block["text"] in [content.get("text") for content in contents]
                else:
                    assert block["resource"] in contents
            [_, loaded] = (await call(wire, "load_skill", skill=skill))["content"]
            assert loaded["text"].encode() == small_tree()[f"{skill}/SKILL.md"]


@rule("X1")
async def test_skills_are_listed_with_what_they_are_for(connect: Connect) -> None:
    """One line for each, for models; the same for programs."""
    async with connect() as wire:
        result = await call(wire, "list_skills")
        lines = [line for line in result["content"][0]["text"].splitlines() if line.startswith("- ")]
        assert lines[0] == f"- refunds: Does one thing well. ({REFUNDS})"
        assert [skill["name"] for skill in result["structuredContent"]["skills"]] == NAMES
        assert result["structuredContent"]["skills"][0] == {
            "name": "refunds", "description": "Does one thing well.", "uri": REFUNDS
        }  # fmt: skip
        assert "nextCursor" not in result["structuredContent"]
        assert "load_skill" in result["structuredContent"]["next"]


@rule("X1", "D1")
async def test_a_folder_is_listed(connect: Connect) -> None:
    """Direct children, each with the path to read it by."""
    async with connect() as wire:
        for spelling in ("", ".", "./", "skill://acme/release", "changelog/.."):
            text = await said(wire, "read_skill_file", skill="release", path=spelling)
            assert text.splitlines()[1:] == ["- SKILL.md (64 bytes)", "- changelog/", "- notes.md (6 bytes)"]
        inner = await said(wire, "read_skill_file", skill="release", path="changelog/templates/")
        assert inner.splitlines()[1:] == ["- changelog/templates/entry.md (3 bytes)"]


@rule("X1", "U6")
async def test_a_skill_and_a_file_may_be_spelled_in_several_ways(connect: Connect) -> None:
    """Name, path, URI; a path, a link as it stands in the text, a URI."""
    skills = ("refunds", " refunds ", "acme/billing/refunds", REFUNDS, "skill://acme/billing/refunds")
    async with connect() as wire:
        for skill, path in zip(skills, SPELLINGS, strict=True):
            [_, block] = (await call(wire, "read_skill_file", skill=skill, path=path))["content"]
            assert block["text"] == "Dear customer,\n"


# The reference that each refusal has, and what it names: an argument, or what to call next.
WRONG_CALLS: list[tuple[str, dict[str, Any], str, str]] = [
    ("list_skills", {"cursor": "never given"}, "cursor-invalid", "nextCursor"),
    ("list_skills", {"cursor": 1}, "arguments-invalid", "'cursor'"),
    ("list_skills", {"page": 1}, "arguments-invalid", "'page'"),
    ("search_skills", {}, "arguments-invalid", "'query'"),
    ("search_skills", {"query": None}, "arguments-invalid", "'query'"),
    ("search_skills", {"query": "  "}, "arguments-invalid", "'query'"),
    ("search_skills", {"query": "x", "limit": "5"}, "arguments-invalid", "'limit'"),
    ("search_skills", {"query": "x", "limit": True}, "arguments-invalid", "'limit'"),
    ("search_skills", {"query": "x", "limit": 1.5}, "arguments-invalid", "'limit'"),
    ("search_skills", {"query": "x", "limit": 0}, "arguments-invalid", "'limit'"),
    ("search_skills", {"query": "x", "limit": 51}, "arguments-invalid", "'limit'"),
    ("load_skill", {"name": "refunds"}, "arguments-invalid", "'name'"),
    ("load_skill", {"name": "refunds"}, "arguments-invalid", "'skill'"),
    ("load_skill", {"skill": "refund"}, "skill-unknown", " refunds"),
    ("load_skill", {"skill": "nothing like it"}, "skill-unknown", "search_skills"),
    ("load_skill", {"skill": "../flat"}, "skill-unknown", "list_skills"),
    ("load_skill", {"skill": "x" * 50_000}, "skill-unknown", "list_skills"),
    ("load_skill", {"skill": "a/" * 5_000}, "skill-unknown", "list_skills"),
    ("load_skill", {"skill": "http://example.com/SKILL.md"}, "skill-unknown", "list_skills"),
    ("load_skill", {"skill": "file:///etc/passwd"}, "uri-invalid", "list_skills"),
    ("load_skill", {"skill": "skill://"}, "skill-unknown", "list_skills"),
    ("read_skill_file", {"skill": "flat"}, "arguments-invalid", "'path'"),
    ("read_skill_file", {"skill": "nobody", "path": "x"}, "skill-unknown", "list_skills"),
    ("read_skill_file", {"skill": "refunds", "path": "templates/repl.md"}, "file-unknown", "templates/reply.md"),
    ("read_skill_file", {"skill": "flat", "path": "../windows/SKILL.md"}, "path-outside", "read_skill_file"),
    ("read_skill_file", {"skill": "flat", "path": "%2e%2e/windows/SKILL.md"}, "file-unknown", "read_skill_file"),
    ("read_skill_file", {"skill": "flat", "path": "/etc/passwd"}, "path-outside", "read_skill_file"),
    ("read_skill_file", {"skill": "flat", "path": "C:\\windows"}, "path-outside", "read_skill_file"),
    ("read_skill_file", {"skill": "flat", "path": "a\x00b"}, "path-outside", "read_skill_file"),
    ("read_skill_file", {"skill": "flat", "path": "skill://windows/SKILL.md"}, "path-outside", "read_skill_file"),
    ("read_skill_file", {"skill": "flat", "path": "file:///etc/passwd"}, "uri-invalid", ""),
    ("read_skill_file", {"skill": "flat", "path": "a/" * 5_000}, "uri-invalid", "4096"),
    ("read_skill_file", {"skill": "flat", "path": "SKILL.md/x"}, "file-unknown", "SKILL.md"),
]


@rule("X1", "U6", "U7", "O3")
async def test_a_wrong_call_is_a_tools_error_that_says_what_to_do(connect: Connect) -> None:
    """Nothing outside the skill is read."""
    async with connect() as wire:
        for tool, arguments, reference, named in WRONG_CALLS:
            text = await refused(wire, tool, **arguments)
            assert text.endswith(f"[{reference}]"), (tool, arguments)
            assert named in text, (tool, arguments)
            assert len(text) < 1000
        for arguments in ([], "flat"):
            with pytest.raises(MCPError) as caught:
                await wire.call("tools/call", name="load_skill", arguments=arguments)
            assert caught.value.error.code == -32602
        with pytest.raises(MCPError) as caught:
            await wire.call("tools/call", name="unknown", arguments={})
        assert caught.value.error.code == -32602


@rule("X1")
async def test_an_optional_argument_that_is_null_or_empty_counts_as_absent(connect: Connect) -> None:
    """Hosts fill in what a model left out."""
    async with connect() as wire:
        for cursor in (None, ""):
            assert len((await call(wire, "list_skills", cursor=cursor))["structuredContent"]["skills"]) == 6
        assert (await call(wire, "search_skills", query="refunds", limit=None))["structuredContent"]["skills"]
        assert (await call(wire, "search_skills", query="refunds", limit=1.0))["structuredContent"]["skills"]
        nothing = await said(wire, "search_skills", query="zebra !!! \"'(*")
        assert "list_skills" in nothing


@rule("X2")
async def test_every_skill_is_a_prompt(connect: Connect) -> None:
    """One for each listed skill, with the same bytes and the origin; what the person wants comes last."""
    async with connect() as wire:
        prompts = (await wire.call("prompts/list"))["prompts"]
        assert [prompt["name"] for prompt in prompts] == NAMES
        assert prompts[0]["title"] == "refunds"
        assert prompts[0]["description"] == "Does one thing well."
        [argument] = prompts[0]["arguments"]
        assert (argument["name"], argument["required"]) == ("request", False)
        for name, path in zip(NAMES, SMALL_TREE_SKILLS, strict=True):
            got = await wire.call("prompts/get", name=name)
            assert [message["role"] for message in got["messages"]] == ["user", "user"]
            blocks = [message["content"] for message in got["messages"]]
            assert blocks == (await call(wire, "load_skill", skill=name))["content"]
            assert blocks[1]["text"].encode() == small_tree()[f"{path}/SKILL.md"]
        got = await wire.call("prompts/get", name="acme/billing/refunds", arguments={"request": "Pay Ada."})
        assert got["messages"][2] == {"role": "user", "content": {"type": "text", "text": "Pay Ada."}}


@rule("X2")
async def test_a_prompt_that_cannot_be_given_is_refused_with_a_reason(connect: Connect) -> None:
    """-32602."""
    wrong: list[dict[str, Any]] = [
        {"name": "nobody"},
        {"name": "../flat"},
        {"name": "flat", "arguments": {"order": "A-17"}},
        {"name": "flat", "arguments": {"request": 5}},
    ]
    async with connect() as wire:
        for params in wrong:
            with pytest.raises(MCPError) as caught:
                await wire.call("prompts/get", **params)
            assert caught.value.error.code == -32602, params
        with pytest.raises(MCPError) as caught:
            await wire.call("prompts/list", cursor="skillwire.never-given")
        assert caught.value.error.code == -32602
        reference = {"type": "ref/prompt", "name": "flat"}
        asked = {"ref": reference, "argument": {"name": "request", "value": "a"}}
        assert (await wire.call("completion/complete", **asked))["completion"]["values"] == []
        for unknown in (
            {"type": "ref/prompt", "name": "nobody"},
            {"type": "ref/resource", "uri": "nothing://{here}"},
        ):
            with pytest.raises(MCPError) as caught:
                await wire.call("completion/complete", **{**asked, "ref": unknown})
            assert caught.value.error.code == -32602, unknown


async def has_fallback(wire: Wire) -> bool:
    """Whether a client sees it: in what is declared, in the listings, and in calls, which agree."""
    capabilities = wire.client.server_capabilities
    found: list[bool] = [capabilities.tools is not None, capabilities.prompts is not None]
    asks: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {}),
        ("prompts/list", {}),
        ("tools/call", {"name": "load_skill", "arguments": {"skill": "flat"}}),
        ("prompts/get", {"name": "flat"}),
    ]
    for method, params in asks:
        try:
            found.append("isError" not in await wire.call(method, **params))
        except MCPError as error:
            found.append(error.error.code not in (-32601, -32602))
    assert len(set(found)) == 1, found
    return found[0]


@every_setting
@rule("X1", "K3")
async def test_it_is_hidden_from_clients_that_declare_the_extension(mode: str, root: Path) -> None:
    """Unless the author of the server wants otherwise."""
    cases: list[tuple[Fallback, dict[str, Any], bool]] = [
        ("auto", {}, True),
        ("auto", KNOWS_SKILLS, False),
        ("auto", {"extensions": [advertise("com.example/other")]}, True),
        ("always", KNOWS_SKILLS, True),
        ("never", {}, False),
    ]
    for fallback, options, there in cases:
        server = build_server(Skills(root, dialects=Dialects(fallback=fallback)))
        async with Client(server, mode=mode, **options) as client:
            wire = Wire(client, "legacy" if mode == "legacy" else "modern")
            assert await has_fallback(wire) is there, (fallback, options)
            assert (await wire.call("skills/list"))["skills"]


@pytest.mark.slow
@rule("X1")
@pytest.mark.parametrize(("fallback", "there"), [("always", True), ("never", False)])
async def test_an_operator_chooses_who_sees_it(root: Path, fallback: str, there: bool) -> None:
    command, *words = [*skillwire_command(), "serve", str(root), "--fallback", fallback]
    async with Client(stdio_client(StdioServerParameters(command=command, args=words))) as client:
        assert await has_fallback(Wire(client, "modern")) is there


class Heard:
    """Which lists a client was told of, to be waited for with a bound."""

    def __init__(self) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[str](1000)
        self.kinds: list[str] = []

    async def on_message(self, message: Any) -> None:
        await self._send.send(getattr(message, "method", "").removeprefix("notifications/"))

    async def listen(self, events: Any) -> None:
        async for event in events:
            await self._send.send(type(event).__name__)

    async def wait_for(self, *kinds: str) -> None:
        with anyio.fail_after(20):
            while not set(kinds) <= set(self.kinds):
                self.kinds.append(await self._receive.receive())

    def close(self) -> None:
        self._send.close()
        self._receive.close()


@every_setting
@rule("X2", "S1")
@pytest.mark.parametrize("knows", [False, True], ids=["plain-client", "knows-skills"])
async def test_a_client_that_sees_prompts_hears_that_they_changed(mode: str, root: Path, knows: bool) -> None:
    """And no other client does."""
    heard, legacy = Heard(), mode == "legacy"
    prompts, resources = (
        ("prompts/list_changed", "resources/list_changed")
        if legacy
        else ("PromptsListChanged", "ResourcesListChanged")
    )
    options = {**(KNOWS_SKILLS if knows else {}), **({"message_handler": heard.on_message} if legacy else {})}
    server = build_server(Skills(root))
    async with (
        AsyncExitStack() as stack,
        Client(server, mode=mode, **options) as client,
        anyio.create_task_group() as group,
    ):
        await Wire(client, "modern").call("skills/list")
        if not legacy:
            listening = client.listen(resources_list_changed=True, prompts_list_changed=True)
            group.start_soon(heard.listen, await stack.enter_async_context(listening))
        for name in ("fresh", "fresher"):  # what was to be told of the first is told before the second
            heard.kinds.clear()
            write_tree(root, {f"{name}/SKILL.md": skill_md(name)})
            await heard.wait_for(resources, *([] if knows else [prompts]))
            assert knows is (prompts not in heard.kinds)
        group.cancel_scope.cancel()
    heard.close()


@rule("X1", "S1", "R2")
async def test_what_was_changed_is_found_and_loaded_as_it_is_now(connect: Connect, root: Path) -> None:
    """An index that was made before the change does not stand in the way."""
    async with connect() as wire:
        assert (await call(wire, "search_skills", query="zebra"))["structuredContent"]["skills"] == []
        write_tree(root, {"zoo/SKILL.md": skill_md("zoo", "Feeds a zebra.")})
        with anyio.fail_after(20):
            while not (await call(wire, "search_skills", query="zebra"))["structuredContent"]["skills"]:
                await anyio.lowlevel.checkpoint()
        assert "zebra" in json.dumps(await call(wire, "load_skill", skill="zoo"))
