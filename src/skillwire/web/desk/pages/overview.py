"""``/``: what waits for an answer, the origins, every skill with its state. Parts of it are asked for alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from skillwire.web.desk.answers import shown
from skillwire.web.desk.rows import Choice, list_origins, list_questions

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from skillwire.web.desk.desk import Desk


def routes(desk: Desk) -> list[BaseRoute]:
    """The overview, and how many questions wait."""
    host = desk.host

    async def overview(request: Request) -> Response:
        choice = Choice.of(request.query_params)
        match request.query_params.get("part"):
            case "questions":
                return shown(request, "desk/_questions.html", questions=await list_questions(host))
            case "origins":
                return shown(request, "desk/_origins.html", origins=await list_origins(host))
            case "skills" | "1":
                return shown(request, "desk/_skills.html", listing=await desk.rows.find(choice))
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
        return shown(request, "desk/_waiting.html", waiting=len(await list_questions(host)))

    return [Route("/", overview), Route("/waiting", waiting)]
