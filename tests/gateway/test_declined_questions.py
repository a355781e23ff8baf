"""A no that somebody gives in a form of their client: whose it is, and for how long."""

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
from skillwire.gateway.elicitation import attach_elicitation
from skillwire.server.notifications import everything
from skillwire.server.run import build_server
from skillwire.server.skills import Skills

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@rule("A1")
async def test_a_no_is_of_the_session_in_which_it_was_said(state: Path) -> None:
    """Many clients give themselves one name, and each has a person of its own."""
    decline = ElicitResult(action="decline")
    first, second = Person(decline, decline), Person()
    async with gateway_of(state, {"acme": hostile()}, ADMIT) as gateway:
        server = build_server(Skills(gateway.catalog, watch=False))
        attach_elicitation(server, gateway, lambda: everything)
        async with (
            Client(server, mode="legacy", elicitation_callback=first) as one,
            Client(server, mode="legacy", elicitation_callback=second) as other,
        ):
            with pytest.raises(MCPError):
                await one.read_resource(NOTES)
            assert (await other.read_resource(NOTES)).contents[0].text == "notes\n"
            assert (len(first.asked), len(second.asked)) == (1, 1)


@rule("A1")
async def test_a_no_without_a_session_is_not_remembered_for_long(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the stateless era nobody can tell one client from another that has its name."""
    first, second = Person(ElicitResult(action="decline")), Person()
    async with gateway_of(state, {"acme": hostile()}, ADMIT) as gateway:
        server = build_server(Skills(gateway.catalog, watch=False))
        attach_elicitation(server, gateway, lambda: everything)
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
async def test_what_one_client_declined_another_without_forms_asks_the_desk_about(state: Path) -> None:
    """A no in a form ends nobody else's question."""
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
