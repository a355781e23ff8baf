"""``/question/<id>``: a question of a running agent or gateway, and its answer.

A question about reading a skill is answered on the page of the skill, if this desk knows the same content and the
user does not allow it only once. Other questions are answered here: skills that this desk does not know, tools,
code, reads of other origins, and unverifiable content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from skillwire.errors import FormatError, SkillwireError
from skillwire.host.approvals import Answer
from skillwire.skill.approval import EXECUTE, fingerprint_of, has_contents
from skillwire.skill.review import review_entry
from skillwire.web.desk import decisions
from skillwire.web.desk.guard import form_endpoint
from skillwire.web.desk.responses import redirect
from skillwire.web.desk.review import other_requests
from skillwire.web.desk.urls import path_in_skill, skill_url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from skillwire.store.contract import Question
    from skillwire.web.desk.app import Desk
    from skillwire.web.desk.guard import Form


def routes(desk: Desk) -> list[BaseRoute]:
    """The page of a question, and its form."""

    async def question(request: Request) -> Response:
        asked = await desk.open_question(request.path_params["id"])
        here = await _known_content(desk, asked)
        wants_once = request.query_params.get("once") == "yes"
        if asked.kind == "load" and here == "same" and not wants_once:
            return redirect(skill_url(asked.origin, asked.entry.uri))
        review = review_entry(asked.entry)
        return await desk.show(
            request,
            "desk/question.html",
            question=asked,
            review=review,
            requests=other_requests(review),
            hidden=tuple(dict.fromkeys([*review.hidden, *asked.hidden])),
            files=[(path_in_skill(asked.entry.uri, file.uri), file.size) for file in asked.entry.files],
            offered=(*review.tools, EXECUTE) if asked.kind == "load" else (),
            execute=EXECUTE,
            here=here,
            wants_once=wants_once,
            url=skill_url(asked.origin, asked.entry.uri),
        )

    async def answer(request: Request, form: Form) -> Response:
        asked = await desk.open_question(request.path_params["id"])
        choice = form.get("answer")
        if choice not in ("yes", "no"):
            raise FormatError("argument-invalid", "invalid answer", "use the buttons")
        remember = form.get("once") != "yes" if asked.kind == "load" else form.get("remember") == "yes"
        answer = Answer(
            choice == "yes", desk.by, remember, form.grants if choice == "yes" else frozenset(), form.note
        )
        await decisions.answer(desk, asked, answer)
        return redirect("/?done=answered")

    return [Route("/question/{id}", question), Route("/question/{id}", form_endpoint(answer), methods=["POST"])]


async def _known_content(desk: Desk, question: Question) -> str:
    """``same`` or ``other`` if the desk knows the skill with the same or another content; empty if not at all.

    ``unsure`` if the entry is incomplete and its server does not respond.
    """
    try:
        entry = (await desk.find_skill(question.origin, question.entry.uri)).entry
    except SkillwireError:
        return ""
    if question.kind == "load" and not question.content:  # the question was asked before the files were known (V5)
        return "same" if has_contents(entry) else "unsure"
    if fingerprint_of(entry) == question.content:
        return "same"
    return "other" if has_contents(entry) or not question.content else "unsure"
