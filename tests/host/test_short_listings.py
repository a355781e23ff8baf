"""Skills of which a listing says less than their server promises: got when wanted, then decided on (G1, V7)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio import to_thread

from adversarial.expecting import refused
from adversarial.named_servers import speak_native, speak_sep2076
from host.short import FILES, INDEX, NOTE, PROMISING, PROMISING_NOTHING, URI, speak_archive, speak_manifest
from host.stage import ALLOW, NO, SECONDS, Person, StagedHost, hosting, reference
from rules import rule
from skillwire.cli import approve as approve_verb
from skillwire.cli.main import run
from skillwire.errors import UpstreamError, VerificationError
from skillwire.host.approvals import Answer, Policy, Rule
from skillwire.host.desk import ask_at_desk, give_answer
from skillwire.skill.approval import EXECUTE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adversarial.adversary import HostileServer
    from skillwire.host.approvals import ApprovalRequest
    from skillwire.store.records import Question

    Speak = Callable[..., None]

pytestmark = pytest.mark.anyio

ASK_DYNAMIC = Policy([Rule("ask", kind="dynamic")])
promising = pytest.mark.parametrize("speak", PROMISING.values(), ids=PROMISING.keys())
promising_nothing = pytest.mark.parametrize("speak", PROMISING_NOTHING.values(), ids=PROMISING_NOTHING.keys())


async def status(host: StagedHost) -> str:
    [skill] = await host.skills()
    return skill.status


@rule("G1", "V1", "V7", "A1")
@promising
async def test_a_skill_that_is_promised_once_it_is_got_is_asked_about_and_remembered(
    speak: Speak, server: HostileServer, state: Path, person: Person
) -> None:
    """As if its listing had said everything; a new listing that says little changes nothing."""
    speak(server)
    async with hosting(state, {"one": server}, ask=person) as host:
        assert await status(host) == "unapproved"
        loaded = await host.load("flat")
        assert "Do it." in loaded.text
        assert "\nnote: " not in loaded.text
        assert (person.kinds, await status(host)) == (["load"], "approved")
        await host.relist("one")
        assert not (await host.read("flat", "SKILL.md")).is_error
        assert not (await host.load("flat")).is_error
    async with hosting(state, {"one": server}) as host:  # and nobody to ask
        assert await status(host) == "approved"
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


def fetched(server: HostileServer) -> list[str]:
    """What was asked for beside listings."""
    methods = ("skills/get", "skills/activate")
    gets = [ask.params["name"] for ask in server.asked if ask.method in methods and ask.params.get("name")]
    return [*gets, *(uri for uri in server.read_uris() if uri != INDEX)]


SHORT: dict[str, Speak] = {**PROMISING, **PROMISING_NOTHING, "sep-2076": speak_sep2076, "native": speak_native}


@rule("V5")
@pytest.mark.parametrize("looks", [True, False], ids=["looks", "does not look"])
@pytest.mark.parametrize("speak", SHORT.values(), ids=SHORT.keys())
async def test_nothing_is_fetched_before_the_answer_unless_the_person_looks(
    speak: Speak, looks: bool, server: HostileServer, state: Path
) -> None:
    """Also if it was asked about before, and what is shown is what is loaded."""
    speak(server)
    asked = list["ApprovalRequest"]()

    async def ask(request: ApprovalRequest) -> Answer:
        assert fetched(server) == []
        asked.append(await request.review() if looks else request)
        assert bool(fetched(server)) == looks or len(asked) > 1  # an archive is kept for a while
        return Answer(yes=len(asked) > 1, remember=len(asked) > 1)

    async with hosting(state, {"one": server}, ask=ask, policy=ASK_DYNAMIC) as host:
        name = host.names.skills[0].name
        for is_yes in (False, True):
            server.asked.clear()
            loaded = await host.load(name)
            assert loaded.is_error != is_yes, loaded.text
    assert [bool(request.text) for request in asked] == [looks] * 2


@rule("V5", "A1")
@pytest.mark.parametrize("speak", SHORT.values(), ids=SHORT.keys())
async def test_nothing_is_fetched_to_decline_or_enable(speak: Speak, server: HostileServer, state: Path) -> None:
    """The no is to what is listed, and holds when the files are known."""
    speak(server)
    async with hosting(state, {"one": server}, policy=ASK_DYNAMIC) as host:
        name = host.names.skills[0].name
        await host.decline(name)
        assert await host.enable(name)
        await host.decline(name)
        assert (fetched(server), reference(await host.load(name))) == ([], ("skill-declined", "A1"))
        await host.review(name)
        assert reference(await host.load(name)) == ("skill-declined", "A1")
        assert await host.enable(name)


@rule("A2", "V5")
async def test_a_no_to_files_that_are_not_known_ends_an_approval_that_another_program_has(
    server: HostileServer, state: Path
) -> None:
    """Which knows them."""
    speak_archive(server)
    async with (
        hosting(state, {"one": server}) as host,
        StagedHost.open(servers={"one": f"http://127.0.0.1:{server.port}/mcp"}, state=state) as other,
    ):
        await other.settle(SECONDS)
        await other.approve("flat")
        assert not (await other.load("flat")).is_error
        server.asked.clear()
        await host.decline("flat")
        assert (fetched(server), await status(host)) == ([], "declined")
        assert (await other.load("flat")).is_error


@rule("V5", "Z4")
@pytest.mark.slow
@pytest.mark.parametrize("speak", SHORT.values(), ids=SHORT.keys())
async def test_the_command_line_fetches_nothing_to_decline_and_to_refuse(
    speak: Speak,
    server: HostileServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without a terminal and a fingerprint. On a terminal, 'enable' shows the skill first."""
    speak(server)
    name = "refunds" if speak in (speak_sep2076, speak_native) else "flat"
    async with server.serving() as url:
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"mcpServers": {"one": {"url": url}}}))

        async def ends(verb: str, *words: str) -> int:
            options = ["--config", str(config), "--state", str(tmp_path / "state"), *words]
            action = [verb] if verb == "approve" else ["approvals", verb]
            return await to_thread.run_sync(run, [*action, name, *options])

        assert [await ends(verb) for verb in ("approve", "decline", "enable")] == [1, 0, 1]
        assert (fetched(server), capsys.readouterr().err.count("[fingerprint-missing]")) == ([], 2)

        async def confirm(*_: object) -> bool:
            return True

        monkeypatch.setattr(approve_verb, "can_ask", lambda: True)
        monkeypatch.setattr(approve_verb, "confirm", confirm)
        assert (await ends("enable"), bool(fetched(server))) == (0, True)


