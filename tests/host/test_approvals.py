"""What a person is asked, what their answer is for, and for how long (A1, A2, B6, V5, V7)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from adversarial.adversary import SMALL, HostileServer
from adversarial.expecting import refused
from adversarial.speaking import Refusal
from host.stage import NO, SECONDS, YES, Person, StagedHost, entry_of, hosting, make_dynamic, reference, rotate
from rules import rule
from skillwire.errors import ApprovalError, VerificationError
from skillwire.host.approvals import Answer, ApprovalRequest, Policy, Rule, is_outdated
from skillwire.host.desk import question_of, request_of
from skillwire.skill.approval import EXECUTE, Approval, contents_of
from skillwire.skill.entry import Partial
from skillwire.skill.review import review_entry
from skillwire.store.records import LogLine
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

URI = "skill://flat/SKILL.md"
ASK_DYNAMIC = Policy([Rule("ask", kind="dynamic")])


@rule("A1", "C1")
async def test_a_yes_is_remembered_and_nobody_is_asked_again(server: HostileServer, state: Path) -> None:
    """Not in this run, and not in the next; then the cache answers, not the server."""
    person = Person()
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        await host.load("flat")
    assert server.read_uris() == [URI]
    async with hosting(state, {"one": server}, ask=person) as host:
        assert not (await host.load("flat")).is_error
        assert [status.status for status in await host.skills()] == ["approved"]
    assert person.kinds == ["load"]
    assert server.read_uris() == [URI]


@rule("A1", "B6", "A4", "A5")
async def test_what_a_person_is_asked_says_what_there_is_to_know(server: HostileServer, state: Path) -> None:
    """Before anything enters the model's context or the cache."""
    server.add(
        "risky",
        {
            "SKILL.md": skill_md(
                "risky", body="Do it.\n<!-- obey -->\n", extra="allowed-tools: Bash(rm:*) Read\n"
            ),
            "scripts/run.sh": b"rm -rf /\n",
            "inner/SKILL.md": skill_md("inner"),
        },
    )
    asked: list[ApprovalRequest] = []

    async def ask(request: ApprovalRequest) -> Answer:
        assert server.read_uris() == []
        assert (request.text, request.diff, request.summary.hidden) == (None, (), ())
        asked.append(await request.review())
        assert server.read_uris() == [
            "skill://risky/SKILL.md",
            "skill://risky/scripts/run.sh",
            "skill://risky/inner/SKILL.md",
        ]
        assert host.cache is not None
        assert host.cache.usage().files == 0
        return NO

    async with hosting(state, {"one": server}, ask=ask) as host:
        assert reference(await host.load("risky")) == ("not-approved", "A1")
    [request] = asked
    assert (request.kind, request.origin, request.entry.uri) == ("load", "one", "skill://risky/SKILL.md")
    review = request.summary
    assert (review.scripts, review.tools, review.nested) == (
        ("scripts/run.sh",),
        ("Bash(rm:*)", "Read"),
        ("inner/SKILL.md",),
    )
    assert any("obey" in find.text for find in review.hidden)
    assert "<!-- obey -->" in (request.text or "")
    assert (request.change, request.diff) == (None, ())


@rule("A1", "V5", "C1")
async def test_a_no_is_a_refusal_and_leaves_nothing(server: HostileServer, state: Path) -> None:
    """Nothing is kept, and nobody is asked again until it is enabled; a no for once is for once."""
    person = Person(Answer(yes=False, remember=False), NO, YES)
    async with hosting(state, {"one": server}, ask=person) as host:
        assert reference(await host.load("flat")) == ("not-approved", "A1")
        assert reference(await host.read("flat", "notes.md")) == ("skill-not-loaded", "W2")
        assert host.cache is not None
        assert (host.cache.usage().files, list(await host.store.approvals())) == (0, [])
        assert reference(await host.load("flat")) == ("not-approved", "A1")
        assert reference(await host.load("flat")) == ("skill-declined", "A1")
        assert await host.enable("flat")
        assert not (await host.load("flat")).is_error
        assert person.kinds == ["load"] * 3
        happened = [what for what in await host.happened() if what != "refused"]
        assert happened == ["denied", "denied", "enabled", "approved", "loaded"]


