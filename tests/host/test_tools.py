"""The three tools, in the shape of every API that a model is called through (O2, N1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import pytest
from jsonschema import Draft202012Validator, ValidationError, validate

from host.stage import Person, StagedHost, hosting, reference
from rules import rule
from skillwire.errors import FormatError
from skillwire.host.context import LIST, LOAD, READ, ToolShape, tool_definitions
from skillwire.lowlevel import READ_RESOURCE_TOOL, READ_SKILL_TOOL
from skillwire.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.adversary import HostileServer
    from skillwire.host.results import ToolResult

SHAPES: tuple[ToolShape, ...] = get_args(ToolShape)
NAMES = ["load_skill", "read_skill_file", "list_skill_directory"]
CALLS = {
    LOAD: {"name": "flat", "arguments": {"city": "Bern"}},
    READ: {"name": "flat", "path": "notes.md"},
    LIST: {"name": "flat", "path": "docs"},
}


def tool_schema(name: str) -> tuple[str, dict[str, Any]]:
    """Description and schema of one tool."""
    [tool] = [tool for tool in tool_definitions("mcp") if tool["name"] == name]
    return tool["description"], tool["inputSchema"]


def parts_of(shape: ToolShape, tool: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Name, description and schema, each where that API looks for them."""
    match shape:
        case "anthropic":
            return tool["name"], tool["description"], tool["input_schema"]
        case "openai":
            assert tool["type"] == "function"
            assert tool.keys() == {"type", "function"}
            function = tool["function"]
            return function["name"], function["description"], function["parameters"]
        case "openai-responses":
            assert tool["type"] == "function"
            return tool["name"], tool["description"], tool["parameters"]
        case "mcp":
            return tool["name"], tool["description"], tool["inputSchema"]


FIELDS = {
    "anthropic": {"name", "description", "input_schema"},
    "openai": {"type", "function"},
    "openai-responses": {"type", "name", "description", "parameters", "strict"},
    "mcp": {"name", "description", "inputSchema", "annotations"},
}


@rule("X1")
@pytest.mark.parametrize("shape", SHAPES)
def test_each_api_gets_the_fields_that_it_knows_and_no_others(shape: ToolShape) -> None:
    """APIs reject what they do not know."""
    for tool in tool_definitions(shape):
        assert tool.keys() == FIELDS[shape]


@rule("X1")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_tools_have_the_same_names_and_meaning_everywhere(shape: ToolShape) -> None:
    """Names are stable; a prompt that mentions one works with every API."""
    found = [parts_of(shape, tool) for tool in tool_definitions(shape)]
    assert [name for name, _, _ in found] == NAMES
    for name, description, schema in found:
        assert (description, schema) == tool_schema(name)


@rule("X1")
@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_a_valid_one_and_says_what_each_argument_is(name: str) -> None:
    """Every argument is a text, or an object of texts, with a description; nothing else is taken."""
    _, schema = tool_schema(name)
    Draft202012Validator.check_schema(schema)
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert set(schema["required"]) <= schema["properties"].keys()
    for argument in schema["properties"].values():
        is_text = argument["type"] == "string"
        assert is_text or argument["additionalProperties"] == {"type": "string"}
        assert argument["description"]


@rule("X1")
@pytest.mark.parametrize("name", NAMES)
def test_a_schema_takes_the_calls_that_are_meant_and_no_others(name: str) -> None:
    _, schema = tool_schema(name)
    validate(CALLS[name], schema)
    for wrong in ({}, {"name": 7}, {**CALLS[name], "command": "rm"}, {"path": "x"}):
        with pytest.raises(ValidationError):
            validate(wrong, schema)


@rule("A5")
def test_the_tools_are_marked_as_reading_only() -> None:
    """Nothing runs because of them, and a host may call them without asking for that."""
    for tool in tool_definitions("mcp"):
        assert tool["annotations"]["readOnlyHint"] is True


