"""``/skill/…``: everything about one skill, and what a person may decide about it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.routing import Route

from skillwire.errors import ApprovalError, NotFoundError, OriginError
from skillwire.skill.approval import EXECUTE, fingerprint_of
from skillwire.web.desk import deciding
from skillwire.web.desk.answers import goes_to, shown
from skillwire.web.desk.forms import changing
from skillwire.web.desk.places import action_place, raw_place, skill_place, uri_at
from skillwire.web.desk.rendering import rendered
from skillwire.web.desk.reviewing import fields_of, make_sheet, wishes_of
from skillwire.web.desk.rows import list_questions
from skillwire.web.desk.standings import mark_of, state_once_wanted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from skillwire.host.names import NamedEntry
    from skillwire.web.desk.desk import Desk
    from skillwire.web.desk.forms import Form
    from skillwire.web.desk.rows import QuestionRow

_SHOWN = ("name", "description")  # above everything else
_DONE = {
    "approved": "Approved, exactly as it is here.",
    "declined": "Declined. Models are not told of it, and nobody is asked about it, until it changes.",
    "enabled": "Enabled. It is as if it had not been declined.",
    "revoked": "The approval was taken back, with all that was granted.",
    "granted": "What it may use was changed.",
}


def routes(desk: Desk) -> list[BaseRoute]:
    """The page of a skill, and its forms."""

    async def skill(request: Request) -> Response:
        label, uri = _named(request)
        if request.query_params.get("part"):
            return await _standing(desk, request, label, uri)
        try:
            found = await desk.find(request)
        except (NotFoundError, OriginError):
            return await _unlisted(desk, request, label, uri)
        return await _show(desk, request, found)

    async def approve(request: Request, form: Form) -> Response:
        found = await desk.find(request)
        deciding.check_shown(found.entry, form.get("fingerprint"))
        await deciding.approve(desk, found, form.get("state"), form.grants, form.note)
        return _back(request, "approved")

    async def decline(request: Request, form: Form) -> Response:
        found = await desk.find(request)
        deciding.check_claims(found.entry, form.get("fingerprint"))
        await deciding.decline(desk, found, form.get("state"), form.note)
        return _back(request, "declined")

    async def enable(request: Request, form: Form) -> Response:
        await deciding.enable(desk, await desk.find(request), form.note)
        return _back(request, "enabled")

    async def revoke(request: Request, form: Form) -> Response:
        await deciding.revoke(desk, *_named(request), form.note)
        return _back(request, "revoked")

    async def grants(request: Request, form: Form) -> Response:
        await deciding.set_grants(
            desk,
            *_named(request),
            fingerprint=form.get("fingerprint"),
            shown=form.get("state"),
            grants=form.grants,
            note=form.note,
        )
        return _back(request, "granted")

    actions: dict[str, Callable[[Request, Form], Awaitable[Response]]] = {
        "approve": approve,
        "decline": decline,
        "enable": enable,
        "revoke": revoke,
        "grants": grants,
    }
    place = "{origin}/{place:path}"
    return [
        Route(f"/skill/{place}", skill),
        *(
            Route(f"/{name}/{place}", changing(_bound(desk, action)), methods=["POST"])
            for name, action in actions.items()
        ),
    ]


def _bound(
    desk: Desk, act: Callable[[Request, Form], Awaitable[Response]]
) -> Callable[[Request, Form], Awaitable[Response]]:
    """What changed while the person was reading is said on a page of its own."""

    async def bound(request: Request, form: Form) -> Response:
        try:
            return await act(request, form)
        except ApprovalError as error:
            place = skill_place(*_named(request))
            return await desk.show(request, "desk/changed.html", status=409, error=error, place=place)

    return bound


async def _show(desk: Desk, request: Request, found: NamedEntry) -> Response:
    """The page with everything."""
    sheet = await make_sheet(desk.host, desk.reader, found)
    view = "source" if request.query_params.get("view") == "source" else "rendered"
    html = await to_thread.run_sync(rendered, sheet, view)
    label, uri = found.origin.label, found.entry.uri
    return await desk.show(
        request,
        "desk/skill.html",
        sheet=sheet,
        view=view,
        html=html,
        wishes=wishes_of(sheet.review),
        fields=fields_of({key: value for key, value in found.entry.frontmatter.items() if key not in _SHOWN}),
        content=sheet.fingerprint,
        has_changed=False,
        has_moved=False,
        state=sheet.state,
        decision=sheet.decision,
        questions=await _questions(desk, found),
        execute=EXECUTE,
        done=_DONE.get(request.query_params.get("done", ""), ""),
        here=skill_place(label, uri),
        raw=raw_place(label, uri, "SKILL.md"),
        to=partial(action_place, origin=label, uri=uri),
    )


async def _questions(desk: Desk, found: NamedEntry) -> list[QuestionRow]:
    """Who waits for a decision about this skill."""
    key = found.origin.label, found.entry.uri
    return [row for row in await list_questions(desk.host) if (row.first.origin, row.first.entry.uri) == key]


async def _standing(desk: Desk, request: Request, label: str, uri: str) -> Response:
    """What became of the skill since the page was made. Nothing is asked for it."""
    try:
        found = desk.known(label, uri)
    except (NotFoundError, OriginError):
        return shown(request, "desk/_nothing.html")
    entry, query = found.entry, request.query_params
    approval = await desk.host.store.approval(label, entry.uri)
    decision = await desk.host.approvals.decided(label, entry.uri)
    state = state_once_wanted(found, approval, decision)
    return shown(
        request,
        "desk/_standing.html",
        content=query.get("fingerprint", ""),
        has_changed=fingerprint_of(entry) != query.get("fingerprint", ""),
        has_moved=mark_of(state, approval) != query.get("state", ""),
        state=state,
        decision=decision,
        questions=await _questions(desk, found),
        here=skill_place(label, entry.uri),
    )


async def _unlisted(desk: Desk, request: Request, label: str, uri: str) -> Response:
    """A skill that nobody lists any more; if it was approved, that can still be taken back."""
    approval = await desk.host.store.approval(label, uri)
    if approval is None and not request.query_params.get("done"):
        desk.known(label, uri)  # says which of the two is not known
    done = _DONE.get(request.query_params.get("done", ""), "")
    action = action_place("revoke", label, uri)
    return await desk.show(
        request, "desk/unlisted.html", label=label, uri=uri, approval=approval, action=action, done=done
    )


def _named(request: Request) -> tuple[str, str]:
    return request.path_params["origin"], uri_at(request.path_params["place"])


def _back(request: Request, done: str) -> Response:
    return goes_to(skill_place(*_named(request), done=done))
