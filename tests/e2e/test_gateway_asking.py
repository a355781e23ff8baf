"""A gateway asks the person at its client, over stdio and HTTP, in both eras; or it says what to do."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitResult

from e2e.talking import gateway
from interaction.conftest import Wire
from rules import rule
from starting import skillwire_command
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio
FLAT = "skill://acme/flat/SKILL.md"
COMMAND = "skillwire approve acme:skill://flat/SKILL.md --config servers.json --state state"
Transport = Literal["stdio", "http"]


class Person:
    """Says yes to every form, and remembers what they said."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        return ElicitResult(action="accept", content={"approve": True})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tree(tmp_path / "tree", small_tree())
    command, *words = [*skillwire_command(), "serve", "tree"]
    entry = {"command": command, "args": words, "cwd": str(tmp_path)}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"acme": entry}}))
    (tmp_path / "gateway.toml").write_text('mode = "admit"\nservers = "servers.json"\n')
    return tmp_path


@asynccontextmanager
async def connected(
    folder: Path, transport: Transport, mode: str, person: Person | None, address: str = "0"
) -> AsyncIterator[Wire]:
    policy, state = folder / "gateway.toml", folder / "state"
    if transport == "stdio":
        command, *words = [*skillwire_command(), "gateway", "--policy", str(policy), "--state", str(state)]
        target: Any = stdio_client(StdioServerParameters(command=command, args=words))
        async with Client(target, mode=mode, elicitation_callback=person) as client:
            yield Wire(client, "legacy" if mode == "legacy" else "modern")
        return
    with gateway(folder, "--policy", str(policy), "--http", address) as process:
        url = process.wait_for_talk(r"listening at (\S+) ")[1]
        async with Client(url, mode=mode, elicitation_callback=person) as client:
            yield Wire(client, "legacy" if mode == "legacy" else "modern")


@rule("A1")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_read_is_asked_about_and_answered(folder: Path, transport: Transport, mode: str) -> None:
    """Once; the yes is kept and counts for whatever is asked next."""
    person = Person()
    async with connected(folder, transport, mode, person) as wire:
        read = await wire.client.read_resource(FLAT)
        assert read.contents[0].text.encode() == small_tree()["flat/SKILL.md"]
        assert (await wire.call("skills/get", uri=FLAT))["skill"]["uri"] == FLAT
    [message] = person.asked
    assert "flat" in message
    assert "acme" in message


@rule("A1", "G1")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_entry_is_asked_about_where_a_question_can_be_put(folder: Path, mode: str) -> None:
    """The stateless era has no way to answer ``skills/get`` with a question, and names the command."""
    person = Person()
    async with connected(folder, "http", mode, person) as wire:
        if mode == "legacy":
            assert (await wire.call("skills/get", uri=FLAT))["skill"]["uri"] == FLAT
            assert len(person.asked) == 1
            return
        with pytest.raises(MCPError) as caught:
            await wire.call("skills/get", uri=FLAT)
    assert caught.value.code == -32602
    assert COMMAND in caught.value.data["hint"]
    assert person.asked == []


@rule("A1")
@pytest.mark.parametrize(("transport", "mode"), [("stdio", "legacy"), ("http", "auto")])
async def test_a_client_without_forms_is_told_the_command_and_no_path(
    folder: Path, transport: Transport, mode: str
) -> None:
    """In what a program reads, and in what a model reads."""
    async with connected(folder, transport, mode, None) as wire:
        with pytest.raises(MCPError) as caught:
            await wire.client.read_resource(FLAT)
        said = await wire.client.call_tool("load_skill", {"skill": "flat"})
    assert caught.value.code == -32602
    assert caught.value.data == {"uri": FLAT}
    assert said.is_error
    for text in (caught.value.message, said.content[0].text):
        assert COMMAND in text
        assert str(folder) not in text


@rule("A1")
@pytest.mark.parametrize(
    "address", ["localhost:0", "127.0.0.2:0", "[::1]:0"], ids=["name", "another-address", "version-6"]
)
async def test_loopback_by_any_name_is_not_open_to_anybody(folder: Path, address: str) -> None:
    """So a person can be asked there."""
    person = Person()
    async with connected(folder, "http", "auto", person, address) as wire:
        await wire.client.read_resource(FLAT)
    assert len(person.asked) == 1