@rule("V5", "V7")
@pytest.mark.slow
@pytest.mark.parametrize("speak", [speak_native, speak_archive], ids=["native", "archive"])
async def test_the_command_line_fetches_once_to_approve(
    speak: Speak, server: HostileServer, tmp_path: Path
) -> None:
    """With a fingerprint, though another."""
    speak(server)
    async with server.serving() as url:
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"mcpServers": {"one": {"url": url}}}))
        name = "refunds" if speak is speak_native else "flat"
        words = ["--config", str(config), "--state", str(tmp_path / "state"), "--fingerprint", "sha256:0"]
        assert await to_thread.run_sync(run, ["approve", name, *words]) == 1
        assert len(fetched(server)) == 1


@rule("A1", "A4", "V5")
async def test_a_yes_to_a_skill_that_nobody_saw_grants_nothing_and_binds_what_is_loaded(
    server: HostileServer, state: Path
) -> None:
    speak_archive(server)
    granting = Answer(yes=True, grants=frozenset({EXECUTE}))
    async with hosting(state, {"one": server}, ask=Person(granting)) as host:
        await host.load("flat")
        [approval] = await host.store.approvals()
        assert ({URI, NOTE} <= dict(approval.contents).keys(), approval.grants) == (True, frozenset())
    async with hosting(state / "looked", {"one": server}, ask=Person(granting, looks=True)) as host:
        await host.load("flat")
        [approval] = await host.store.approvals()
        assert approval.grants == {EXECUTE}


