"""While a skill is acted on: what it may cause, what was granted, and when that ends (W, A3–A5, O3, N1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from adversarial.adversary import HostileServer
from host.stage import ALLOW, NO, YES, Person, Slow, hosting, reference, rotate
from rules import rule
from skillwire.cli.prompts import question_text
from skillwire.errors import StoreError
from skillwire.host.approvals import Answer, Approvals, Policy, Rule, cannot_ask
from skillwire.host.desk import question_of, request_of
from skillwire.host.state import open_store
from skillwire.skill.approval import EXECUTE
from skillwire.store.records import LogLine
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.host.approvals import ApprovalRequest
    from skillwire.host.results import Refusal

pytestmark = pytest.mark.anyio

URI = "skill://flat/SKILL.md"


@rule("A3", "W2")
async def test_a_skill_inside_another_is_a_skill_of_its_own(server: HostileServer, state: Path) -> None:
    """Reading its text as a file gives it no standing."""
    inner = skill_md("inner", body="Inner.\n", extra="allowed-tools: Bash\n")
    server.add("outer", {"SKILL.md": skill_md("outer"), "inner/SKILL.md": inner, "inner/x.md": b"x\n"})
    server.add("outer/inner", {"SKILL.md": inner, "x.md": b"x\n"})
    person = Person(YES, NO, YES)
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("outer")
        assert "Inner." in (await host.read("outer", "inner/SKILL.md")).text
        assert reference(await host.read("inner", "x.md")) == ("skill-not-loaded", "W2")
        assert reference(await host.load("inner")) == ("not-approved", "A1")
        assert host.granted() == frozenset()
        await host.enable("inner")
        assert not (await host.load("inner")).is_error
        assert not (await host.read("inner", "x.md")).is_error
    assert [request.entry.name for request in person.asked] == ["outer", "inner", "inner"]


@rule("A4")
async def test_tools_that_a_skill_asks_for_are_ignored_until_granted(server: HostileServer, state: Path) -> None:
    """A grant is a decision of its own, for one content, and ends with the window."""
    server.add("wide", {"SKILL.md": skill_md("wide", extra="allowed-tools: Bash Read\nhooks:\n  x: y\n")})
    person = Person(YES, Answer(yes=True, grants=frozenset({"Read"})))
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("wide")
        assert host.granted() == frozenset()
        assert person.asked[0].summary.tools == ("Bash", "Read")
        await host.revoke("wide")
        await host.load("wide")
        assert host.granted() == frozenset({"Read"})
        assert [status.grants for status in await host.skills() if status.name == "wide"] == [frozenset({"Read"})]
        host.leave("wide")
        assert host.granted() == frozenset()
        await host.load("wide")
        assert host.granted() == frozenset({"Read"})
        rotate(server, "skill://wide/SKILL.md", skill_md("wide", body="Other.\n", extra="allowed-tools: Bash\n"))
        await host.relist("one")
        assert host.granted() == frozenset()


@rule("A5")
async def test_code_runs_because_of_a_skill_only_if_that_was_granted(server: HostileServer, state: Path) -> None:
    """Asked once for this content; what runs nothing is not asked about."""
    person = Person(YES, NO, YES)
    async with hosting(state, {"one": server}, ask=person) as host:
        assert await host.gate("Bash") is None
        await host.load("flat")
        assert await host.gate("Search", executes=False) is None
        declined = await host.gate("Bash")
        assert declined is not None
        assert (declined.reference, declined.rule) == ("not-approved", "A5")
        assert await host.gate("Bash") is None
        assert await host.gate("Bash") is None
        assert [(request.kind, request.target) for request in person.asked[1:]] == [("execute", "Bash")] * 2
        [approval] = await host.store.approvals()
        assert approval.grants == frozenset({"Bash"})
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        assert await host.gate("Bash") is None
        assert len(person.asked) == 3


@rule("A5", "A1")
@pytest.mark.parametrize("remember", [True, False], ids=["from-now-on", "this-once"])
async def test_what_a_yes_to_a_tool_means_is_what_is_stored(
    server: HostileServer, state: Path, remember: bool
) -> None:
    """The tool is stored for this content where the content is, and the person is told which of the two it is."""
    person = Person(Answer(yes=True, remember=remember), YES)
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        assert await host.gate("Bash") is None
        assert await host.gate("Bash") is None
        grants = [grant for approval in await host.store.approvals() for grant in approval.grants]
    [_, asked] = person.asked
    assert (asked.kind, asked.lasts, grants) == ("execute", remember, ["Bash"] if remember else [])
    assert request_of(question_of(asked, "an agent")).lasts == remember
    assert question_text(asked) != question_text(replace(asked, lasts=not remember))


@rule("A5")
async def test_the_grant_to_execute_is_for_every_tool(server: HostileServer, state: Path) -> None:
    """A person gave it when they approved."""
    person = Person(Answer(yes=True, grants=frozenset({EXECUTE})))
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        assert await host.gate("Bash") is None
        assert await host.gate("Python") is None
    assert person.kinds == ["load"]


@rule("A5")
async def test_every_skill_that_is_acted_on_has_to_be_granted(server: HostileServer, state: Path) -> None:
    """Nobody knows whose words it is that make the model run something."""
    server.add("other", {"SKILL.md": skill_md("other")})
    person = Person(Answer(yes=True, grants=frozenset({EXECUTE})), YES, NO)
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        await host.load("other")
        declined = await host.gate("Bash")
        assert declined is not None
        assert person.asked[-1].entry.name == "other"
        host.leave("other")
        assert await host.gate("Bash") is None


@rule("W1", "W2")
async def test_a_window_is_open_from_load_to_leave(server: HostileServer, state: Path, person: Person) -> None:
    async with hosting(state, {"one": server}, ask=person) as host:
        assert reference(await host.read("flat", "notes.md")) == ("skill-not-loaded", "W2")
        await host.load("flat")
        assert not (await host.read("flat", "notes.md")).is_error
        host.leave()
        assert reference(await host.read("flat", "notes.md")) == ("skill-not-loaded", "W2")
        assert await host.gate("Bash") is None


@rule("W2")
async def test_a_plain_read_of_a_skill_md_gives_no_standing(server: HostileServer, state: Path) -> None:
    """Only the host's own loading path opens a window."""
    person = Person()
    async with hosting(state, {"one": server}, ask=person) as host:
        origin = host.registry.get("one")
        await origin.fetch(origin.known[0], URI)
        await host.review("flat")
        assert reference(await host.read("flat", "notes.md")) == ("skill-not-loaded", "W2")
        assert (person.asked, list(await host.store.approvals()), host.granted()) == ([], [], frozenset())


