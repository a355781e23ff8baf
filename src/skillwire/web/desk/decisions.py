"""Decisions of the user: the states of a skill, and the actions that change them (A1, A4, A5).

Every decision is bound to the content and to the state that the page showed.

new          no decision about this content
approved     exactly this content is approved
changed      another content is approved
revoked      the user revoked the approval
declined     the user declined exactly this content; models do not see it
dynamic      the content cannot be verified, so an approval cannot be stored (V7)
local        in a folder of the user; no approval is needed
unlisted     approved, but its origin does not list it, or is not an origin of this desk
"""

from __future__ import annotations

import json
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from skillwire.errors import ApprovalError, NotFoundError
from skillwire.host.approvals import ASKED_TO, Answer, ApprovalRequest, note_facts
from skillwire.host.desk import give_answer
from skillwire.host.results import approval_status
from skillwire.skill.approval import claimed_contents, fingerprint_of, has_contents
from skillwire.skill.approval import fingerprint as fingerprint_of_contents
from skillwire.skill.review import review_entry
from skillwire.store.contract import LogLine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillwire.host.names import NamedEntry
    from skillwire.host.origins import Origin
    from skillwire.skill import SkillEntry
    from skillwire.skill.approval import Approval
    from skillwire.store.contract import Question
    from skillwire.web.desk.app import Desk

State: TypeAlias = Literal["new", "approved", "changed", "revoked", "declined", "dynamic", "local", "unlisted"]
STATES: tuple[State, ...] = get_args(State)
_VERBS = {"approved": "approved", "denied": "declined", "revoked": "revoked", "enabled": "enabled"}


def state_of(skill: NamedEntry, approval: Approval | None, decision: LogLine | None) -> State:
    """The state of a skill, from its stored approval and its latest decision."""
    standing = approval_status(skill, approval, decision)
    return "new" if standing == "unapproved" else standing


def completed_state(skill: NamedEntry, approval: Approval | None, decision: LogLine | None) -> State:
    """The state of a skill whose entry was completed: digests that are still missing will stay missing."""
    state = state_of(skill, approval, decision)
    return "dynamic" if state == "new" and not has_contents(skill.entry) else state


def state_token(state: State, approval: Approval | None) -> str:
    """The state as a token that a form sends back. It changes with every decision, and with the grants."""
    if state != "approved" or approval is None:
        return state
    facts = json.dumps([approval.by, approval.at, sorted(approval.grants)])
    return f"{state}-{sha256(facts.encode()).hexdigest()[:16]}"


def is_unreachable(origin: Origin | None) -> bool:
    """Whether the server of an origin does not respond."""
    return origin is None or (origin.error is not None and origin.state in ("stale", "unreachable"))


def check_content(entry: SkillEntry, fingerprint: str) -> None:
    """A1: raise ``ApprovalError`` unless ``entry`` has the content that the page showed."""
    if not fingerprint or fingerprint_of(entry) != fingerprint:
        raise content_changed(entry.uri)


def check_claims(entry: SkillEntry, fingerprint: str) -> None:
    """The same check for a decline, which is also possible without digests (V7)."""
    if fingerprint_of_contents(claimed_contents(entry)) != fingerprint:
        raise content_changed(entry.uri)


def content_changed(uri: str) -> ApprovalError:
    """The error for content that differs from what the page showed."""
    return ApprovalError(
        "skill-changed",
        f"{uri!r:.300} changed while you were reading; your decision was not stored",
        "review the new content, then decide",
        rule="A1",
    )


def decided_meanwhile(uri: str, decision: LogLine | None) -> ApprovalError:
    """The error for a decision that another user or process made since the page was shown."""
    event = (
        f"{uri!r:.300} was {_VERBS[decision.what]} by {decision.by!r:.80}"
        if decision is not None and decision.what in _VERBS
        else f"the decision about {uri!r:.300} changed"
    )
    return ApprovalError(
        "decided-meanwhile",
        f"{event} while you were reading; your decision was not stored",
        "review the new state, then decide",
        rule="A1",
    )


