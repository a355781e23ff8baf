"""A page for people beside the protocol, behind the same guards: the hosts it answers to, and who is calling.

The page itself comes from outside (``web/``); what it may show it asks ``Skills.visible``, as the protocol does. A
program names its token in each request. A person pastes it once: then a cookie holds a random name, and the token
stays here, in memory, and is checked again with every request. So what other servers on this machine get to see
of the cookie (browsers do not tell ports apart) is no token.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.transport_security import TransportSecurityMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from skillwire.server.access import Verifier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillwire.server.access import Access

KNOWN = "skillwire.known"  # in the scope of a request: whether its caller may come in
_MOST_SESSIONS = 1000
_IDLE_SECONDS = 12 * 3600


class Sessions:
    """Tokens of people with a browser, by the name in their cookie. They end after twelve idle hours."""

    def __init__(self, access: Access) -> None:
        self._verifier = Verifier(access)
        self._tokens: OrderedDict[str, tuple[str, float]] = OrderedDict()  # used last stands last
        self.cookie = f"skillwire_{secrets.token_hex(4)}"  # several servers on one host share its cookies

    async def open(self, token: str) -> str | None:
        """A name for the cookie of whoever holds ``token``; ``None`` if nobody does."""
        if await self._verifier.verify_token(token) is None:
            return None
        name = secrets.token_urlsafe(32)
        self._tokens[name] = (token, time.monotonic())
        while len(self._tokens) > _MOST_SESSIONS:
            self._tokens.popitem(last=False)
        return name

    def close(self, name: str) -> None:
        """Forget the token."""
        self._tokens.pop(name, None)

    def name_in(self, scope: Scope) -> str:
        """The name in a request's cookie, or nothing."""
        return Request(scope).cookies.get(self.cookie, "")

    async def user(self, scope: Scope) -> AuthenticatedUser | None:
        """Whose cookie a request has."""
        name = self.name_in(scope)
        token, used = self._tokens.get(name, ("", 0.0))
        if not token:
            return None
        holder = await self._verifier.verify_token(token)
        if holder is None or time.monotonic() - used > _IDLE_SECONDS:
            self.close(name)
            return None
        self._tokens[name] = (token, time.monotonic())
        self._tokens.move_to_end(name)
        return AuthenticatedUser(holder)


class Page(NamedTuple):
    """A web application for people, at ``paths``; ``sessions`` where callers have to say who they are."""

    app: ASGIApp
    paths: Sequence[str]
    sessions: Sessions | None = None


class Guard:
    """Around a page: refuses hosts that are not ours (DNS rebinding), and knows callers as the protocol does."""

    def __init__(self, page: Page, security: TransportSecuritySettings) -> None:
        self._app, self._sessions = page.app, page.sessions
        self._security = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        refusal = await self._security.validate_request(Request(scope))
        if refusal is not None:
            await _refused(refusal.status_code)(scope, receive, send)
            return
        user = scope.get("user")
        if not isinstance(user, AuthenticatedUser) and self._sessions is not None:
            user = await self._sessions.user(scope)
        is_known = isinstance(user, AuthenticatedUser)
        scope = {**scope, KNOWN: is_known or self._sessions is None}
        before = auth_context_var.set(user if isinstance(user, AuthenticatedUser) else None)
        try:
            await self._app(scope, receive, send)
        finally:
            auth_context_var.reset(before)


def _refused(status: int) -> PlainTextResponse:
    headers = {"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff"}
    words = "this server does not go by the name in the request; --public-url gives it another one\n"
    return PlainTextResponse(words, status, headers=headers)
