"""``/approvals``: all approvals with their grants, with export and import."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.routing import Route

from skillwire.host.approval_export import approvals_as_document, import_approvals, parse_approvals
from skillwire.limits import MIB
from skillwire.web.desk.guard import form_endpoint
from skillwire.web.desk.responses import HEADERS, page_response
from skillwire.web.desk.rows import Choice, pages_of
from skillwire.web.desk.urls import skill_url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from skillwire.web.desk.app import Desk
    from skillwire.web.desk.guard import Form

_LARGEST_IMPORT = 16 * MIB


def routes(desk: Desk) -> list[BaseRoute]:
    """The page, the export and the import."""
    store = desk.host.store

    async def listed(choice: Choice) -> dict[str, Any]:
        """The context of the page and of its part."""
        every = await store.approvals()
        found = [each for each in every if choice.contains_words(f"{each.origin} {each.uri} {each.by}")]
        choice = choice._replace(page=min(choice.page, pages_of(len(found))))
        context = {"approvals": choice.page_of(found), "found": len(found), "total": len(every)}
        return {**context, "choice": choice, "pages": pages_of(len(found)), "url_of": skill_url}

    async def approvals(request: Request) -> Response:
        context = await listed(Choice.of(request.query_params))
        if request.query_params.get("part"):
            return page_response(request, "desk/_approvals.html", **context)
        return await desk.show(request, "desk/approvals.html", imported=None, skipped=(), **context)

    async def export(request: Request) -> Response:  # noqa: ARG001 - the shape of a Starlette endpoint
        text = json.dumps(approvals_as_document(await store.approvals()), indent=2) + "\n"
        disposition = 'attachment; filename="skillwire-approvals.json"'
        headers = {**HEADERS, "Content-Disposition": disposition}
        return Response(text, headers=headers, media_type="application/json")

    async def import_file(request: Request, form: Form) -> Response:
        wanted = parse_approvals(form.get("export").encode(errors="replace"))
        skipped = await import_approvals(store, wanted, by=desk.by, note=form.note)
        imported, context = len(wanted) - len(skipped), await listed(Choice())
        return await desk.show(request, "desk/approvals.html", imported=imported, skipped=skipped, **context)

    return [
        Route("/approvals", approvals),
        Route("/approvals.json", export),
        Route("/approvals/import", form_endpoint(import_file, max_bytes=_LARGEST_IMPORT), methods=["POST"]),
    ]
