"""``/origins``: where skills come from and how that is doing; what was left out, and which commands change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from skillwire.web.desk.answers import shown
from skillwire.web.desk.rows import list_origins

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from skillwire.web.desk.desk import Desk


def routes(desk: Desk) -> list[BaseRoute]:
    """The page of origins."""

    async def origins(request: Request) -> Response:
        found = await list_origins(desk.host)
        if request.query_params.get("part"):
            return shown(request, "desk/_origin_cards.html", origins=found)
        return await desk.show(request, "desk/origins.html", origins=found)

    return [Route("/origins", origins)]