@rule("A2")
async def test_an_approval_can_be_taken_back_while_the_skill_is_not_there(
    server: HostileServer, state: Path
) -> None:
    """By origin and URI, and no server is asked."""
    async with hosting(state, {"one": server}, ask=Person()) as host:
        await host.load("flat")
        del server.entries[:]
        await host.relist("one")
        asked = len(server.asked)
        assert await host.revoke(f"one:{URI}")
        assert reference(await host.read(f"one:{URI}", "notes.md")) == ("skill-changed", "A2")
        assert len(server.asked) == asked


@rule("A2", "W1")
@pytest.mark.parametrize("first", ["read", "list", "gate"])
@pytest.mark.parametrize("run", ["this", "an earlier"])
@pytest.mark.parametrize("event", ["taken back", "given to other content"])
async def test_an_approval_that_another_program_changed_permits_nothing_here(
    event: str, run: str, first: str, server: HostileServer, state: Path
) -> None:
    """Whatever is tried first, and also if running code was granted."""
    person = Person(Answer(yes=True, grants=frozenset({EXECUTE})))
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        if run == "an earlier":
            host.leave()
            await host.load("flat")
        assert await host.gate("Bash") is None
        store = await open_store(state)
        [approval] = await store.approvals()
        if event == "taken back":
            await Approvals(store, Policy(), cannot_ask).revoke("one", URI, by="another", why="asked to")
        else:
            other = replace(approval, contents=frozenset({(URI, "sha256:" + "0" * 64)}))
            await store.put_approval(other, LogLine("approved", "one", URI, "another", approval.at))
        await store.close()
        refusal: Refusal | None
        if first == "gate":
            refusal = await host.gate("Bash")
        else:
            refusal = (await (host.read("flat", "notes.md") if first == "read" else host.ls("flat"))).refusal
        assert refusal is not None
        assert (refusal.reference, refusal.rule) == ("skill-changed", "A2")


