"""What every request has to be before anything looks at it.

- It names this address: a page elsewhere whose name was pointed at loopback says another one (DNS rebinding).
- It comes from a page of the desk, if it changes something: ``Origin`` has to be there, and to be ours. A request
  that only looks may leave it out, and may not say another one.
- It has the cookie, unless it is the one-time link or a file of the page's look.

Cookies do not know ports: a server of another user at another port of 127.0.0.1, if the person opens a page of it
while the desk runs, is sent ours too. Servers of the same user need no cookie: they can write the memory itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from skillwire.web.desk.answers import HEADERS, refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillwire.web.desk.sessions import Sessions

ENTER = "/enter"
_OPEN = (ENTER, "/static/")
_WRONG_HOST = "This is not the desk's address: it answers only at the one that 'skillwire ui' printed.\n"
_LOOKING = ("GET", "HEAD")
_OURS = ("same-origin", "none")  # "none": the person typed it, or opened it from outside the browser


class Guard:
    """Around the whole application. ``names`` are the hosts, with port, that the desk answers to."""

    def __init__(self, app: ASGIApp, sessions: Sessions, names: frozenset[str], cookie: str) -> None:
        self._app = app
        self._sessions = sessions
        self._names = names
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass it on with its session."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        answer = self._refused(request)
        if answer is None:
            session = self._sessions.find(request.cookies.get(self._cookie, ""))
            scope.setdefault("state", {})["session"] = session
            if session is None and not request.url.path.startswith(_OPEN):
                answer = refusal("no-session", request)
        await (answer or self._app)(scope, receive, send)

    def _refused(self, request: Request) -> Response | None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._names:
            return PlainTextResponse(_WRONG_HOST, 421, headers=HEADERS)  # no page: nothing of it could be loaded
        if request.method not in (*_LOOKING, "POST"):
            return Response(status_code=405, headers={**HEADERS, "Allow": "GET, HEAD, POST"})
        origins = request.headers.getlist("origin")
        if any(origin != f"http://{hosts[0].lower()}" for origin in origins):
            return refusal("wrong-origin", request)
        if request.method not in _LOOKING and not origins:
            return refusal("wrong-origin", request)
        return refusal("wrong-origin", request) if _is_sent_by_others(request) else None


def _is_sent_by_others(request: Request) -> bool:
    """What browsers say about who causes a request. Following a link to us from elsewhere is no harm."""
    site, mode = request.headers.get("sec-fetch-site", "none"), request.headers.get("sec-fetch-mode")
    if site in _OURS:
        return False
    return not (mode == "navigate" and request.method in _LOOKING)