@rule("A1")
async def test_a_yes_that_is_not_to_be_remembered_is_for_once(server: HostileServer, state: Path) -> None:
    person = Person(Answer(yes=True, remember=False))
    async with hosting(state, {"one": server}, ask=person) as host:
        assert not (await host.load("flat")).is_error
        assert "notes" in (await host.read("flat", "notes.md")).text
        await host.load("flat")
        assert person.kinds == ["load", "load"]


@rule("A2", "V3")
async def test_another_content_is_asked_about_with_what_changed(server: HostileServer, state: Path) -> None:
    """Files that came, went and changed, and the lines of the instructions that differ."""
    server.add("flat", {"SKILL.md": skill_md("flat"), "notes.md": b"notes\n", "old.md": b"old\n"})
    del server.entries[0]
    person = Person(looks=True)
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        del server.entries[:]
        server.add(
            "flat", {"SKILL.md": skill_md("flat", body="Do it twice.\n"), "notes.md": b"n\n", "new.md": b"new\n"}
        )
        await host.relist("one")
        assert reference(await host.read("flat", "notes.md")) == ("skill-changed", "A2")
        assert [status.status for status in await host.skills()] == ["changed"]
        assert "Do it twice." in (await host.load("flat")).text
    change = person.asked[1].change
    assert change is not None
    root = "skill://flat/"
    assert (change.added, change.removed) == ((f"{root}new.md",), (f"{root}old.md",))
    assert change.rotated == (f"{root}SKILL.md", f"{root}notes.md")
    assert {"-Do it.", "+Do it twice."} <= set(person.asked[1].diff)


@rule("A2")
async def test_another_content_that_is_declined_stays_revoked(server: HostileServer, state: Path) -> None:
    """Also if the old content comes back."""
    person = Person(YES, NO, NO)
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        rotate(server, URI, skill_md("flat", body="Other.\n"))
        await host.relist("one")
        assert reference(await host.load("flat")) == ("not-approved", "A1")
        rotate(server, URI, skill_md("flat"))
        await host.relist("one")
        assert reference(await host.load("flat")) == ("not-approved", "A1")
        assert list(await host.store.approvals()) == []
        assert (await host.happened()).count("revoked") == 1


@rule("A2")
async def test_an_approval_ends_when_other_content_is_listed(server: HostileServer, state: Path) -> None:
    """Nothing is loaded, and the old content does not bring the approval back."""
    async with hosting(state, {"one": server}, ask=Person()) as host:
        await host.load("flat")
        rotate(server, URI, skill_md("flat", body="Other.\n"))
        await host.relist("one")
        with anyio.fail_after(SECONDS):
            while await host.store.approvals():
                await anyio.lowlevel.checkpoint()
        [revoked] = await host.store.lines(what=["revoked"])
        assert (revoked.by, revoked.facts["why"]) == ("host", "the content changed")
        rotate(server, URI, skill_md("flat"))
        await host.relist("one")
        assert [status.status for status in await host.skills()] == ["revoked"]


@rule("A2")
def test_only_a_later_listing_with_other_content_outdates_an_approval() -> None:
    """A listing that is older, that agrees, or that is too short to tell proves nothing."""
    entry = entry_of("flat", {"SKILL.md": skill_md("flat")})
    other = entry_of("flat", {"SKILL.md": skill_md("flat", body="Other.\n")})
    approval = Approval("one", entry.uri, contents_of(entry), "ada", at=10.0)
    assert is_outdated(approval, other, 11.0)
    assert not is_outdated(approval, other, 10.0)
    assert not is_outdated(approval, other, None)
    assert not is_outdated(approval, entry, 11.0)
    assert not is_outdated(approval, replace(entry, resources=Partial(())), 11.0)


@rule("A1", "A2")
async def test_another_order_of_files_is_the_same_content(server: HostileServer, state: Path) -> None:
    """An approval is bound to a set; nobody is asked and nothing is revoked."""
    person = Person()
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        server.entries[0]["resources"].reverse()
        await host.relist("one")
        assert not (await host.read("flat", "notes.md")).is_error
        assert not (await host.load("flat")).is_error
    assert person.kinds == ["load"]


