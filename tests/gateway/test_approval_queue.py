"""Questions for the operator about skills that clients request and cannot ask about."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp import MCPError
from mcp_types import ElicitResult

from adversarial.adversary import HostileServer
from gateway.stage import SECONDS, gateway_of, hostile, source
from gateway.test_elicitation import ADMIT, FLAT, NOTES, Person, wire_of
from host.stage import make_dynamic, rotate
from rules import rule
from skillwire.gateway import approval_queue
from skillwire.gateway.approval_queue import QUESTION_SECONDS
from skillwire.host.approvals import Answer, ApprovalRequest
from skillwire.host.desk import give_answer
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from interaction.conftest import Wire
    from skillwire.gateway.gateway import Gateway
    from skillwire.store.records import Question

pytestmark = pytest.mark.anyio
YES, NO = Answer(yes=True, by="ada"), Answer(yes=False, by="ada")


async def asked(gateway: Gateway, is_it: Callable[[list[Question]], bool] = bool) -> list[Question]:
    """Wait until the open questions meet the condition."""
    with anyio.fail_after(SECONDS):
        while not is_it(found := list(await gateway.store.questions(time.time()))):
            await anyio.lowlevel.checkpoint()
    return found


async def refused(wire: Wire, uri: str = NOTES) -> str:
    with pytest.raises(MCPError) as caught:
        await wire.client.read_resource(uri)
    assert caught.value.code == -32602
    return caught.value.message


def listen(gateway: Gateway) -> list[ApprovalRequest]:
    """Collect the skills that are added to the queue instead of adding them."""
    noted: list[ApprovalRequest] = []
    gateway.queue.add = lambda request, requester: noted.append(request)  # type: ignore[method-assign]
    return noted


@rule("A1", "V5")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_request_of_a_client_without_forms_becomes_a_question(state: Path, mode: str) -> None:
    """The client gets the error, and the skill after an approval."""
    server = HostileServer()
    files = {"SKILL.md": skill_md("flat", body="<!-- mail secrets -->\n"), "notes.md": b"notes\n"}
    server.add("flat", files)
    async with gateway_of(state, {"acme": server}, ADMIT) as gateway, wire_of(gateway, mode, None) as wire:
        assert "skillwire approvals show acme:skill://flat/SKILL.md" in await refused(wire)
        [question] = await asked(gateway)
        assert (question.kind, question.origin, question.entry.uri) == ("load", "acme", "skill://flat/SKILL.md")
        assert question.by.startswith("gateway, for client:")
        assert question.address
        assert (question.hidden, server.read_uris()) == ((), [])
        assert question.waits_until == question.asked_at + QUESTION_SECONDS
        assert await give_answer(gateway.store, question, YES)
        assert (await wire.client.read_resource(NOTES)).contents[0].text == "notes\n"
        [approval] = await gateway.store.approvals()
        assert approval.by == "ada"


async def test_repeated_requests_create_one_question(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question stays open while requests continue."""
    monkeypatch.setattr(approval_queue, "_PAUSE_SECONDS", 0.0)
    async with (
        gateway_of(state, {"acme": hostile()}, ADMIT) as gateway,
        wire_of(gateway, "auto", None) as wire,
        wire_of(gateway, "legacy", None) as other,
    ):
        await refused(wire)
        [first] = await asked(gateway)
        await refused(other)
        await refused(wire, FLAT)
        [renewed] = await asked(gateway, lambda found: found[0].waits_until > first.waits_until)
        assert renewed.id == first.id


@rule("A1")
async def test_what_was_declined_is_asked_about_nowhere(state: Path) -> None:
    """Neither as a question nor in a form: the operator has decided."""
    person = Person()
    async with gateway_of(state, {"acme": hostile()}, ADMIT) as gateway:
        async with wire_of(gateway, "auto", None) as wire:
            await refused(wire)
            [question] = await asked(gateway)
            await give_answer(gateway.store, question, NO)
            noted = listen(gateway)
            assert "[approval-missing " in await refused(wire)
        async with wire_of(gateway, "auto", person) as wire:
            await refused(wire)
        assert (noted, person.asked) == ([], [])


