"""Asking a person who is elsewhere: at the desk (``skillwire ui``), or on another command line (A1–A5, V7, O3).

Whoever runs without a person puts a question into the store that both use, and waits until it is answered there.

- A question lives as long as its asker, and a few seconds more. Whoever stops waiting takes it back.
- A yes or no to a content, given in whatever way, answers every question about it, and stands in the store before
  anybody hears of it. Other answers are for the one who asked.
- A content that a person declined is refused, and not asked about again, until a person enables or approves it.
"""

from __future__ import annotations

import secrets
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import anyio

from skillwire.errors import ApprovalError
from skillwire.host.approvals import (
    Answer,
    ApprovalRequest,
    Approvals,
    Policy,
    cannot_ask,
    refuse_if_declined,
    review_command,
)
from skillwire.host.skill_host import DEFAULT_STATE, open_store
from skillwire.skill.review import review_entry
from skillwire.store.contract import Answered, Question, Store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from skillwire.host.approvals import Ask, RequestKind

LIVES_SECONDS = 15.0
_RENEW_SECONDS = 5.0
_LOOK_SECONDS = 0.25
_MOST_LINES = 400
_LONGEST_LINE = 1000


def ask_at_desk(
    place: Store | str | Path = DEFAULT_STATE,
    *,
    by: str = "agent",
    patience: float | None = None,
    when_asked: Callable[[Question], None] | None = None,
) -> Ask:
    """Ask whoever looks at the questions of a store: that one, or the one of the state at ``place``.

    ``by`` tells them who asks. Without ``patience``, in seconds, a question waits for ever. ``when_asked`` is
    called once the question can be answered.
    """

    async def ask(request: ApprovalRequest) -> Answer:
        async with _opened(place) as store:
            if request.kind == "load":
                await refuse_if_declined(store, request.origin, request.entry)
            question = question_of(request, by)
            await store.put_question(question)
            return await _answer_to(store, question, patience, when_asked)

    return ask


def question_of(request: ApprovalRequest, by: str, *, seconds: float = LIVES_SECONDS) -> Question:
    """A question that lives for so long, unless it is renewed."""
    now = time.time()
    return Question(
        secrets.token_hex(8),
        request.kind,
        request.origin,
        request.entry,
        by,
        now,
        now + seconds,
        target=request.target,
        hidden=tuple(find._replace(place=find.place[:_LONGEST_LINE]) for find in request.summary.hidden),
        diff=tuple(line[:_LONGEST_LINE] for line in request.diff)[:_MOST_LINES],
        lasts=request.lasts,
    )


def request_of(question: Question) -> ApprovalRequest:
    """What was asked, for whoever shows it to a person."""
    summary = review_entry(question.entry)
    summary = replace(summary, hidden=tuple(dict.fromkeys([*summary.hidden, *question.hidden])))
    kind = cast("RequestKind", question.kind)
    return ApprovalRequest(
        kind,
        question.origin,
        question.entry,
        summary,
        diff=question.diff,
        target=question.target,
        lasts=question.lasts,
    )


async def give_answer(store: Store, question: Question, answer: Answer) -> bool:
    """A person's answer to an open question; ``False`` if somebody was first, or whoever asked is gone.

    An answer about a skill that is to be remembered is about the content: it answers whoever asks.
    """
    if question.kind != "load" or not answer.remember or not question.content:  # who asked fetches, and remembers
        return await store.answer_question(question.id, _answered(answer))
    approvals, request = Approvals(store, Policy(), cannot_ask), request_of(question)
    decide = approvals.remember if answer.yes else approvals.decline
    while True:
        decided = await approvals.decided(question.origin, question.entry.uri)
        if all(each.id != question.id for each in await store.questions(time.time())):
            return False
        try:
            await decide(request, answer, after=decided.number if decided else 0)
        except ApprovalError as error:
            if error.reference != "decided-meanwhile":
                raise
            continue  # if that was about this content, the question has its answer
        return True


async def _answer_to(
    store: Store, question: Question, patience: float | None, when_asked: Callable[[Question], None] | None
) -> Answer:
    """The answer, or ``ApprovalError``. However this ends, nobody can answer afterwards."""
    answered: Answered | None = None
    try:
        if when_asked is not None:
            when_asked(question)
        with anyio.move_on_after(patience):
            await _wait(store, question)
    finally:
        with anyio.CancelScope(shield=True):
            answered = await store.withdraw_question(question.id)
    if answered is None:
        raise _unanswered(request_of(question), patience)
    return Answer(
        answered.yes,
        answered.by,
        answered.remember,
        answered.grants,
        note=answered.note,
        recorded=answered.recorded,
    )


async def _wait(store: Store, question: Question) -> None:
    """Until there is an answer. The store is only asked for it when something in it changed."""
    seen, renew_at = -1, time.monotonic() + _RENEW_SECONDS
    while True:
        version = await store.version()
        if version != seen and await store.answer_to(question.id) is not None:
            return
        seen = version
        if time.monotonic() >= renew_at:
            await _renew(store, question)
            renew_at = time.monotonic() + _RENEW_SECONDS
        await anyio.sleep(_LOOK_SECONDS)


async def _renew(store: Store, question: Question) -> None:
    until = time.time() + LIVES_SECONDS
    if not await store.renew_question(question.id, until):  # the machine slept, and somebody tidied up
        await store.put_question(replace(question, asked_at=time.time(), waits_until=until))


def _unanswered(request: ApprovalRequest, patience: float | None) -> ApprovalError:
    command = f", or: {review_command(request.origin, request.entry)}" if request.kind == "load" else ""
    return ApprovalError(
        "no-answer",
        f"{request.entry.uri!r:.300} from {request.origin!r} needs a person's yes ({request.kind}), and nobody"
        f" answered within {patience:g} seconds",
        f"run: skillwire ui{command}",
        rule="A1",
    )


def _answered(answer: Answer) -> Answered:
    return Answered(answer.yes, answer.by, time.time(), answer.grants, remember=answer.remember, note=answer.note)


@asynccontextmanager
async def _opened(place: Store | str | Path) -> AsyncGenerator[Store]:
    if isinstance(place, Store):
        yield place
        return
    store = await open_store(place)
    try:
        yield store
    finally:
        await store.close()