@rule("B1", "A2")
async def test_lines_that_would_take_for_ever_to_compare_are_not_compared(
    server: HostileServer, state: Path
) -> None:
    """The person learns it at once."""
    lines = [f"{number}\n" for number in range(10_000)]
    rotate(server, URI, skill_md("flat", body="".join(lines)))
    person = Person(looks=True)
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        rotate(server, URI, skill_md("flat", body="".join(reversed(lines))))
        await host.relist("one")
        await host.load("flat")
    [line] = person.asked[1].diff
    assert line == "~ SKILL.md: too long to compare"


@rule("B6", "B1")
async def test_a_file_too_large_to_be_looked_through_is_said_to_be(server: HostileServer, state: Path) -> None:
    """Silence about it would look like nothing was hidden."""
    person = Person(looks=True)
    rotate(server, URI, skill_md("flat", body="word \n" * 300 + "\U000e0061"))
    async with hosting(state, {"one": server}, ask=person, limits=replace(SMALL, max_checked_text=1000)) as host:
        await host.load("flat")
    assert any(find.kind == "unread" for find in person.asked[0].summary.hidden)


@rule("B6")
async def test_what_cannot_be_looked_at_cannot_be_approved(server: HostileServer, state: Path) -> None:
    """A server that fails when a person looks could hide something when the model does."""
    server.answers["resources/read"] = Refusal(-32603, "not now")
    person = Person(looks=True)
    async with hosting(state, {"one": server}, ask=person) as host:
        assert reference(await host.load("flat")) == ("server-failed", "")
        assert (person.asked, list(await host.store.approvals())) == ([], [])


@rule("B6", "V5")
async def test_what_was_shown_is_what_is_loaded(server: HostileServer, state: Path) -> None:
    """One read serves the person and the model."""
    async with hosting(state, {"one": server}, ask=Person(looks=True)) as host:
        await host.load("flat")
        assert server.read_uris() == [URI, "skill://flat/notes.md"]


@rule("V5", "A2", "V1")
async def test_a_question_is_made_from_the_entry_alone(server: HostileServer, state: Path) -> None:
    """Also about a changed skill: what changed is known from digests, and what is loaded then is verified."""
    person, read = Person(), list[list[str]]()

    async def ask(request: ApprovalRequest) -> Answer:
        read.append(server.read_uris())
        return await person(request)

    async with hosting(state, {"one": server}, ask=ask) as host:
        await host.load("flat")
        rotate(server, URI, skill_md("flat", body="Other.\n"))
        await host.relist("one")
        assert "Other." in (await host.load("flat")).text
        change = person.asked[1].change
        assert change is not None
        assert change.rotated == (URI,)
        rotate(server, URI, skill_md("flat", body="Third.\n"))
        await host.relist("one")
        server.files[URI] = skill_md("flat", body="What nobody approved.\n")
        assert (await host.load("flat")).is_error
    assert read == [[], [URI], [URI, URI]]


@rule("V5")
async def test_a_question_from_elsewhere_says_where_to_look(server: HostileServer, state: Path) -> None:
    """Nothing is shown as if it had been read."""
    async with hosting(state, {"one": server}) as host:
        entry = host.names.find("flat").entry
        request = request_of(question_of(ApprovalRequest("load", "one", entry, review_entry(entry)), "agent"))
        with refused(ApprovalError, "review-elsewhere", "V5"):
            await request.review()


@rule("V5", "A1")
@pytest.mark.parametrize("options", [{"policy": Policy([Rule("deny")])}, {}], ids=["denied", "nobody to ask"])
async def test_nothing_is_fetched_for_what_is_declined_anyway(
    options: dict[str, Any], server: HostileServer, state: Path
) -> None:
    """No person looks, so that there is nothing to look at."""
    async with hosting(state, {"one": server}, **options) as host:
        assert reference(await host.load("flat"))[0] in ("not-approved", "cannot-ask")
    assert server.read_uris() == []


@rule("A1")
async def test_with_nobody_to_ask_a_person_learns_what_to_type(server: HostileServer, state: Path) -> None:
    async with hosting(state, {"one": server}) as host:
        result = await host.load("flat")
        assert reference(result) == ("cannot-ask", "A1")
        assert result.refusal is not None
        assert "skillwire approvals show one:skill://flat/SKILL.md" in result.refusal.hint


