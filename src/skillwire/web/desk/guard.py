"""Admission to the desk: the checks of every request, the one-time link, sessions and forms.

- The ``Host`` header must be an address of the desk. This stops DNS rebinding.
- A request that changes something must have an ``Origin`` header of the desk. Other requests may omit it, but may
  not have another origin.
- The request must have the session cookie, except for the one-time link and static files.
- Every form has the token of its session.

The link works once. It sets a cookie that scripts cannot read and other sites cannot send. Sessions exist only in
memory. Cookies do not distinguish ports: a server of another user on another port of 127.0.0.1 receives the cookie
if the user opens one of its pages while the desk runs. Servers of the same user need no cookie, because they can
write to the store directly.
"""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from skillwire.errors import FormatError, LimitError
from skillwire.web.desk.responses import HEADERS, page_response, redirect
from skillwire.web.theme import read_form

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

ENTER = "/enter"
_OPEN = (ENTER, "/static/")
_WRONG_HOST = "Wrong address: use the link that 'skillwire ui' printed.\n"
_SAFE_METHODS = ("GET", "HEAD")
_OURS = ("same-origin", "none")  # "none": typed by the user, or opened from outside the browser
log = logging.getLogger("skillwire.desk")
_MAX_FIELDS = 1000
_MAX_NOTE = 2000
_MAX_NAME = 300


class RefusalPage(NamedTuple):
    """A page that refuses a request: the reason, and what to do."""

    status: int
    title: str
    text: str


REFUSALS = {
    "no-session": RefusalPage(
        401,
        "Open the desk with its link",
        "This browser has no session, or the desk was restarted. Use the link that “skillwire ui” printed.",
    ),
    "link-used": RefusalPage(
        410,
        "This link was already used",
        "A link opens the desk once, in one browser. If you used it, go back to that browser. If you did not,"
        " another person has access to your desk: stop “skillwire ui” with Ctrl-C, check the log, and start it"
        " again for a new link.",
    ),
    "link-unknown": RefusalPage(
        403,
        "Invalid link",
        "The link is incomplete, or its desk has ended. Use the link that “skillwire ui” printed last.",
    ),
    "wrong-origin": RefusalPage(
        403,
        "Request from another site",
        "The desk accepts requests only from its own pages. Nothing was changed.",
    ),
    "wrong-token": RefusalPage(
        403,
        "This form belongs to another session",
        "Nothing was changed. Go back, reload the page, and try again.",
    ),
    "form-too-large": RefusalPage(413, "The form is too large", "Nothing was changed. Send less text."),
    "too-many-streams": RefusalPage(503, "Too many open pages", "Close some of them."),
}


def refusal(kind: str, request: Request) -> Response:
    """The page for one of ``REFUSALS``."""
    reason = REFUSALS[kind]
    return page_response(request, "message.html", status=reason.status, title=reason.title, text=reason.text)


class DeskGuard:
    """Middleware around the whole application. ``names`` are the accepted values of ``Host``."""

    def __init__(self, app: ASGIApp, sessions: DeskSessions, names: frozenset[str], cookie: str) -> None:
        self._app = app
        self._sessions = sessions
        self._names = names
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on with its session."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        response = self._refused(request)
        if response is None:
            token = self._sessions.token(request.cookies.get(self._cookie, ""))
            scope.setdefault("state", {})["csrf"] = token
            if not token and not request.url.path.startswith(_OPEN):
                response = refusal("no-session", request)
        await (response or self._app)(scope, receive, send)

    def _refused(self, request: Request) -> Response | None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._names:
            # Plain text, because a page could not load its static files.
            return PlainTextResponse(_WRONG_HOST, 421, headers=HEADERS)
        if request.method not in (*_SAFE_METHODS, "POST"):
            return Response(status_code=405, headers={**HEADERS, "Allow": "GET, HEAD, POST"})
        origins = request.headers.getlist("origin")
        if any(origin != f"http://{hosts[0].lower()}" for origin in origins):
            return refusal("wrong-origin", request)
        if request.method not in _SAFE_METHODS and not origins:
            return refusal("wrong-origin", request)
        # Another site may link to the desk, but not send other requests.
        is_link = request.headers.get("sec-fetch-mode") == "navigate" and request.method in _SAFE_METHODS
        if request.headers.get("sec-fetch-site", "none") not in _OURS and not is_link:
            return refusal("wrong-origin", request)
        return None


class DeskSessions:
    """The one-time key, and the sessions that started with it: form tokens by the id in the cookie."""

    def __init__(self) -> None:
        self.key = secrets.token_urlsafe(32)
        self.is_used = False
        self._tokens: dict[str, str] = {}

    def enter(self, key: str) -> str:
        """Start a session for the first use of the key. Its id; empty for other keys and later uses."""
        if self.is_used or not self.knows(key):
            return ""
        self.is_used, identity = True, secrets.token_urlsafe(32)
        self._tokens[identity] = secrets.token_urlsafe(32)
        return identity

    def knows(self, key: str) -> bool:
        """Whether ``key`` is the key of this desk, used or not."""
        return secrets.compare_digest(key.encode(errors="replace"), self.key.encode())

    def token(self, identity: str) -> str:
        """The token of the forms of a session; empty if there is no such session."""
        return self._tokens.get(identity, "")


def login_route(sessions: DeskSessions, cookie: str) -> Route:
    """``/enter?key=…``: the one-time link. It sets the cookie, once, and leads to the overview."""

    async def enter(request: Request) -> Response:
        if request.state.csrf:  # the same browser opened the link again
            return redirect("/")
        key = request.query_params.get("key", "")
        if request.method == "HEAD":  # a preview of the link must not use it up
            return refusal("link-unknown", request)
        session = sessions.enter(key)
        if not session:
            if sessions.knows(key):
                log.warning("the link was used a second time; if that was not you, stop the desk with Ctrl-C")
            return refusal("link-used" if sessions.knows(key) else "link-unknown", request)
        response = redirect("/")
        response.set_cookie(cookie, session, path="/", httponly=True, samesite="strict")
        return response

    return Route(ENTER, enter)


class Form:
    """The fields of a submitted form."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def get(self, name: str) -> str:
        """The first value of a field; empty if it is missing."""
        return next((value for key, value in self._pairs if key == name), "")

    def all(self, name: str) -> list[str]:
        """All values of a field."""
        return [value for key, value in self._pairs if key == name]

    @property
    def note(self) -> str:
        """The note of the user, as one line."""
        return " ".join(self.get("note").split())[:_MAX_NOTE]

    @property
    def grants(self) -> frozenset[str]:
        """The ticked and typed grants; ``FormatError`` for an invalid tool name."""
        words = [word for word in (*self.all("grant"), *self.get("more").splitlines()) if word.strip()]
        if any(not word.isprintable() or len(word) > _MAX_NAME for word in words):
            raise FormatError("argument-invalid", "invalid tool name", "enter one tool name per line")
        return frozenset(word.strip() for word in words)


def form_endpoint(
    act: Callable[[Request, Form], Awaitable[Response]], *, max_bytes: int = 64 * 1024
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint for a form. It refuses forms without the token of the session."""

    async def endpoint(request: Request) -> Response:
        try:
            form = Form(await read_form(request, max_bytes, _MAX_FIELDS))
        except LimitError:
            return refusal("form-too-large", request)
        token, sent = request.state.csrf.encode(), form.get("csrf").encode(errors="replace")
        if not token or not secrets.compare_digest(token, sent):
            return refusal("wrong-token", request)
        return await act(request, form)

    return endpoint