@rule("W1", "A5")
async def test_a_revoked_skill_runs_nothing_until_its_words_have_left(server: HostileServer, state: Path) -> None:
    """They are still before the model's eyes."""
    person = Person(Answer(yes=True, grants=frozenset({EXECUTE})))
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        await host.revoke("flat")
        declined = await host.gate("Bash")
        assert declined is not None
        assert (declined.reference, declined.rule) == ("skill-changed", "A2")
        assert host.granted() == frozenset()
        host.leave("flat")
        assert await host.gate("Bash") is None


@rule("W1", "A5", "C3")
async def test_removing_an_origin_does_not_take_its_words_out_of_the_context(
    server: HostileServer, state: Path
) -> None:
    """Nothing runs because of them, also if nobody remembers whose they were."""
    person = Person(Answer(yes=True, grants=frozenset({EXECUTE})))
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        await host.remove_origin("one")
        declined = await host.gate("Bash")
        assert declined is not None
        assert declined.reference == "skill-changed"
        assert reference(await host.read("flat", "notes.md")) == ("skill-changed", "A2")
        host.leave()
        assert await host.gate("Bash") is None


@rule("A1", "A2")
async def test_a_skill_that_changes_while_a_person_thinks_is_not_what_they_approved(
    server: HostileServer, state: Path
) -> None:
    """Their yes is for what they saw, and is not remembered for anything."""
    person, results = Slow(), []
    async with hosting(state, {"one": server}, ask=person) as host:

        async def load() -> None:
            results.append(await host.load("flat"))

        async with anyio.create_task_group() as group:
            group.start_soon(load)
            await person.is_asked.wait()
            rotate(server, "skill://flat/notes.md", b"other\n")
            await host.relist("one")
            person.may_answer.set()
        assert reference(results[0]) == ("skill-changed", "A2")
        assert list(await host.store.approvals()) == []
        assert reference(await host.read("flat", "notes.md")) == ("skill-not-loaded", "W2")


@rule("C3", "A1")
async def test_an_origin_removed_while_a_person_thinks_gets_no_approval(
    server: HostileServer, state: Path
) -> None:
    """Nothing of it is left, and nothing new of it comes."""
    person, results = Slow(), []
    async with hosting(state, {"one": server}, ask=person) as host:

        async def load() -> None:
            results.append(await host.load("flat"))

        async with anyio.create_task_group() as group:
            group.start_soon(load)
            await person.is_asked.wait()
            await host.remove_origin("one")
            person.may_answer.set()
        assert reference(results[0]) == ("origin-unknown", "O1")
        assert list(await host.store.approvals()) == []
        assert host.cache is not None
        assert host.cache.usage().files == 0


@rule("A5", "W1", "A2")
@pytest.mark.parametrize("event", ["change", "revoke", "leave"])
async def test_a_grant_does_not_open_what_was_closed_while_a_person_thought(
    event: str, server: HostileServer, state: Path
) -> None:
    """A yes to running code is for the content that asked."""
    person, results = Slow(YES, YES), []
    person.may_answer.set()
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        person.is_asked, person.may_answer = anyio.Event(), anyio.Event()

        async def gate() -> None:
            results.append(await host.gate("Bash"))

        async with anyio.create_task_group() as group:
            group.start_soon(gate)
            await person.is_asked.wait()
            if event == "change":
                rotate(server, URI, skill_md("flat", body="Other.\n"))
                await host.relist("one")
            elif event == "revoke":
                await host.revoke("flat")
            else:
                host.leave()
            person.may_answer.set()
        assert host.granted() == frozenset()
        if event == "leave":
            assert results == [None]
        else:
            assert [refusal.reference for refusal in results] == ["skill-changed"]