@rule("A1")
async def test_rules_decide_in_order_and_by_origin_path_and_kind(server: HostileServer, state: Path) -> None:
    """What a rule allowed is not remembered as a person's yes."""
    server.add("team/inner/refunds", {"SKILL.md": skill_md("refunds")})
    server.add("team/secret", {"SKILL.md": skill_md("secret")})
    other = HostileServer()
    other.add("team/weather", {"SKILL.md": skill_md("weather")})
    rules = [Rule("deny", path="*/secret"), Rule("allow", origin="o*", path="team/*"), Rule("deny", origin="two")]
    person = Person()
    servers = {"one": server, "two": other}
    async with hosting(state, servers, ask=person, policy=Policy(rules)) as host:
        assert not (await host.load("refunds")).is_error
        assert reference(await host.load("secret")) == ("not-approved", "A1")
        assert reference(await host.load("weather")) == ("not-approved", "A1")
        assert person.asked == []
        assert not (await host.load("flat")).is_error
        assert [request.entry.name for request in person.asked] == ["flat"]
        assert [approval.uri for approval in await host.store.approvals()] == [URI]
        assert [line.by for line in await host.lines() if line.what in ("approved", "denied")] == [
            *["policy"] * 3,
            "user",
        ]


@rule("A1")
async def test_a_rule_that_denies_is_stronger_than_an_approval_of_before(
    server: HostileServer, state: Path
) -> None:
    """Whoever writes it wants it to hold now."""
    async with hosting(state, {"one": server}, ask=Person()) as host:
        await host.load("flat")
    async with hosting(state, {"one": server}, policy=Policy([Rule("deny", origin="one")])) as host:
        assert reference(await host.load("flat")) == ("not-approved", "A1")
    async with hosting(
        state, {"one": server}, policy=Policy(defaults={**Policy().defaults, "load": "deny"})
    ) as host:
        assert not (await host.load("flat")).is_error


@rule("V7", "V5")
async def test_a_dynamic_skill_is_declined_by_default(server: HostileServer, state: Path, person: Person) -> None:
    """Without a question, and without a read."""
    make_dynamic(server)
    async with hosting(state, {"one": server}, ask=person) as host:
        assert reference(await host.load("flat")) == ("not-approved", "V7")
        assert [status.status for status in await host.skills()] == ["dynamic"]
        with refused(VerificationError, "approval-unbound", "V7"):
            await host.approve("flat")
    assert (person.asked, server.read_uris()) == ([], [])


@rule("V7")
async def test_a_dynamic_skill_is_asked_about_each_time(
    server: HostileServer, state: Path, person: Person
) -> None:
    """Its text is shown, the text that was shown is loaded, nothing of it is kept, and the model is told."""
    make_dynamic(server)
    person.looks = True
    bodies = iter(["First.\n", "Second.\n", "Third.\n"])

    def generated(params: dict[str, Any]) -> dict[str, Any]:
        text = skill_md("flat", body=next(bodies)).decode() + "<!-- hidden -->\n"
        return {"contents": [{"uri": params["uri"], "text": text}]}

    server.answers["resources/read"] = generated
    async with hosting(state, {"one": server}, ask=person, policy=ASK_DYNAMIC) as host:
        first, second = await host.load("flat"), await host.load("flat")
        assert "First." in first.text
        assert "Second." in second.text
        assert "\nnote: " in first.text
        assert host.cache is not None
        assert (host.cache.usage().files, list(await host.store.approvals())) == (0, [])
    assert person.kinds == ["dynamic", "dynamic"]
    assert all(any("hidden" in find.text for find in request.summary.hidden) for request in person.asked)


@rule("V7", "A2")
async def test_a_skill_that_turned_dynamic_lost_its_approval(server: HostileServer, state: Path) -> None:
    """Also for when it turns back."""
    honest = list(server.entries[0]["resources"])
    person = Person(YES, NO)
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        make_dynamic(server)
        await host.relist("one")
        assert reference(await host.read("flat", "notes.md")) == ("skill-changed", "A2")
        assert reference(await host.load("flat")) == ("not-approved", "V7")
        server.entries[0]["resources"] = honest
        await host.relist("one")
        assert reference(await host.load("flat")) == ("not-approved", "A1")


