"""What a person decides at the desk, put into the host's memory, bound to the content that they were shown."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from skillwire.errors import ApprovalError, NotFoundError
from skillwire.host.approvals import Answer, ApprovalRequest
from skillwire.host.desk import give_answer
from skillwire.skill.approval import fingerprint_of
from skillwire.skill.review import review_entry
from skillwire.store.contract import LogLine
from skillwire.web.desk.rows import same_question

if TYPE_CHECKING:
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


async def approve(desk: Desk, skill: NamedEntry, grants: frozenset[str], note: str) -> None:
    """A yes to exactly this entry. What was read of it for the page may be kept from now on."""
    answer = Answer(yes=True, by=desk.by, grants=grants, note=note)
    await desk.host.approvals.remember(_load(skill.origin.label, skill.entry), answer)
    await desk.reader.keep(skill)


async def decline(desk: Desk, origin: str, entry: SkillEntry, note: str) -> None:
    """A no to exactly this entry; whoever asks about it is answered."""
    await desk.host.approvals.decline(_load(origin, entry), Answer(yes=False, by=desk.by, note=note))


async def revoke(desk: Desk, origin: str, uri: str, note: str) -> None:
    """Take an approval back, whatever content it is for: that is never too late."""
    if not await desk.host.approvals.revoke(origin, uri, by=desk.by, why="asked to", note=note):
        raise NotFoundError(
            "approval-unknown", "this skill is not approved", "somebody else revoked it before you"
        )


async def set_grants(
    desk: Desk, origin: str, uri: str, fingerprint: str, grants: frozenset[str], note: str
) -> None:
    """A4, A5: an approved content may use exactly these tools from now on."""
    approval = await desk.host.store.approval(origin, uri)
    if approval is None or approval.fingerprint != fingerprint:
        raise changed_meanwhile(uri)
    if approval.grants == grants:
        return
    facts: dict[str, object] = {
        "given": sorted(grants - approval.grants),
        "taken": sorted(approval.grants - grants),
        "grants": sorted(grants),
    }
    if note:
        facts["note"] = note
    line = LogLine("granted", origin, uri, desk.by, time.time(), facts)
    if not await desk.host.store.change_grants(approval, grants, line):
        raise changed_meanwhile(uri)


async def answer(desk: Desk, question: Question, answer: Answer) -> None:
    """Answer whoever asks this: a yes or no to a skill is remembered, and the askers are told in the same step."""
    store = desk.host.store
    asked = [each for each in await store.questions(time.time()) if same_question(each) == same_question(question)]
    told = [await give_answer(store, each, answer) for each in asked]
    if not any(told):
        raise NotFoundError("question-gone", "nobody waits for this answer any more", "it was answered elsewhere")


def _load(origin: str, entry: SkillEntry) -> ApprovalRequest:
    return ApprovalRequest("load", origin, entry, review_entry(entry))
