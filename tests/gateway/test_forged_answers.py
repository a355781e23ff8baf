"""Clients that invent the answer of their user, in the stateless era (Z5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation

from gateway.stage import gateway_of, hostile
from gateway.test_elicitation import ADMIT, FLAT, NOTES, Person, wire_of
from host.stage import rotate
from interaction.conftest import Wire
from rules import rule
from skillwire import Skills
from skillwire.gateway.approval_queue import content_name
from skillwire.gateway.elicitation import APPROVE_FIELD
from skillwire.server.skills import build_server
from skillwire.skill.approval import fingerprint_of

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.gateway.gateway import Gateway

pytestmark = pytest.mark.anyio
YES = {APPROVE_FIELD: {"action": "accept", "content": {"approve": True}}}


async def question(wire: Wire) -> dict[str, Any]:
    """The response to a read of a file of a waiting skill."""
    return await wire.call("resources/read", uri=NOTES)


async def content_of(gateway: Gateway) -> str:
    [entry] = await gateway.upstreams["acme"].gate.waiting()
    assert content_name(entry) == fingerprint_of(entry)
    return fingerprint_of(entry)


@rule("Z5")
@pytest.mark.parametrize("state_of", ["content", "nothing", "changed"])
async def test_an_answer_to_a_question_that_was_not_asked_approves_nothing(state: Path, state_of: str) -> None:
    """The gateway asks instead."""
    async with (
        gateway_of(state, {"acme": hostile()}, ADMIT) as gateway,
        wire_of(gateway, "auto", Person()) as wire,
    ):
        asked = (await question(wire))["requestState"]
        states = {"content": await content_of(gateway), "nothing": "", "changed": asked[:-1] + "x"}
        answer = await wire.call("resources/read", uri=NOTES, requestState=states[state_of], inputResponses=YES)
        assert answer["resultType"] == "input_required"
        assert await gateway.store.approvals() == []


@rule("Z5")
async def test_an_answer_about_other_content_approves_nothing(state: Path) -> None:
    """The skill changed between the question and the answer."""
    server = hostile()
    async with gateway_of(state, {"acme": server}, ADMIT) as gateway, wire_of(gateway, "auto", Person()) as wire:
        asked = (await question(wire))["requestState"]
        rotate(server, "skill://flat/notes.md", b"other\n")
        await gateway.upstreams["acme"].remote.refresh()  # type: ignore[union-attr]
        answer = await wire.call("resources/read", uri=FLAT, requestState=asked, inputResponses=YES)
        assert answer["resultType"] == "input_required"
        assert await gateway.store.approvals() == []


@rule("Z5")
async def test_an_answer_to_the_question_that_was_asked_counts_for_clients_only(state: Path) -> None:
    """The operator's own host finds no approval under the label."""
    async with (
        gateway_of(state, {"acme": hostile()}, ADMIT) as gateway,
        wire_of(gateway, "auto", Person()) as wire,
    ):
        asked = (await question(wire))["requestState"]
        answer = await wire.call("resources/read", uri=NOTES, requestState=asked, inputResponses=YES)
        assert answer["contents"][0]["text"] == "notes\n"
        [approval] = await gateway.store.approvals()
        assert approval.origin == "acme#stdio"
        assert await gateway.store.approval("acme", approval.uri) is None
    async with (
        gateway_of(state, {"acme": hostile()}, ADMIT, is_public=True) as other,
        wire_of(other, "auto", None) as wire,
    ):
        with pytest.raises(MCPError):
            await question(wire)


@rule("Z5")
async def test_an_answer_to_a_question_that_another_was_asked_approves_nothing(state: Path) -> None:
    async with gateway_of(state, {"acme": hostile()}, ADMIT) as gateway:
        server = build_server(Skills(gateway.catalog, watch=False))
        gateway.ask_clients(server)
        asked = ""
        for name in ("one", "other"):
            who = Implementation(name=name, version="1")
            async with Client(server, mode="auto", elicitation_callback=Person(), client_info=who) as client:
                wire = Wire(client, "modern")
                answer = await wire.call("resources/read", uri=NOTES, requestState=asked, inputResponses=YES)
                assert answer["resultType"] == "input_required"
                asked = answer["requestState"]
        assert await gateway.store.approvals() == []


@rule("Z5")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_over_http_a_client_that_is_no_approver_is_not_asked(state: Path, mode: str) -> None:
    person = Person()
    async with (
        gateway_of(state, {"acme": hostile()}, ADMIT, is_public=True) as gateway,
        wire_of(gateway, mode, person) as wire,
    ):
        with pytest.raises(MCPError):
            await question(wire)
        assert person.asked == []
        assert await gateway.store.approvals() == []