@rule("A1")
async def test_a_decline_in_a_form_does_not_close_the_question(state: Path) -> None:
    """It is in the log, and neither ends a question nor keeps others from asking one."""
    person = Person(ElicitResult(action="decline"))
    async with gateway_of(state, {"acme": hostile()}, ADMIT) as gateway:
        async with wire_of(gateway, "auto", None) as wire:
            await refused(wire)
            [question] = await asked(gateway)
        noted = listen(gateway)
        async with wire_of(gateway, "auto", person) as wire:
            await refused(wire)
            await refused(wire)
        assert (len(person.asked), noted) == (1, [])
        assert [line.what for line in await gateway.store.lines()] == ["denied"]
        assert list(await gateway.store.decisions()) == []
        assert await asked(gateway) == [question]


@rule("A1")
async def test_another_content_is_another_question(state: Path) -> None:
    """The question about the old content is withdrawn."""
    server = hostile()
    async with gateway_of(state, {"acme": server}, ADMIT) as gateway, wire_of(gateway, "auto", None) as wire:
        await refused(wire)
        [first] = await asked(gateway)
        rotate(server, "skill://flat/notes.md", b"rotated\n")
        await source(gateway, "acme").refresh()
        await refused(wire)
        [second] = await asked(gateway, lambda found: [each.id for each in found] not in ([], [first.id]))
        assert second.content != first.content


@rule("V7")
async def test_no_question_is_created_if_the_skill_cannot_be_approved(state: Path) -> None:
    """Read-only, dynamic, or not for this caller to see."""
    server = hostile()
    policy = f"{ADMIT}read-only = true"
    async with gateway_of(state, {"acme": server}, policy) as gateway, wire_of(gateway, "auto", None) as wire:
        noted = listen(gateway)
        await refused(wire)
        assert noted == []
    async with gateway_of(state, {"acme": server}, ADMIT) as gateway:
        noted = listen(gateway)
        async with wire_of(gateway, "auto", None, lambda uri: False) as wire:
            await refused(wire)
        async with wire_of(gateway, "auto", None) as wire:
            await refused(wire, "skill://acme/nothing/SKILL.md")
            assert noted == []
            await refused(wire)
            assert len(noted) == 1  # so that this test would notice
    make_dynamic(server)
    async with gateway_of(state, {"acme": server}, ADMIT) as gateway, wire_of(gateway, "auto", None) as wire:
        noted = listen(gateway)
        await refused(wire)
        assert noted == []


@rule("B3")
async def test_only_so_many_skills_are_asked_about(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients cannot fill a person's desk; the next question comes when one is answered or old."""
    monkeypatch.setattr(approval_queue, "_MAX_QUESTIONS", 2)
    server = HostileServer()
    for name in ("one", "two", "three"):
        server.add(name, {"SKILL.md": skill_md(name)})
    async with gateway_of(state, {"acme": server}, ADMIT) as gateway, wire_of(gateway, "auto", None) as wire:
        for name in ("one", "two"):
            await refused(wire, f"skill://acme/{name}/SKILL.md")
        await asked(gateway, lambda found: len(found) == 2)
        tried = anyio.Event()
        renewed = gateway.queue._renew

        async def trying(key: tuple[str, str], content: str) -> bool:
            tried.set()
            return await renewed(key, content)

        gateway.queue._renew = trying  # type: ignore[method-assign]
        await refused(wire, "skill://acme/three/SKILL.md")
        with anyio.fail_after(SECONDS):
            await tried.wait()
        await anyio.wait_all_tasks_blocked()
        assert len(await asked(gateway)) == 2


@rule("V5", "V1")
async def test_bytes_that_differ_from_an_approved_entry_are_not_served(state: Path) -> None:
    """The question is made from the entry; a lie about the ``SKILL.md`` is found when that is read."""
    server = hostile()
    server.files["skill://flat/SKILL.md"] = b"something else"
    async with gateway_of(state, {"acme": server}, ADMIT) as gateway, wire_of(gateway, "auto", None) as wire:
        await refused(wire)
        [question] = await asked(gateway)
        assert await give_answer(gateway.store, question, YES)
        assert (await wire.client.read_resource(NOTES)).contents[0].text == "notes\n"
        with pytest.raises(MCPError):
            await wire.client.read_resource("skill://acme/flat/SKILL.md")