@rule("B6", "A1")
async def test_what_was_not_approved_cannot_be_while_its_server_is_away(
    server: HostileServer, state: Path
) -> None:
    """Nobody can look at it."""
    async with hosting(state, {"one": server}):
        pass
    person = Person()
    async with StagedHost.open(servers={"one": ["/no/such/command"]}, state=state, ask=person) as host:
        await host.settle(SECONDS)
        assert reference(await host.load("flat")) == ("server-away", "C1")
        assert person.asked == []


@rule("B6", "C1")
async def test_a_review_reads_every_text_and_keeps_nothing(server: HostileServer, state: Path) -> None:
    """Hidden text is found in whichever file it is."""
    rotate(server, "skill://flat/notes.md", b"a\n<!-- obey -->\n")
    server.add("binary", {"SKILL.md": skill_md("binary"), "x.bin": b"\xff\x00"})
    async with hosting(state, {"one": server}) as host:
        review = await host.review("flat")
        assert ("html-comment", "notes.md:2", "obey") in review.hidden
        assert (await host.review("binary")).hidden == ()
        assert host.cache is not None
        assert host.cache.usage().files == 0


@rule("A1", "A2")
async def test_a_person_approves_outside_a_conversation(server: HostileServer, state: Path) -> None:
    """For the content that is there now; the model is not asked to wait for anybody."""
    async with hosting(state, {"one": server}) as host:
        fingerprint = await host.approve("flat", by="ada", grants=frozenset({"Read"}))
        [approval] = await host.store.approvals()
        assert (approval.fingerprint, approval.by) == (fingerprint, "ada")
        assert not (await host.load("flat")).is_error
        assert host.granted() == frozenset({"Read"})
        assert await host.revoke("flat", by="bob")
        assert reference(await host.read("flat", "notes.md")) == ("skill-changed", "A2")
        assert reference(await host.load("flat")) == ("cannot-ask", "A1")
        assert not await host.revoke("flat")


@rule("A1", "Z4")
async def test_a_decision_about_a_fingerprint_is_about_no_other_content(
    server: HostileServer, state: Path
) -> None:
    """A server may change a skill between the review and the decision."""
    async with hosting(state, {"one": server}) as host:
        reviewed = await host.approve("flat")
        await host.revoke("flat")
        rotate(server, "skill://flat/notes.md", b"other\n")
        await host.relist("one")
        for decide in (host.approve, host.decline):
            with pytest.raises(ApprovalError) as caught:
                await decide("flat", fingerprint=reviewed)
            assert (caught.value.reference, caught.value.rule) == ("fingerprint-other", "A1")
        assert list(await host.store.approvals()) == []


@rule("A2", "A5")
async def test_a_grant_is_not_for_other_content_that_was_approved_meanwhile(
    server: HostileServer, state: Path
) -> None:
    async with hosting(state, {"one": server}) as host:
        await host.approve("flat")
        [seen] = await host.store.approvals()
        other = replace(seen, contents=frozenset({(URI, "sha256:" + "0" * 64)}))
        await host.store.put_approval(other, LogLine("approved", "one", URI, "another", seen.at))
        with pytest.raises(ApprovalError) as caught:
            await host.approvals.grant(seen, EXECUTE, "ada")
        assert (caught.value.reference, caught.value.rule) == ("skill-changed", "A2")
        assert await host.store.approvals() == [other]


@rule("A1", "E5", "C3")
async def test_the_same_skill_of_two_servers_is_approved_twice(server: HostileServer, state: Path) -> None:
    """Byte for byte the same, and still somebody else's word; neither sees what the other put."""
    other = HostileServer()
    other.add("flat", {"SKILL.md": skill_md("flat"), "notes.md": b"notes\n"})
    person = Person()
    async with hosting(state, {"one": server, "two": other}, ask=person) as host:
        await host.load("one:flat")
        await host.load("two:flat")
        assert [request.origin for request in person.asked] == ["one", "two"]
        assert host.cache is not None
        assert host.cache.usage().by_origin.keys() == {"one", "two"}
        await host.remove_origin("one")
        assert host.cache.usage().by_origin.keys() == {"two"}
    assert (server.read_uris(), other.read_uris()) == ([URI], [URI])
