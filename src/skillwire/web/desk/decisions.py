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
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from skillwire.errors import ApprovalError, NotFoundError
from skillwire.host.approvals import ASKED_TO, Answer, ApprovalRequest, note_facts
from skillwire.host.desk import give_answer
from skillwire.host.results import approval_status
from skillwire.skill.approval import claimed_contents, fingerprint_of, has_contents
from skillwire.skill.approval import fingerprint as fingerprint_of_contents
from skillwire.store.records import LogLine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillwire.host.host import SkillHost
    from skillwire.host.origins import NamedEntry, Origin
    from skillwire.skill.approval import Approval
    from skillwire.store.records import Question
    from skillwire.web.desk.app import Desk
    from skillwire.web.desk.guard import Form

DeskState: TypeAlias = Literal["new", "approved", "changed", "revoked", "declined", "dynamic", "local", "unlisted"]
STATES: tuple[DeskState, ...] = get_args(DeskState)
_VERBS = {"approved": "approved", "denied": "declined", "revoked": "revoked", "enabled": "enabled"}


def state_of(skill: NamedEntry, approval: Approval | None, decision: LogLine | None) -> DeskState:
    """The state of a skill, from its stored approval and its latest decision."""
    standing = approval_status(skill, approval, decision)
    return "new" if standing == "unapproved" else standing


@dataclass(frozen=True, slots=True)
class Standing:
    """The current state of one skill, with its stored approval and its latest decision."""

    state: DeskState
    approval: Approval | None
    decision: LogLine | None

    @property
    def token(self) -> str:
        """The state as a token that a form sends back. It changes with every decision, and with the grants."""
        if self.state != "approved" or self.approval is None:
            return self.state
        facts = json.dumps([self.approval.by, self.approval.at, sorted(self.approval.grants)])
        return f"{self.state}-{sha256(facts.encode()).hexdigest()[:16]}"


async def standing_of(host: SkillHost, skill: NamedEntry) -> Standing:
    """The standing of a skill whose entry was completed: digests that are still missing will stay missing."""
    decision = await host.approvals.decided(skill.origin.label, skill.entry.uri)
    approval = await host.approvals.current(skill.origin.label, skill.entry.uri)
    state = state_of(skill, approval, decision)
    is_dynamic = state == "new" and not has_contents(skill.entry)
    return Standing("dynamic" if is_dynamic else state, approval, decision)


def is_unreachable(origin: Origin | None) -> bool:
    """Whether the server of an origin does not respond."""
    return origin is None or (origin.error is not None and origin.state in ("stale", "unreachable"))


def _content_changed(uri: str) -> ApprovalError:
    return ApprovalError(
        "skill-changed",
        f"{uri!r:.300} changed while you were reading; your decision was not stored",
        "review the new content, then decide",
        rule="A1",
    )


def _decided_meanwhile(uri: str, decision: LogLine | None) -> ApprovalError:
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


def findings_unconfirmed(skill: str) -> ApprovalError:
    """The error for an approval without a confirmation that the serious findings were read."""
    return ApprovalError(
        "findings-unconfirmed",
        f"{skill!r:.300} has hidden text or links out of its folder; your decision was not stored",
        "read the findings, tick the box beside the decision, and approve again",
        rule="B6",
    )


async def approve(desk: Desk, skill: NamedEntry, form: Form) -> None:
    """Approve exactly the entry that the page showed (A1). Its files may be cached from now on."""
    content, answer = form.get("fingerprint"), Answer(yes=True, by=desk.by, grants=form.grants, note=form.note)
    if not content or fingerprint_of(skill.entry) != content:
        raise _content_changed(skill.entry.uri)
    review, _ = await desk.reader.review(skill)
    if review.is_serious and form.get("read") != content:
        raise findings_unconfirmed(skill.entry.uri)
    if form.get("lasts") == "once":
        await _approve_once(desk, skill, answer)
        return
    request, token = _load_request(skill), form.get("state")
    await _decide(desk, skill, token, lambda after: desk.host.approvals.remember(request, answer, after=after))
    await desk.reader.keep(skill)


async def _approve_once(desk: Desk, skill: NamedEntry, once: Answer) -> None:
    """Answer the open questions about loading this content. Nothing is stored."""
    key = skill.origin.label, skill.entry.uri
    for question in await desk.host.store.questions(time.time()):
        is_same = question.content in ("", fingerprint_of(skill.entry))
        if question.kind == "load" and (question.origin, question.entry.uri) == key and is_same:
            await answer(desk, question, replace(once, remember=False))
            return
    raise NotFoundError("question-gone", "no program waits for an answer", "it was answered, or the program ended")


async def decline(desk: Desk, skill: NamedEntry, form: Form) -> None:
    """Decline exactly this entry, also without digests (V7), and answer open questions about it."""
    answer = Answer(yes=False, by=desk.by, note=form.note)
    if fingerprint_of_contents(claimed_contents(skill.entry)) != form.get("fingerprint"):
        raise _content_changed(skill.entry.uri)
    request, token = _load_request(skill), form.get("state")
    await _decide(desk, skill, token, lambda after: desk.host.approvals.decline(request, answer, after=after))


async def _decide(desk: Desk, skill: NamedEntry, token: str, write: Callable[[int], Awaitable[object]]) -> None:
    """Check the state and write in one step: ``write`` fails if there is a newer decision than the given one."""
    while True:
        standing = await standing_of(desk.host, skill)
        if standing.token != token:
            raise _decided_meanwhile(skill.entry.uri, standing.decision)
        try:
            await write(standing.decision.number if standing.decision else 0)
        except ApprovalError as error:
            if error.reference != "decided-meanwhile":
                raise
            continue  # the newer decision may not change the state, such as a revocation of other content
        return


async def enable(desk: Desk, skill: NamedEntry, form: Form) -> None:
    """Undo a decline: models see the skill again, and hosts ask about it again."""
    if not await desk.host.enable(f"{skill.origin.label}:{skill.entry.uri}", by=desk.by, note=form.note):
        raise _decided_meanwhile(
            skill.entry.uri, await desk.host.approvals.decided(skill.origin.label, skill.entry.uri)
        )


async def revoke(desk: Desk, origin: str, uri: str, form: Form) -> None:
    """Revoke the approval of a skill, for whatever content it is."""
    if not await desk.host.approvals.revoke(origin, uri, by=desk.by, why=ASKED_TO, note=form.note):
        raise NotFoundError("approval-unknown", "this skill is not approved", "it may have been revoked already")


async def set_grants(desk: Desk, origin: str, uri: str, form: Form) -> None:
    """A4, A5: set the tools that an approved content may use."""
    approval, grants = await desk.host.store.approval(origin, uri), form.grants
    if approval is None or approval.fingerprint != form.get("fingerprint"):
        raise _content_changed(uri)
    if Standing("approved", approval, None).token != form.get("state"):
        raise _decided_meanwhile(uri, None)
    if approval.grants == grants:
        return
    facts: dict[str, object] = {
        "given": sorted(grants - approval.grants),
        "taken": sorted(approval.grants - grants),
        "grants": sorted(grants),
        "fingerprint": approval.fingerprint,
        **note_facts(form.note),
    }
    line = LogLine("granted", origin, uri, desk.by, time.time(), facts)
    if not await desk.host.store.change_grants(approval, grants, line):
        raise _decided_meanwhile(uri, await desk.host.approvals.decided(origin, uri))


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
    return ApprovalRequest("load", skill.origin.label, skill.entry)