@rule("A5", "A2")
async def test_a_grant_is_not_for_the_content_that_was_loaded_while_a_person_thought(
    server: HostileServer, state: Path
) -> None:
    """They were asked about the content before."""

    async def ask(request: ApprovalRequest) -> Answer:
        if request.kind == "execute":
            rotate(server, URI, skill_md("flat", body="Other.\n"))
            await host.relist("one")
            assert not (await host.load("flat")).is_error
        return YES

    async with hosting(state, {"one": server}, ask=ask) as host:
        await host.load("flat")
        refusal = await host.gate("Bash")
        assert refusal is not None
        assert (refusal.reference, refusal.rule) == ("skill-changed", "A2")
        assert host.granted() == frozenset()


@rule("N1")
async def test_a_name_that_the_model_was_given_keeps_its_meaning(server: HostileServer, state: Path) -> None:
    """A server that comes later with the same name takes nothing away from a skill that is loaded."""
    other = HostileServer()
    other.add("flat", {"SKILL.md": skill_md("flat", body="Evil.\n"), "notes.md": b"evil\n"})
    async with hosting(state, {"one": server}, ask=Person()) as host, other.serving() as target:
        await host.load("flat")
        await host.add_server("two", target)
        await host.calm("two")
        assert reference(await host.load("flat")) == ("name-ambiguous", "N1")
        assert "notes" in (await host.read("flat", "notes.md")).text
        assert reference(await host.read("two:flat", "notes.md")) == ("skill-not-loaded", "W2")
        await host.load("two:flat")
        assert "evil" in (await host.read("two:flat", "notes.md")).text
        assert reference(await host.read("skill://flat/SKILL.md", "notes.md")) == ("name-ambiguous", "N1")


@rule("O3")
async def test_reading_across_origins_is_declined_by_default(server: HostileServer, state: Path) -> None:
    """Nothing reaches the other server, also if its skill was approved."""
    other = HostileServer()
    other.add("other", {"SKILL.md": skill_md("other"), "secret.md": b"secret\n"})
    async with hosting(state, {"one": server, "two": other}, ask=Person()) as host:
        await host.load("flat")
        await host.load("other")
        result = await host.read("flat", "skill://other/secret.md", origin="two")
        assert reference(result) == ("not-approved", "O3")
    assert other.read_uris() == ["skill://other/SKILL.md"]


@rule("O3", "O2")
async def test_reading_across_origins_names_both_and_is_asked_each_time(
    server: HostileServer, state: Path
) -> None:
    """Per call; the other skill needs its own approval too, and the block says whose words it holds."""
    other = HostileServer()
    other.add("other", {"SKILL.md": skill_md("other"), "secret.md": b"secret\n"})
    person = Person()
    policy = Policy([Rule("ask", kind="cross-origin")])
    async with hosting(state, {"one": server, "two": other}, ask=person, policy=policy) as host:
        await host.load("flat")
        for _ in range(2):
            result = await host.read("flat", "skill://other/secret.md", origin="two")
            assert 'skill="two:other" origin="mcp:two"' in result.text
            assert "secret" in result.text
        assert person.kinds == ["load", "cross-origin", "load", "cross-origin"]
        crossing = person.asked[1]
        assert (crossing.origin, crossing.target) == ("one", "two skill://other/secret.md")
        assert reference(await host.read("other", "secret.md")) == ("skill-not-loaded", "W2")


@rule("A1")
async def test_a_refusal_is_not_lost_when_it_cannot_be_logged(server: HostileServer, state: Path) -> None:
    """The answer stays a no."""
    async with hosting(state, {"one": server}, ask=Person(NO)) as host:
        await host.store.close()
        result = await host.load_skill("flat")
        assert getattr(result, "reference", "") == "store-closed"


@rule("W1", "A1")
async def test_what_cannot_be_logged_is_not_loaded(server: HostileServer, state: Path) -> None:
    """A load that the log does not know of does not happen."""
    async with hosting(state, {"one": server}, policy=ALLOW) as host:
        await host.load("flat")
        host.leave()
        log = host.store.log

        async def full(line: Any) -> None:
            raise StoreError("store-full", "the disk is full", "free some space")

        host.store.log = full  # type: ignore[method-assign]
        assert reference(await host.load("flat")) == ("store-full", "")
        host.store.log = log  # type: ignore[method-assign]
        assert reference(await host.read("flat", "notes.md")) == ("skill-not-loaded", "W2")
