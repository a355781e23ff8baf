"""Two users at their desks: no decision overrides an unseen one, and every outdated page learns of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import anyio
import pytest

from adversarial.adversary import HostileServer
from desks import at_desk, desk_of, words
from host.short import PROMISING, URI
from host.stage import SECONDS, hosting, rotate
from rules import rule
from skillwire.errors import SkillwireError, UpstreamError
from skillwire.host.approvals import ApprovalRequest
from skillwire.host.desk import question_of
from skillwire.skill.approval import EXECUTE
from skillwire.skill.review import review_entry
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from desks import AtDesk

pytestmark = pytest.mark.anyio
NOTES = "skill://flat/notes.md"
PLACE = "/skill/acme/flat"


async def form(at: AtDesk, action: str, skill: str = "acme/flat") -> dict[str, str]:
    return await at.form(f"/skill/{skill}", f"/{action}/{skill}")


# What changes while it is read


@rule("V3")
async def test_what_changed_while_it_was_read_is_not_approved_and_is_new_when_it_is_looked_at_again(
    state: Path, server: HostileServer
) -> None:
    """Nobody could read what the old entry promises, so that there is nothing to say yes to."""
    async with at_desk(state, {"acme": server}) as at:
        old = at.host.names.skills[0].entry
        rotate(server, NOTES, b"other notes\n")  # and its server told nobody
        page = await at.get(PLACE)
        assert 'role="alert"' in page
        assert "skill-changed" in page
        assert "/approve/" not in page
        new = await form(at, "approve")
        assert at.host.names.skills[0].entry != old
        assert "other notes" in await at.get("/file/acme/flat?path=notes.md")
        assert (await at.send("/approve/acme/flat", new)).status_code == 303


async def test_a_review_on_the_command_line_makes_the_host_look_again_too(
    state: Path, server: HostileServer
) -> None:
    async with at_desk(state, {"acme": server}) as at:
        rotate(server, NOTES, b"other notes\n")
        with pytest.raises(SkillwireError) as refused:
            await at.host.review("flat")
        assert refused.value.reference == "skill-changed"
        assert (await at.host.review("flat")).name == "flat"


# Two people


@rule("A1")
@pytest.mark.parametrize(("action", "theirs"), [("approve", "decline"), ("decline", "approve")])
async def test_an_old_page_overrules_nobody(action: str, theirs: str, state: Path, server: HostileServer) -> None:
    """It names who decided instead."""
    async with at_desk(state, {"acme": server}) as at, desk_of(at.host, "bob") as other:
        shown = await form(at, action)
        assert (await other.decide(theirs)).status_code == 303
        before = await at.host.store.approvals(), await at.host.lines()
        answer = await at.send(f"/{action}/acme/flat", shown)
        assert answer.status_code == 409
        assert "decided-meanwhile" in answer.text
        assert "'bob'" in words(answer.text)
        assert f'href="{PLACE}"' in answer.text
        assert (await at.host.store.approvals(), await at.host.lines()) == before


@rule("A1")
async def test_of_two_who_decide_at_once_one_is_told(state: Path, server: HostileServer) -> None:
    """The check and the decision are one step."""
    async with at_desk(state, {"acme": server}) as at, desk_of(at.host, "bob") as other:
        forms = {"approve": await form(at, "approve"), "decline": await form(other, "decline")}
        desks, statuses = {"approve": at, "decline": other}, dict[str, int]()

        async def send(action: str) -> None:
            answer = await desks[action].send(f"/{action}/acme/flat", forms[action])
            statuses[action] = answer.status_code

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(send, "approve")
                group.start_soon(send, "decline")
        assert sorted(statuses.values()) == [303, 409]
        happened = await at.host.happened()
        assert happened == ["approved" if statuses["approve"] == 303 else "denied"]


@rule("A2")
async def test_what_a_host_revoked_for_another_content_is_no_news_to_whoever_reads_that_content(
    state: Path, server: HostileServer
) -> None:
    """An agent that loads a changed skill does not spoil the page of the person who is to approve it."""
    async with at_desk(state, {"acme": server}) as at:
        await at.decide("approve")
        rotate(server, NOTES, b"other notes\n")
        await at.host.relist("acme")
        shown = await form(at, "approve")
        assert (await at.host.load("flat")).is_error
        assert await at.host.happened() == ["approved", "revoked", "refused"]
        assert (await at.send("/approve/acme/flat", shown)).status_code == 303


async def test_a_no_to_a_change_is_seen_by_an_old_page(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at, desk_of(at.host, "bob") as other:
        await at.decide("approve")
        rotate(server, NOTES, b"other notes\n")
        await at.host.relist("acme")
        shown = await form(at, "approve")
        assert (await other.decide("decline", note="worse")).status_code == 303
        assert (await at.send("/approve/acme/flat", shown)).status_code == 409
        page = await at.get(PLACE)
        assert ">declined</span>" in page
        assert "bob," in words(page).split()
        assert 'action="/revoke/acme/flat"' not in page  # A2: the approval ended with the change


@rule("A4")
async def test_tools_are_granted_by_whoever_sees_what_is_granted(state: Path, asking: HostileServer) -> None:
    """What another took back is not given again by an old page."""
    async with at_desk(state, {"acme": asking}) as at, desk_of(at.host, "bob") as other:
        await at.decide("approve", "acme/asking", grant=["Read", "execute"])
        shown = await form(at, "grants", "acme/asking")
        await other.decide("grants", "acme/asking", grant=["Read"])
        answer = await at.send("/grants/acme/asking", {**shown, "grant": ["Read", "execute"]})
        assert answer.status_code == 409
        [approval] = await at.host.store.approvals()
        assert approval.grants == {"Read"}
        part = f"/skill/acme/asking?part=standing&state={shown['state']}&fingerprint={shown['fingerprint']}"
        assert 'role="status"' in await at.get(part)


async def test_a_form_that_does_not_say_what_was_shown_decides_nothing(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        assert (await at.decide("approve", state="")).status_code == 409
        assert await at.host.store.approvals() == []


# Imports


@rule("A1")
async def test_an_import_overrules_no_no(state: Path, server: HostileServer) -> None:
    """Not the one that was said last, and not one to a content of before."""
    async with at_desk(state, {"acme": server}) as at:
        await at.decide("approve")
        export = await at.get("/approvals.json")
        fields = {"csrf": (await at.form("/approvals", "/approvals/import"))["csrf"], "export": export}
        await at.decide("revoke")

        async def imports_nothing() -> None:
            page = (await at.send("/approvals/import", fields)).text
            [status] = re.findall(r'<div class="notice" role="status">(.*?)</div>', page, re.DOTALL)
            assert re.findall(r"\d+", words(status))[:2] == ["0", "1"]
            assert "'anna'" in words(status)
            assert await at.host.store.approvals() == []

        await imports_nothing()
        await at.decide("decline")
        await imports_nothing()
        rotate(server, NOTES, b"other notes\n")
        await at.host.relist("acme")
        await at.decide("decline")
        await imports_nothing()


@rule("A4")
async def test_an_import_gives_back_no_tool_that_was_taken(state: Path, asking: HostileServer) -> None:
    async with at_desk(state, {"acme": asking}) as at:
        await at.decide("approve", "acme/asking", grant=["Read", "execute"])
        export = await at.get("/approvals.json")
        fields = {"csrf": (await at.form("/approvals", "/approvals/import"))["csrf"], "export": export}
        await at.decide("grants", "acme/asking", grant=["Read"])
        page = words((await at.send("/approvals/import", fields)).text)
        assert "'execute'" in page
        [approval] = await at.host.store.approvals()
        assert approval.grants == {"Read"}


async def test_the_log_says_who_imported_and_from_whom(state: Path, tmp_path: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        await at.decide("approve")
        export = await at.get("/approvals.json")
    async with at_desk(tmp_path / "other", {"acme": server}) as at, desk_of(at.host, "bob") as other:
        fields = {"csrf": (await other.form("/approvals", "/approvals/import"))["csrf"], "export": export}
        await other.send("/approvals/import", {**fields, "note": "from the old machine"})
        [line] = await at.host.lines()
        assert (line.what, line.by, line.facts["from"]) == ("approved", "bob", "anna")
        assert (line.facts["kind"], line.facts["note"]) == ("import", "from the old machine")
        [approval] = await at.host.store.approvals()
        assert approval.by == "anna"
        assert line.facts["fingerprint"] == approval.fingerprint


# Old pages


async def test_what_changes_while_a_page_is_made_is_news_to_it(state: Path, server: HostileServer) -> None:
    """Its number is that of the moment when it was asked for."""
    async with at_desk(state, {"acme": server}) as at:
        look = at.host.read_for_review

        async def slow(*given: object) -> object:
            at.desk.watcher.number += 1  # something happens while a server takes its time
            return await look(*given)  # type: ignore[arg-type]

        at.host.read_for_review = slow  # type: ignore[method-assign, assignment]
        at.desk.watcher.number = 7
        assert '<meta name="live-number" content="7">' in await at.get(PLACE)
        assert at.desk.watcher.number == 9


# Questions about what a listing says little of


async def asked(at: AtDesk, server: HostileServer, state: Path) -> str:
    """A question of another host, which got the whole of ``flat``."""
    async with hosting(state / "other", {"acme": server}) as other:
        found = await other.find(URI, "acme")
    request = ApprovalRequest("load", "acme", found.entry, review_entry(found.entry))
    question = question_of(request, "agent", seconds=600)
    await at.host.store.put_question(question)
    return f"/question/{question.id}"


@rule("G1")
@pytest.mark.parametrize("speak", PROMISING.values(), ids=PROMISING)
async def test_the_same_content_is_recognised_in_older_dialects(
    speak: Callable[..., None], state: Path, tmp_path: Path, server: HostileServer
) -> None:
    """A short listing is no other content; its page has the full review."""
    speak(server)
    async with at_desk(state, {"acme": server}) as at:
        place = await asked(at, server, state)
        answer = await at.browser.get(place)
        assert (answer.status_code, answer.headers["location"]) == (303, PLACE)


async def test_a_desk_that_cannot_tell_does_not_say_that_the_content_is_another(
    state: Path, server: HostileServer
) -> None:
    PROMISING["digest"](server)
    async with at_desk(state, {"acme": server}) as at:
        place = await asked(at, server, state)

        async def away(*given: object) -> object:
            raise UpstreamError("server-away", "it is away", "try again")

        at.host.registry.whole = away  # type: ignore[method-assign, assignment]
        page = await at.get(place)
        assert f'<a href="{PLACE}">' in page
        assert not re.search(rf'<a href="{PLACE}">[^<]*</a>[^<]*<strong>', page)


# Comparing


@rule("B6")
async def test_hostile_text_in_a_comparison_is_text(state: Path) -> None:
    """Tags, hidden characters and ends of line of both sides are shown, and none is HTML of the page."""
    old = "One <script>alert(1)</script> & \u202eolleh\u202c\nsame <b>\nlast <i>\n"
    new = 'One <img src=x onerror="alert(2)"> &amp; \u200bhello\r\nsame <b>\nlast </td></table><i>\U000e0041\n'
    server = HostileServer()
    server.add("flat", {"SKILL.md": skill_md("flat"), "notes.md": old.encode()})
    async with at_desk(state, {"acme": server}) as at:
        await at.decide("approve")
        rotate(server, NOTES, new.encode())
        await at.host.relist("acme")
        page = await at.get(PLACE)
        [diff] = re.findall(r'<table class="diff diff--split">.*?</table>', page, re.DOTALL)
        tags = set(re.findall(r"</?([a-z]+)", diff))
        assert tags <= {"table", "caption", "colgroup", "col", "thead", "tbody", "tr", "th", "td", "span", "del",
                        "ins", "mark", "abbr"}, tags  # fmt: skip
        assert not re.search(r"<[^>]*\son\w+=", diff)
        for character in ("\u202e", "\u202c", "\u200b", "\r", "\U000e0041"):
            assert character not in diff
        shown = words(diff).replace(" ", "")
        for text in ("script>", "alert(1)", 'onerror="', "&amp;", "</td></table>", "202E", "200B", "E0041", "␍"):
            assert text in shown, text
        assert diff.count('<tr class="changed">') == 2


@rule("A2")
async def test_a_difference_is_shown_however_often_a_load_was_refused(
    state: Path, server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was approved before is found in a log of any length."""
    monkeypatch.setattr("skillwire.store.store.LOG_PAGE", 2)
    async with at_desk(state, {"acme": server}) as at:
        await at.decide("approve", grant=EXECUTE)
        rotate(server, NOTES, b"other notes\n")
        await at.host.relist("acme")
        for _ in range(5):
            assert (await at.host.load("flat")).is_error
        assert (await at.host.happened()).count("refused") == 5
        assert re.findall(r'<h3><span class="chip [^"]*">(\w+)</span>', await at.get(PLACE)) == ["changed"]
