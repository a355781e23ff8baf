"""Sign-in for servers with access control: a token pasted once, then a session cookie.

Only forms of this page are accepted (``Origin`` is checked). The cookie is ``HttpOnly`` and ``SameSite``. After
sign-in the browser goes to a path of this page only, and responses are not cached.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response

from skillwire.limits import KIB
from skillwire.server.page import KNOWN
from skillwire.web.headers import PAGE_HEADERS

if TYPE_CHECKING:
    from typing import Literal

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillwire.web.catalog.site import Site

_MAX_BYTES = 32 * KIB
_OWN_PATH = re.compile(r"/(?![/\\])[^\x00-\x1f\x7f\\]{0,2000}\Z")
# Not "strict", because a link from another site would then require a new sign-in. Links change nothing: only forms
# do, by POST, and their origin is checked.
_SAME_SITE: Literal["lax"] = "lax"
_WRONG = "Token not recognised. Check that you pasted all of it."


class SignIn:
    """The sign-in form and its actions."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def ask(self, request: Request, *, wrong: str = "", to: str = "") -> Response:
        """401 with the sign-in form, and instructions for programs."""
        path = f"{self._site.base}{request.url.path}"
        asked = f"{path}?{request.url.query}" if request.url.query else path
        response = self._site.page(
            "catalog/sign_in.html",
            status=401,
            url=self._site.url_for(request),
            wrong=wrong,
            to=to or asked,
        )
        response.headers["WWW-Authenticate"] = "Bearer"
        return response

    async def form(self, request: Request) -> Response:
        """The sign-in page; callers who are signed in go to the first page."""
        home = f"{self._site.base}/"
        return self._go(home) if request.scope.get(KNOWN, False) else self.ask(request, to=home)

    async def submit(self, request: Request) -> Response:
        """Check the token, start a session, and go to the requested page."""
        sessions = self._site.sessions
        if sessions is None:
            return self._go(f"{self._site.base}/")
        if not self._site.is_own_form(request):
            return self._foreign_form()
        form = await _form(request)
        name = await sessions.open(form.get("token", "").strip())
        if name is None:
            return self.ask(request, wrong=_WRONG, to=_own_path(form.get("to", ""), self._site.base))
        response = self._go(_own_path(form.get("to", ""), self._site.base))
        response.set_cookie(
            sessions.cookie,
            name,
            path=self._site.base or "/",
            httponly=True,
            samesite=_SAME_SITE,
            secure=self._site.url_for(request).startswith("https:"),
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        sessions = self._site.sessions
        if not self._site.is_own_form(request):
            return self._foreign_form()
        response = self._go(f"{self._site.base}/")
        if sessions is not None:
            sessions.close(sessions.name_in(request.scope))
            response.delete_cookie(
                sessions.cookie, path=self._site.base or "/", httponly=True, samesite=_SAME_SITE
            )
        return response

    def _go(self, to: str) -> Response:
        return RedirectResponse(to, 303, headers=dict(PAGE_HEADERS))

    def _foreign_form(self) -> Response:
        return self._site.page("catalog/foreign_form.html", status=403)


def no_store(app: ASGIApp) -> ASGIApp:
    """``app`` with ``no-store`` on every response except static files: others may use the same machine."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Cache-Control"] = "no-store"
            await send(message)

        is_static = scope["type"] != "http" or scope["path"].startswith("/static/")
        await app(scope, receive, send if is_static else marked)

    return answer


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form; none if it is too large or invalid."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_BYTES:
                return {}
    except ClientDisconnect:
        return {}
    try:
        fields = parse_qs(body.decode(errors="replace"), max_num_fields=8)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


def _own_path(to: str, base: str) -> str:
    return to if _OWN_PATH.match(to) else f"{base}/"
