"""What a person decides at the desk, put into the host's memory, bound to the content that they were shown."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from skillwire.errors import ApprovalError, NotFoundError
from skillwire.host.approvals import ASKED_TO, Answer, ApprovalRequest, noted
from skillwire.host.desk import give_answer
from skillwire.skill.approval import claimed_contents, fingerprint_of
from skillwire.skill.approval import fingerprint as fingerprint_of_contents
from skillwire.skill.review import review_entry
from skillwire.store.contract import LogLine
from skillwire.web.desk.rows import same_question
from skillwire.web.desk.standings import mark_of, state_once_wanted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillwire.host.names import NamedEntry
    from skillwire.skill import SkillEntry
    from skillwire.store.contract import Question
    from skillwire.web.desk.desk import Desk


def check_shown(entry: SkillEntry, fingerprint: str) -> None:
    """A1: what is decided on is what was looked at; ``ApprovalError`` if it is another content by now."""
    if not fingerprint or fingerprint_of(entry) != fingerprint:
        raise changed_meanwhile(entry.uri)


def changed_meanwhile(uri: str) -> ApprovalError:
    """It is not what the person saw any more."""
    return ApprovalError(
        "skill-changed",
        f"{uri!r:.300} changed while you were reading, and nothing was decided",
        "look at what it is now, and decide then",
        rule="A1",
    )


def check_claims(entry: SkillEntry, fingerprint: str) -> None:
    """The same for what can be declined and not approved: it may have no digests (V7)."""
    if fingerprint_of_contents(claimed_contents(entry)) != fingerprint:
        raise changed_meanwhile(entry.uri)


_WORDS = {"approved": "approved", "denied": "declined", "revoked": "revoked", "enabled": "enabled"}


def decided_meanwhile(uri: str, decision: LogLine | None) -> ApprovalError:
    """Somebody else decided while the person was reading: they are told, and not overruled."""
    what = (
        f"{uri!r:.300} was {_WORDS[decision.what]} by {decision.by!r:.80}"
        if decision is not None and decision.what in _WORDS
        else f"what was decided about {uri!r:.300} changed"
    )
    return ApprovalError(
        "decided-meanwhile",
        f"{what} while you were reading, and nothing that you sent was decided",
        "look at what was decided, and decide then",
        rule="A1",
    )


async def approve(desk: Desk, skill: NamedEntry, shown: str, grants: frozenset[str], note: str) -> None:
    """A yes to exactly this entry. What was read of it for the page may be kept from now on.

    ``shown`` is the mark of how the person saw others stand to it, here and below.
    """
    answer = Answer(yes=True, by=desk.by, grants=grants, note=note)
    request = _load(skill.origin.label, skill.entry)
    await _decide(desk, skill, shown, lambda after: desk.host.approvals.remember(request, answer, after=after))
    await desk.reader.keep(skill)


async def decline(desk: Desk, skill: NamedEntry, shown: str, note: str) -> None:
    """A no to exactly this entry; whoever asks about it is answered."""
    answer = Answer(yes=False, by=desk.by, note=note)
    request = _load(skill.origin.label, skill.entry)
    await _decide(desk, skill, shown, lambda after: desk.host.approvals.decline(request, answer, after=after))


async def enable(desk: Desk, skill: NamedEntry, note: str) -> None:
    """Undo a no: the skill is shown to models and asked about again."""
    if not await desk.host.enable(f"{skill.origin.label}:{skill.entry.uri}", by=desk.by, note=note):
        raise decided_meanwhile(
            skill.entry.uri, await desk.host.approvals.decided(skill.origin.label, skill.entry.uri)
        )


async def _decide(desk: Desk, skill: NamedEntry, shown: str, write: Callable[[int], Awaitable[object]]) -> None:
    """Look and write in one step: ``write`` refuses if there was a decision since the one it is given."""
    label, uri = skill.origin.label, skill.entry.uri
    while True:
        decision = await desk.host.approvals.decided(label, uri)
        approval = await desk.host.approvals.current(label, uri)
        if mark_of(state_once_wanted(skill, approval, decision), approval) != shown:
            raise decided_meanwhile(uri, decision)
        try:
            await write(decision.number if decision else 0)
        except ApprovalError as error:
            if error.reference != "decided-meanwhile":
                raise
            continue  # it may be no news to the person: a host that revoked what did not cover this anyway
        return


async def revoke(desk: Desk, origin: str, uri: str, note: str) -> None:
    """Take an approval back, whatever content it is for: that is never too late."""
    if not await desk.host.approvals.revoke(origin, uri, by=desk.by, why=ASKED_TO, note=note):
        raise NotFoundError(
            "approval-unknown", "this skill is not approved", "somebody else revoked it before you"
        )


async def set_grants(
    desk: Desk, origin: str, uri: str, *, fingerprint: str, shown: str, grants: frozenset[str], note: str
) -> None:
    """A4, A5: an approved content may use exactly these tools from now on."""
    approval = await desk.host.store.approval(origin, uri)
    if approval is None or approval.fingerprint != fingerprint:
        raise changed_meanwhile(uri)
    if mark_of("approved", approval) != shown:
        raise decided_meanwhile(uri, None)
    if approval.grants == grants:
        return
    facts: dict[str, object] = {
        "given": sorted(grants - approval.grants),
        "taken": sorted(approval.grants - grants),
        "grants": sorted(grants),
        **noted(note),
    }
    line = LogLine("granted", origin, uri, desk.by, time.time(), facts)
    if not await desk.host.store.change_grants(approval, grants, line):
        raise decided_meanwhile(uri, await desk.host.approvals.decided(origin, uri))


async def answer(desk: Desk, question: Question, answer: Answer) -> None:
    """Answer whoever asks this: a yes or no to a skill is remembered, and the askers are told in the same step."""
    store = desk.host.store
    asked = [each for each in await store.questions(time.time()) if same_question(each) == same_question(question)]
    told = [await give_answer(store, each, answer) for each in asked]
    if not any(told):
        raise NotFoundError("question-gone", "nobody waits for this answer any more", "it was answered elsewhere")


def _load(origin: str, entry: SkillEntry) -> ApprovalRequest:
    return ApprovalRequest("load", origin, entry, review_entry(entry))
