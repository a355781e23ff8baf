"""Declines in forms of clients: for whom they count, and for how long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp import Client, MCPError
from mcp_types import ElicitResult

from gateway.stage import SECONDS, gateway_of, hostile
from gateway.test_elicitation import ADMIT, NOTES, Person, wire_of
from rules import rule
from skillwire.server.skills import Skills, build_server

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@rule("A1")
async def test_a_decline_counts_for_its_session(state: Path) -> None:
    """Many clients report the same name, and each has its own user."""
    decline = ElicitResult(action="decline")
    first, second = Person(decline, decline), Person()
    async with gateway_of(state, {"acme": hostile()}, ADMIT) as gateway:
        server = build_server(Skills(gateway.catalog, watch=False))
        gateway.ask_clients(server)
        async with (
            Client(server, mode="legacy", elicitation_callback=first) as one,
            Client(server, mode="legacy", elicitation_callback=second) as other,
        ):
            with pytest.raises(MCPError):
                await one.read_resource(NOTES)
            assert (await other.read_resource(NOTES)).contents[0].text == "notes\n"
            assert (len(first.asked), len(second.asked)) == (1, 1)


@rule("A1")
async def test_a_decline_without_a_session_counts_for_a_minute(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the stateless era two clients with the same name cannot be told apart."""
    first, second = Person(ElicitResult(action="decline")), Person()
    async with gateway_of(state, {"acme": hostile()}, ADMIT) as gateway:
        server = build_server(Skills(gateway.catalog, watch=False))
        gateway.ask_clients(server)
        async with Client(server, elicitation_callback=first) as one:
            with pytest.raises(MCPError):
                await one.read_resource(NOTES)
        async with Client(server, elicitation_callback=second) as other:
            with pytest.raises(MCPError) as caught:
                await other.read_resource(NOTES)
            assert "[approval-missing " in caught.value.message
            now = time.monotonic()
            monkeypatch.setattr("skillwire.gateway.elicitation.time.monotonic", lambda: now + 61)
            assert (await other.read_resource(NOTES)).contents[0].text == "notes\n"


@rule("A1")
async def test_a_skill_that_one_client_declined_becomes_a_question_for_another(state: Path) -> None:
    """A decline in a form does not affect other clients."""
    person = Person(ElicitResult(action="decline"))
    async with gateway_of(state, {"acme": hostile()}, ADMIT) as gateway:
        for each in (person, None):
            async with wire_of(gateway, "auto", each) as wire:
                with pytest.raises(MCPError) as caught:
                    await wire.client.read_resource(NOTES)
                assert "[approval-missing " in caught.value.message
        with anyio.fail_after(SECONDS):
            while not await gateway.store.questions(time.time()):
                await anyio.lowlevel.checkpoint()
