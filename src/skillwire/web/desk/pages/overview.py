"""``/`` and ``/origins``: open questions, origins, and every skill with its state. Parts can be fetched alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from skillwire.web.desk.responses import page_response
from skillwire.web.desk.rows import Choice, list_origins, list_questions

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from skillwire.web.desk.app import Desk


def routes(desk: Desk) -> list[BaseRoute]:
    """The overview, the number of open questions, and the page of origins."""
    host = desk.host

    async def overview(request: Request) -> Response:
        choice = Choice.of(request.query_params)
        match request.query_params.get("part"):
            case "questions":
                return page_response(request, "desk/_questions.html", questions=await list_questions(host))
            case "origins":
                return page_response(request, "desk/_origins.html", origins=await list_origins(host))
            case "skills" | "1":
                return page_response(request, "desk/_skills.html", listing=await desk.rows.find(choice))
            case _:
                return await desk.show(
                    request,
                    "desk/overview.html",
                    questions=await list_questions(host),
                    origins=await list_origins(host),
                    listing=await desk.rows.find(choice),
                    is_answered=request.query_params.get("done") == "answered",
                )

    async def waiting(request: Request) -> Response:
        return page_response(request, "desk/_waiting.html", waiting=len(await list_questions(host)))

    async def origins(request: Request) -> Response:
        found = await list_origins(host)
        if request.query_params.get("part"):
            return page_response(request, "desk/_origin_cards.html", origins=found)
        return await desk.show(request, "desk/origins.html", origins=found)

    return [Route("/", overview), Route("/waiting", waiting), Route("/origins", origins)]
