"""The one-time link: it gives this browser a cookie, once, and leads to the overview."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from starlette.routing import Route

from skillwire.web.desk.answers import goes_to, refusal
from skillwire.web.desk.guard import ENTER

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from skillwire.web.desk.sessions import Sessions

log = logging.getLogger("skillwire.desk")


def routes(sessions: Sessions, cookie: str) -> list[BaseRoute]:
    """``/enter?key=…``."""

    async def enter(request: Request) -> Response:
        if request.state.session is not None:  # the same browser again: reloaded, or the link opened twice
            return goes_to("/")
        key = request.query_params.get("key", "")
        if request.method == "HEAD":  # somebody looks whether it is there; that does not use it up
            return refusal("link-unknown", request)
        session = sessions.enter(key)
        if session is None:
            if sessions.knows(key):
                log.warning("the link was used a second time; if that was not you, end the desk with Ctrl-C")
            return refusal("link-used" if sessions.knows(key) else "link-unknown", request)
        answer = goes_to("/")
        answer.set_cookie(cookie, session.id, path="/", httponly=True, samesite="strict")
        return answer

    return [Route(ENTER, enter)]
