"""A gateway asks the person at its client, over stdio and HTTP, in both eras; or it says what to do."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from e2e.talking import gateway
from interaction.conftest import Wire
from rules import rule
from skillwire.server.access import digest_token
from starting import skillwire_command
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = [
    pytest.mark.anyio,
    # The SDK's client leaves memory streams open when it closes while an event arrives.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
FLAT = "skill://acme/flat/SKILL.md"
COMMAND = "skillwire approvals show acme:skill://flat/SKILL.md --config servers.json --state state"
Transport = Literal["stdio", "http"]
TOKEN, OTHER_TOKEN = "a" * 40, "b" * 40


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
    (tmp_path / "gateway.toml").write_text('mode = "admit"\nservers = "servers.json"\napprovers = ["ada"]\n')
    lines = ['[[token]]\nsubject = "%s"\nsha256 = "%s"\nsee = ["*"]\n'] * 2
    tokens = ("ada", digest_token(TOKEN), "bob", digest_token(OTHER_TOKEN))
    (tmp_path / "access.toml").write_text("".join(lines) % tokens)
    return tmp_path


@asynccontextmanager
async def connected(
    folder: Path, transport: Transport, mode: str, person: Person | None, token: str | None = TOKEN
) -> AsyncIterator[Wire]:
    """Over HTTP the client has a token, without one the gateway is open to this machine."""
    policy, state = folder / "gateway.toml", folder / "state"
    if transport == "stdio":
        command, *words = [*skillwire_command(), "gateway", "--policy", str(policy), "--state", str(state)]
        target: Any = stdio_client(StdioServerParameters(command=command, args=words))
        async with Client(target, mode=mode, elicitation_callback=person) as client:
            yield Wire(client, "legacy" if mode == "legacy" else "modern")
        return
    options = [] if token is None else ["--access", str(folder / "access.toml")]
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with gateway(folder, "--policy", str(policy), "--http", "0", *options) as process:
        url = process.wait_for_talk(r"listening at (\S+) ")[1]
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as web,
            Client(streamable_http_client(url, http_client=web), mode=mode, elicitation_callback=person) as client,
        ):
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


@rule("Z5")
@pytest.mark.parametrize("token", [None, OTHER_TOKEN], ids=["no-token", "not-an-approver"])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_over_http_only_approvers_are_asked(folder: Path, mode: str, token: str | None) -> None:
    """Any client could make up the answer of its person."""
    person = Person()
    async with connected(folder, "http", mode, person, token) as wire:
        with pytest.raises(MCPError) as caught:
            await wire.client.read_resource(FLAT)
    assert COMMAND in caught.value.message
    assert person.asked == []
