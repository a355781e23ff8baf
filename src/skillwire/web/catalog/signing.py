"""Coming in where callers have to say who they are: a token pasted once, then a cookie.

Only a form of our own is taken (its origin is checked), the cookie is for this page alone (HttpOnly, SameSite),
where to go next is a path of ours or the beginning, and what was shown stays in no cache.
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
from skillwire.web.catalog.framed import framed
from skillwire.web.headers import PAGE_HEADERS

if TYPE_CHECKING:
    from typing import Literal

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillwire.web.catalog.site import Site

_MOST_BYTES = 32 * KIB
_OWN_PATH = re.compile(r"/(?![/\\])[^\x00-\x1f\x7f\\]{0,2000}\Z")
# Not "strict": then whoever follows a link from another site is asked for the token again. Nothing that a link
# leads to changes anything: that takes a form, by POST, whose origin is checked.
_SAME_SITE: Literal["lax"] = "lax"
_WRONG = "Nobody here has this token. Check that all of it was pasted."


class Signing:
    """The form, and what it leads to."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def ask(self, request: Request, *, wrong: str = "", to: str = "") -> Response:
        """401, and how to come in: for a person, and for a program."""
        path = f"{self._site.base}{request.url.path}"
        asked = f"{path}?{request.url.query}" if request.url.query else path
        response = framed(
            self._site,
            "catalog/sign_in.html",
            status=401,
            url=self._site.url_for(request),
            wrong=wrong,
            to=to or asked,
        )
        response.headers["WWW-Authenticate"] = "Bearer"
        return response

    async def form(self, request: Request) -> Response:
        """The form by itself, for whoever is not in yet."""
        home = f"{self._site.base}/"
        return self._go(home) if request.scope.get(KNOWN, False) else self.ask(request, to=home)

    async def sign_in(self, request: Request) -> Response:
        """Take a token, and go where the person wanted to be."""
        sessions = self._site.sessions
        if sessions is None:
            return self._go(f"{self._site.base}/")
        if not self._site.is_own_form(request):
            return self._foreign()
        form = await _form(request)
        name = await sessions.open(form.get("token", "").strip())
        if name is None:
            return self.ask(request, wrong=_WRONG, to=_own(form.get("to", ""), self._site.base))
        response = self._go(_own(form.get("to", ""), self._site.base))
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
        """Forget the token."""
        sessions = self._site.sessions
        if not self._site.is_own_form(request):
            return self._foreign()
        response = self._go(f"{self._site.base}/")
        if sessions is not None:
            sessions.close(sessions.name_in(request.scope))
            response.delete_cookie(
                sessions.cookie, path=self._site.base or "/", httponly=True, samesite=_SAME_SITE
            )
        return response

    def _go(self, to: str) -> Response:
        return RedirectResponse(to, 303, headers=dict(PAGE_HEADERS))

    def _foreign(self) -> Response:
        return framed(self._site, "catalog/foreign.html", status=403)


def unkept(app: ASGIApp) -> ASGIApp:
    """``app``, none of whose answers a browser keeps: others may sit at the same machine. The look may be kept."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Cache-Control"] = "no-store"
            await send(message)

        is_look = scope["type"] != "http" or scope["path"].startswith("/static/")
        await app(scope, receive, send if is_look else marked)

    return answer


async def _form(request: Request) -> dict[str, str]:
    """The fields of a small form; nothing of a large one."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_BYTES:
                return {}
    except ClientDisconnect:
        return {}
    try:
        fields = parse_qs(body.decode(errors="replace"), max_num_fields=8)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


def _own(to: str, base: str) -> str:
    return to if _OWN_PATH.match(to) else f"{base}/"
