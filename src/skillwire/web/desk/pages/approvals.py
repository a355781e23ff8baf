"""``/approvals``: what was approved, by whom, with what was granted; the same as a file, and from one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.routing import Route

from skillwire.host.exports import approvals_as_document, import_approvals, parse_approvals
from skillwire.limits import MIB
from skillwire.web.desk.answers import HEADERS, shown
from skillwire.web.desk.forms import changing
from skillwire.web.desk.places import skill_place
from skillwire.web.desk.rows import Choice, pages_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from skillwire.web.desk.desk import Desk
    from skillwire.web.desk.forms import Form

_LARGEST_IMPORT = 16 * MIB


def routes(desk: Desk) -> list[BaseRoute]:
    """The page, the file, and the form that takes one."""
    store = desk.host.store

    async def listed(choice: Choice) -> dict[str, Any]:
        """What both the page and its part show."""
        every = await store.approvals()
        found = [each for each in every if choice.says(f"{each.origin} {each.uri} {each.by}")]
        choice = choice._replace(page=min(choice.page, pages_of(len(found))))
        shown = {"approvals": choice.cut(found), "found": len(found), "total": len(every)}
        return {**shown, "choice": choice, "pages": pages_of(len(found)), "place_of": skill_place}

    async def approvals(request: Request) -> Response:
        context = await listed(Choice.of(request.query_params))
        if request.query_params.get("part"):
            return shown(request, "desk/_approvals.html", **context)
        return await desk.show(request, "desk/approvals.html", imported=None, left_out=(), **context)

    async def export(request: Request) -> Response:  # noqa: ARG001 - the shape of a Starlette endpoint
        text = json.dumps(approvals_as_document(await store.approvals()), indent=2) + "\n"
        disposition = 'attachment; filename="skillwire-approvals.json"'
        headers = {**HEADERS, "Content-Disposition": disposition}
        return Response(text, headers=headers, media_type="application/json")

    async def take(request: Request, form: Form) -> Response:
        wanted = parse_approvals(form.get("export").encode(errors="replace"))
        left_out = await import_approvals(store, wanted, by=desk.by, note=form.note)
        imported, context = len(wanted) - len(left_out), await listed(Choice())
        return await desk.show(request, "desk/approvals.html", imported=imported, left_out=left_out, **context)

    return [
        Route("/approvals", approvals),
        Route("/approvals.json", export),
        Route("/approvals/import", changing(take, max_bytes=_LARGEST_IMPORT), methods=["POST"]),
    ]