async def approve(desk: Desk, skill: NamedEntry, token: str, grants: frozenset[str], note: str) -> None:
    """Approve exactly this entry. The files that were read for the page may be cached from now on.

    ``token`` is the ``state_token`` of the page, here and below.
    """
    answer = Answer(yes=True, by=desk.by, grants=grants, note=note)
    request = _load_request(skill)
    await _decide(desk, skill, token, lambda after: desk.host.approvals.remember(request, answer, after=after))
    await desk.reader.keep(skill)


async def decline(desk: Desk, skill: NamedEntry, token: str, note: str) -> None:
    """Decline exactly this entry, and answer open questions about it."""
    answer = Answer(yes=False, by=desk.by, note=note)
    request = _load_request(skill)
    await _decide(desk, skill, token, lambda after: desk.host.approvals.decline(request, answer, after=after))


async def _decide(desk: Desk, skill: NamedEntry, token: str, write: Callable[[int], Awaitable[object]]) -> None:
    """Check the state and write in one step: ``write`` fails if there is a newer decision than the given one."""
    label, uri = skill.origin.label, skill.entry.uri
    while True:
        decision = await desk.host.approvals.decided(label, uri)
        approval = await desk.host.approvals.current(label, uri)
        if state_token(completed_state(skill, approval, decision), approval) != token:
            raise decided_meanwhile(uri, decision)
        try:
            await write(decision.number if decision else 0)
        except ApprovalError as error:
            if error.reference != "decided-meanwhile":
                raise
            continue  # the newer decision may not change the state, such as a revocation of other content
        return


async def enable(desk: Desk, skill: NamedEntry, note: str) -> None:
    """Undo a decline: models see the skill again, and hosts ask about it again."""
    if not await desk.host.enable(f"{skill.origin.label}:{skill.entry.uri}", by=desk.by, note=note):
        raise decided_meanwhile(
            skill.entry.uri, await desk.host.approvals.decided(skill.origin.label, skill.entry.uri)
        )


async def revoke(desk: Desk, origin: str, uri: str, note: str) -> None:
    """Revoke the approval of a skill, for whatever content it is."""
    if not await desk.host.approvals.revoke(origin, uri, by=desk.by, why=ASKED_TO, note=note):
        raise NotFoundError("approval-unknown", "this skill is not approved", "it may have been revoked already")


async def set_grants(
    desk: Desk, origin: str, uri: str, *, fingerprint: str, token: str, grants: frozenset[str], note: str
) -> None:
    """A4, A5: set the tools that an approved content may use."""
    approval = await desk.host.store.approval(origin, uri)
    if approval is None or approval.fingerprint != fingerprint:
        raise content_changed(uri)
    if state_token("approved", approval) != token:
        raise decided_meanwhile(uri, None)
    if approval.grants == grants:
        return
    facts: dict[str, object] = {
        "given": sorted(grants - approval.grants),
        "taken": sorted(approval.grants - grants),
        "grants": sorted(grants),
        **note_facts(note),
    }
    line = LogLine("granted", origin, uri, desk.by, time.time(), facts)
    if not await desk.host.store.change_grants(approval, grants, line):
        raise decided_meanwhile(uri, await desk.host.approvals.decided(origin, uri))


async def answer(desk: Desk, question: Question, answer: Answer) -> None:
    """Answer all equal questions. An answer about a skill is stored in the same step."""
    store = desk.host.store
    equal = [each for each in await store.questions(time.time()) if question_key(each) == question_key(question)]
    answered = [await give_answer(store, each, answer) for each in equal]
    if not any(answered):
        raise NotFoundError("question-gone", "this question is closed", "it was answered elsewhere")


def question_key(question: Question) -> tuple[str, ...]:
    """Equal for questions that a user sees as one. A question about unverifiable content is always alone (V7)."""
    alone = "" if question.content else question.id
    return question.kind, question.origin, question.entry.uri, question.content, question.target, alone


def _load_request(skill: NamedEntry) -> ApprovalRequest:
    return ApprovalRequest("load", skill.origin.label, skill.entry, review_entry(skill.entry))
