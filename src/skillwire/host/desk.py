"""Questions to a person at the desk: in the browser (``skillwire ui``) or on another terminal (A1–A5, V7, O3).

A program without a person puts its question into a store that both use, and waits for the answer there.

- A question expires a few seconds after its program ends. A program that stops waiting withdraws its question.
- An approval or denial of content, however it is given, answers every question about that content, and is stored
  before any program receives it. Other answers are for one question only.
- Declined content is refused without a question until a person enables or approves it.
"""

from __future__ import annotations

import secrets
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import anyio

from skillwire.errors import ApprovalError
from skillwire.host.approvals import Answer, ApprovalRequest, Approvals, review_command
from skillwire.host.state import open_store
from skillwire.skill.review import review_entry
from skillwire.store.place import USER
from skillwire.store.records import Answered, Question
from skillwire.store.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from skillwire.host.approvals import AsyncAsk, RequestKind

LIVES_SECONDS = 15.0
_RENEW_SECONDS = 5.0
_LOOK_SECONDS = 0.25
_MOST_LINES = 400
_LONGEST_LINE = 1000


def ask_at_desk(
    place: Store | str | Path = USER,
    *,
    by: str = "agent",
    timeout: float | None = None,
    when_asked: Callable[[Question], None] | None = None,
) -> AsyncAsk:
    """An ``ask`` function for a host: it puts its questions into a store, given or in the state folder ``place``.

    ``by`` names the program that asks. Without ``timeout``, in seconds, it waits without limit. ``when_asked`` is
    called when the question can be answered.
    """

    async def ask(request: ApprovalRequest) -> Answer:
        async with _opened(place) as store:
            if request.kind == "load":
                await Approvals(store).refuse_if_declined(request.origin, request.entry)
            question = question_of(request, by)
            await store.put_question(question)
            answered: Answered | None = None
            try:
                if when_asked is not None:
                    when_asked(question)
                with anyio.move_on_after(timeout):
                    await _wait(store, question)
            finally:
                with anyio.CancelScope(shield=True):  # an abandoned question must not be answered later
                    answered = await store.withdraw_question(question.id)
        if answered is None:
            raise _no_answer(request, timeout)
        return Answer(
            answered.yes,
            answered.by,
            answered.remember,
            answered.grants,
            note=answered.note,
            recorded=answered.recorded,
        )

    return ask


def question_of(request: ApprovalRequest, by: str, *, seconds: float = LIVES_SECONDS) -> Question:
    """The question for a request. It expires after ``seconds`` unless it is renewed."""
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
        address=request.address,
    )


def request_of(question: Question) -> ApprovalRequest:
    """The request of a stored question, to show it to a person."""
    review = review_entry(question.entry)
    kind = cast("RequestKind", question.kind)
    return ApprovalRequest(
        kind,
        question.origin,
        question.entry,
        replace(review, hidden=tuple(dict.fromkeys([*review.hidden, *question.hidden]))),
        diff=question.diff,
        target=question.target,
        lasts=question.lasts,
        address=question.address,
    )


async def give_answer(store: Store, question: Question, answer: Answer) -> bool:
    """Answer an open question; ``False`` if it was answered already or its program does not wait any more.

    A lasting answer about loading a skill is about its content, and answers every question about that content.
    """
    if question.kind != "load" or not answer.remember or not question.content:
        # The program that asked fetches the content, and stores the approval itself.
        answered = Answered(
            answer.yes, answer.by, time.time(), answer.grants, remember=answer.remember, note=answer.note
        )
        return await store.answer_question(question.id, answered)
    approvals, request = Approvals(store), request_of(question)
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
            continue  # a decision about this content has answered the question, and the check above finds that
        return True


async def _wait(store: Store, question: Question) -> None:
    """Wait for the answer, and renew the question. The answer is read only if the store changed."""
    seen, renew_at = -1, time.monotonic() + _RENEW_SECONDS
    while True:
        version = await store.version()
        if version != seen and await store.answer_to(question.id) is not None:
            return
        seen = version
        if time.monotonic() >= renew_at:
            until = time.time() + LIVES_SECONDS
            if not await store.renew_question(question.id, until):  # it expired while the machine was suspended
                await store.put_question(replace(question, asked_at=time.time(), waits_until=until))
            renew_at = time.monotonic() + _RENEW_SECONDS
        await anyio.sleep(_LOOK_SECONDS)


def _no_answer(request: ApprovalRequest, timeout: float | None) -> ApprovalError:
    command = f", or: {review_command(request.origin, request.entry)}" if request.kind == "load" else ""
    return ApprovalError(
        "no-answer",
        f"{request.entry.uri!r:.300} from {request.origin!r} is not approved ({request.kind}): no answer within"
        f" {timeout:g} seconds",
        f"run: skillwire ui{command}",
        rule="A1",
    )


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