@rule("A1", "A2", "V5")
async def test_a_skill_that_was_declined_before_its_files_were_known_stays_declined(
    server: HostileServer, state: Path
) -> None:
    """A look at it later is no change of it; one that changes then is asked about."""
    speak_archive(server)
    async with hosting(state, {"one": server}, ask=Person(NO)) as host:
        assert reference(await host.load("flat")) == ("not-approved", "A1")
        for _ in range(2):
            assert (await status(host), host.shown_skills()) == ("declined", [])
            assert reference(await host.load("flat")) == ("skill-declined", "A1")
            await host.review("flat")
        speak_archive(server, {**FILES, "notes.md": b"other\n"})
        await host.find("flat")
        assert await status(host) == "unapproved"


@rule("A1", "A2", "B6")
async def test_a_skill_that_changes_between_the_look_and_the_load_is_refused(
    server: HostileServer, state: Path
) -> None:
    """What was known when the person was asked is what they said yes to."""
    speak_manifest(server)

    async def ask(_: ApprovalRequest) -> Answer:
        speak_manifest(server, {**FILES, "notes.md": b"other\n"})
        return Answer(yes=True)

    async with hosting(state, {"one": server}, ask=ask) as host:
        await host.review("flat")
        assert reference(await host.load("flat")) == ("skill-changed", "A2")
        assert list(await host.store.approvals()) == []


@rule("V5", "A1")
@pytest.mark.parametrize("way", ["approved", "answered", "declined"])
async def test_a_question_from_elsewhere_about_files_that_are_not_known_is_answered(
    way: str, server: HostileServer, state: Path
) -> None:
    """By an approval or a no to what the person saw, or directly: who asked fetches it then."""
    speak_archive(server)

    async def decide(question: Question) -> None:
        if way == "answered":
            assert await give_answer(host.store, question, Answer(yes=True, by="ada"))
        elif way == "approved":
            await host.approve("flat", by="ada")
        else:
            await host.decline("flat", by="ada")

    async with anyio.create_task_group() as group:
        ask = ask_at_desk(state, by="agent", when_asked=lambda question: group.start_soon(decide, question))
        async with hosting(state, {"one": server}, ask=ask) as host:
            assert (await host.load("flat")).is_error == (way == "declined")
            assert [each.by for each in await host.store.approvals()] == ["ada"] * (way != "declined")


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
        assert (person.kinds, list(await host.store.approvals())) == (["load"], [])
    async with hosting(state / "asked", {"one": server}, ask=person, policy=ASK_DYNAMIC) as host:
        for _ in range(2):
            loaded = await host.load("flat")
            assert "\nnote: " in loaded.text
        await host.relist("one")
        assert "notes" in (await host.read("flat", "notes.md")).text
        assert (person.kinds, list(await host.store.approvals())) == (["load"] * 3, [])


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
        assert await status(host) == "approved"
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
        assert await status(host) == "approved"
        assert not (await host.load("flat")).is_error


@rule("V7", "A1")
async def test_what_was_never_got_waits_for_its_server(server: HostileServer, state: Path) -> None:
    """Too little is known to decide, and nothing is taken back for that."""
    speak_manifest(server)
    async with hosting(state, {"one": server}):
        pass
    async with StagedHost.open(servers={"one": ["/no/such/command"]}, state=state) as host:
        await host.settle(SECONDS)
        assert reference(await host.load("flat")) == ("server-away", "V7")
        with refused(UpstreamError, "server-away", "V7"):
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
