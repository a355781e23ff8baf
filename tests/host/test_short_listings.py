"""Skills of which a listing says less than their server promises: got when wanted, then decided on (G1, V7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.expecting import refused
from host.short import FILES, INDEX, NOTE, PROMISING, PROMISING_NOTHING, URI, speak_archive, speak_manifest
from host.stage import ALLOW, SECONDS, Person, StagedHost, hosting, reference
from rules import rule
from skillwire.errors import UpstreamError, VerificationError
from skillwire.host.approvals import Policy, Rule

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adversarial.adversary import HostileServer

    Speak = Callable[..., None]

pytestmark = pytest.mark.anyio

ASK_DYNAMIC = Policy([Rule("ask", kind="dynamic")])
promising = pytest.mark.parametrize("speak", PROMISING.values(), ids=PROMISING.keys())
promising_nothing = pytest.mark.parametrize("speak", PROMISING_NOTHING.values(), ids=PROMISING_NOTHING.keys())


async def standing(host: StagedHost) -> str:
    [status] = await host.skills()
    return status.standing


@rule("G1", "V1", "V7", "A1")
@promising
async def test_a_skill_that_is_promised_once_it_is_got_is_asked_about_and_remembered(
    speak: Speak, server: HostileServer, state: Path, person: Person
) -> None:
    """As if its listing had said everything; a new listing that says little changes nothing."""
    speak(server)
    async with hosting(state, {"one": server}, ask=person) as host:
        assert await standing(host) == "unapproved"
        loaded = await host.load("flat")
        assert "Do it." in loaded.text
        assert "\nnote: " not in loaded.text
        assert (person.kinds, await standing(host)) == (["load"], "approved")
        assert person.asked[0].entry.description == "Does one thing well."
        await host.relist("one")
        assert not (await host.read("flat", "SKILL.md")).is_error
        assert not (await host.load("flat")).is_error
    async with hosting(state, {"one": server}) as host:  # and nobody to ask
        assert await standing(host) == "approved"
        assert not (await host.load("flat")).is_error
    assert person.kinds == ["load"]


@rule("V5")
@promising
async def test_nothing_of_it_is_read_before_somebody_wants_it(
    speak: Speak, server: HostileServer, state: Path
) -> None:
    """The index is the listing; no manifest, no archive and no file is read for it."""
    speak(server)
    async with hosting(state, {"one": server}, policy=ALLOW) as host:
        host.catalog_prompt()
        await host.skills()
        assert set(server.read_uris()) <= {INDEX}
        await host.load("flat")
        assert set(server.read_uris()) > {INDEX}
        assert NOTE not in server.read_uris()


@rule("V1", "V2", "W3")
async def test_only_files_that_have_a_digest_are_read(server: HostileServer, state: Path, person: Person) -> None:
    """What an index does not speak of is no part of the skill, though the server has it."""
    for name, speak in PROMISING.items():
        speak(server)
        async with hosting(state / name, {"one": server}, ask=person) as host:
            await host.load("flat")
            read, listed = await host.read("flat", "notes.md"), await host.ls("flat")
            if name == "digest":
                assert reference(read) == ("file-unlisted", "V2")
            else:
                assert "notes" in read.text
            assert ("notes.md" in listed.text) == (name != "digest")
            assert reference(await host.read("flat", "_manifest")) == ("file-unlisted", "V2")


@rule("V7", "A1")
@promising_nothing
async def test_what_promises_nothing_when_it_is_got_is_declined_and_loaded_by_choice(
    speak: Speak, server: HostileServer, state: Path, person: Person
) -> None:
    """Asked about each time, never remembered, and the model is told."""
    speak(server)
    async with hosting(state / "declined", {"one": server}, ask=person) as host:
        assert reference(await host.load("flat")) == ("not-approved", "V7")
        with refused(VerificationError, "approval-unbound", "V7"):
            await host.approve("flat")
        assert person.asked == []
    async with hosting(state / "asked", {"one": server}, ask=person, policy=ASK_DYNAMIC) as host:
        for _ in range(2):
            loaded = await host.load("flat")
            assert "\nnote: " in loaded.text
        await host.relist("one")
        assert "notes" in (await host.read("flat", "notes.md")).text
        assert (person.kinds, list(await host.store.approvals())) == (["dynamic", "dynamic"], [])


@rule("A1", "C1")
@promising
async def test_an_approval_outside_a_conversation_is_bound_to_what_was_got(
    speak: Speak, server: HostileServer, state: Path
) -> None:
    """By one host, for the next; then without the server."""
    speak(server)
    async with hosting(state, {"one": server}) as host:
        assert (await host.review("flat")).gaps in ((), ("frontmatter",), ("size",))
        await host.approve("flat")
        [approval] = await host.store.approvals()
        assert URI in dict(approval.contents)
    async with hosting(state, {"one": server}) as host:
        assert not (await host.load("flat")).is_error
    async with StagedHost.open(servers={"one": ["/no/such/command"]}, state=state) as host:
        await host.settle(SECONDS)
        assert await standing(host) == "approved"
        assert "\nnote: " in (await host.load("flat")).text


@rule("A2", "L2")
async def test_an_approval_that_another_program_gave_is_not_taken_for_outdated(
    server: HostileServer, state: Path
) -> None:
    """A listing that says too little to tell takes nothing back."""
    speak_archive(server)
    async with hosting(state, {"one": server}) as host:
        async with StagedHost.open(servers={"one": f"http://127.0.0.1:{server.port}/mcp"}, state=state) as other:
            await other.settle(SECONDS)
            await other.approve("flat")
        await host.relist("one")
        assert await standing(host) == "approved"
        assert not (await host.load("flat")).is_error


@rule("V7", "A1")
async def test_what_was_never_got_waits_for_its_server(server: HostileServer, state: Path) -> None:
    """Too little is known to decide, and nothing is taken back for that."""
    speak_manifest(server)
    async with hosting(state, {"one": server}):
        pass
    async with StagedHost.open(servers={"one": ["/no/such/command"]}, state=state) as host:
        await host.settle(SECONDS)
        assert reference(await host.load("flat")) == ("origin-away", "V7")
        with refused(UpstreamError, "origin-away", "V7"):
            await host.approve("flat")


@rule("O3", "V1", "V7")
async def test_a_file_of_such_a_skill_is_read_across_origins_only_if_it_can_be_verified(
    server: HostileServer, state: Path, person: Person
) -> None:
    """After both decisions."""
    policy = Policy([Rule("allow"), Rule("allow", kind="cross-origin")])
    for name, speak in {**PROMISING, **PROMISING_NOTHING}.items():
        other = type(server)()
        speak(other)
        async with hosting(state / name, {"one": server, "two": other}, ask=person, policy=policy) as host:
            await host.load("one:flat")
            read = await host.read("one:flat", URI, origin="two")
            if name in PROMISING:
                assert "Do it." in read.text
            else:
                assert reference(read) == ("not-approved", "V7")


@rule("G1")
async def test_a_skill_that_is_gone_when_it_is_wanted_is_refused(server: HostileServer, state: Path) -> None:
    """With its origin in the log."""
    speak_manifest(server, {"SKILL.md": FILES["SKILL.md"]})
    async with hosting(state, {"one": server}, policy=ALLOW) as host:
        server.files.clear()
        assert (await host.load("flat")).is_error
        [line] = await host.lines()
        assert (line.what, line.origin, line.uri) == ("refused", "one", URI)