@rule("X1")
@pytest.mark.anyio
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_host_gives_out_what_it_answers_to(shape: ToolShape) -> None:
    """Each tool that is offered is one that ``call`` knows."""
    host = StagedHost(Store.memory())
    for tool in host.tools(shape):
        name, _, _ = parts_of(shape, tool)
        result = await host.call(name, CALLS[name])
        assert result.refusal is not None
        assert result.refusal.reference == "skill-unknown"


@rule("X1")
@pytest.mark.anyio
async def test_a_tool_that_is_not_ours_is_refused() -> None:
    """With the names of those there are."""
    result = await StagedHost(Store.memory()).call("Load_Skill", {"name": "flat"})
    assert result.refusal is not None
    assert result.refusal.reference == "tool-unknown"
    assert all(known in result.refusal.hint for known in NAMES)


@rule("X1")
@pytest.mark.anyio
@pytest.mark.parametrize("name", NAMES)
async def test_an_argument_that_is_no_text_is_refused(name: str) -> None:
    """Models send what they like."""
    result = await StagedHost(Store.memory()).call(name, {"name": ["flat"], "path": 7})
    assert result.refusal is not None
    assert result.refusal.reference == "argument-invalid"


@rule("X1", "B1")
@pytest.mark.anyio
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arguments", [{}, {"name": "x\ud800\x00" * 5000}], ids=["missing", "odd"])
async def test_missing_and_odd_arguments_are_refused(name: str, arguments: dict[str, Any]) -> None:
    """Nothing breaks, and what is logged of it is short."""
    host = StagedHost(Store.memory())
    result = await host.call(name, arguments)
    assert result.refusal is not None
    assert result.refusal.reference == "skill-unknown"
    assert len(result.refusal.message) < 300
    (line,) = await host.lines()
    assert (line.what, len(line.facts["what"]) <= 300) == ("refused", True)


@rule("W1", "W2", "A1", "O3")
@pytest.mark.anyio
async def test_the_published_reading_tools_work_through_a_host(
    server: HostileServer, state: Path, person: Person
) -> None:
    """A ``SKILL.md`` is loaded after approval; other files only of a skill that is loaded, and of that server."""
    uri, note = "skill://flat/SKILL.md", "skill://flat/notes.md"
    async with hosting(state, {"one": server}, ask=person) as host:

        async def read(uri: str, label: str = "one") -> ToolResult:
            arguments = {"server": label, "uri": uri}
            validate(arguments, READ_RESOURCE_TOOL["inputSchema"])
            return await host.call(READ_RESOURCE_TOOL["name"], arguments)

        assert reference(await read(note)) == ("skill-not-loaded", "W2")
        assert person.asked == []
        assert server.read_uris() == []
        assert "Do it." in (await read(uri)).text
        assert person.kinds == ["load"]
        assert "notes" in (await read(note)).text
        assert reference(await read("skill://flat/other.md")) == ("file-unlisted", "V2")
        assert reference(await read("skill://elsewhere/x.md")) == ("skill-not-loaded", "W2")
        assert reference(await read(uri, "two")) == ("origin-unknown", "O1")
        for odd in ("file:///etc/passwd", "", "flat", "skill://flat/../x"):
            assert (await read(odd)).is_error
        await host.gate("Bash")
        assert person.kinds == ["load", "execute"]
        host.leave()
        assert reference(await read(note)) == ("skill-not-loaded", "W2")
        arguments = {"name": "flat"}
        validate(arguments, READ_SKILL_TOOL["inputSchema"])
        assert "Do it." in (await host.call(READ_SKILL_TOOL["name"], arguments)).text
        assert "notes" in (await read(note)).text


def test_an_unknown_shape_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(FormatError) as caught:
        tool_definitions("gemini")  # pyright: ignore[reportArgumentType]
    assert all(shape in caught.value.hint for shape in SHAPES)
