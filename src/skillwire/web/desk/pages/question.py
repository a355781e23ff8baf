"""``/question/<id>``: what a running agent or gateway wants to know, and the answer.

Whether it may read a skill is decided on the skill's own page, where the host of this desk has the same content,
unless the person says yes for this one time only.
Everything else is decided here: another host's skill, tools, code, reads of other origins, and what cannot be
verified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from skillwire.errors import FormatError, SkillwireError
from skillwire.host.approvals import Answer
from skillwire.skill.approval import EXECUTE, fingerprint_of, has_contents
from skillwire.skill.review import review_entry
from skillwire.web.desk import deciding
from skillwire.web.desk.answers import goes_to
from skillwire.web.desk.forms import changing
from skillwire.web.desk.places import path_inside, skill_place
from skillwire.web.desk.reviewing import wishes_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from skillwire.store.contract import Question
    from skillwire.web.desk.desk import Desk
    from skillwire.web.desk.forms import Form


def routes(desk: Desk) -> list[BaseRoute]:
    """The page of a question, and the form on it."""

    async def question(request: Request) -> Response:
        asked = await desk.question(request.path_params["id"])
        here = await _known_here(desk, asked)
        wants_once = request.query_params.get("once") == "yes"
        if asked.kind == "load" and here == "same" and not wants_once:
            return goes_to(skill_place(asked.origin, asked.entry.uri))
        review = review_entry(asked.entry)
        return await desk.show(
            request,
            "desk/question.html",
            question=asked,
            review=review,
            wishes=wishes_of(review),
            hidden=tuple(dict.fromkeys([*review.hidden, *asked.hidden])),
            files=[(path_inside(asked.entry.uri, file.uri), file.size) for file in asked.entry.files],
            offered=(*review.tools, EXECUTE) if asked.kind == "load" else (),
            execute=EXECUTE,
            here=here,
            wants_once=wants_once,
            place=skill_place(asked.origin, asked.entry.uri),
        )

    async def answer(request: Request, form: Form) -> Response:
        asked = await desk.question(request.path_params["id"])
        said = form.get("answer")
        if said not in ("yes", "no"):
            raise FormatError("argument-invalid", "the answer is neither yes nor no", "use the buttons")
        remember = form.get("once") != "yes" if asked.kind == "load" else form.get("remember") == "yes"
        answer = Answer(said == "yes", desk.by, remember, form.grants if said == "yes" else frozenset(), form.note)
        await deciding.answer(desk, asked, answer)
        return goes_to("/?done=answered")

    return [Route("/question/{id}", question), Route("/question/{id}", changing(answer), methods=["POST"])]


async def _known_here(desk: Desk, question: Question) -> str:
    """Whether this desk's host knows the skill, with the ``same`` content or with an ``other``; else empty.

    ``unsure`` if its origin lists too little of it to tell, and cannot be asked for more now.
    """
    try:
        entry = (await desk.wanted(question.origin, question.entry.uri)).entry
    except SkillwireError:
        return ""
    if question.kind == "load" and not question.content:  # it was asked before its files were known (V5)
        return "same" if has_contents(entry) else "unsure"
    if fingerprint_of(entry) == question.content:
        return "same"
    return "other" if has_contents(entry) or not question.content else "unsure"
