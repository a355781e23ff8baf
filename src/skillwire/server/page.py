"""Access to a web page beside the protocol, with the same check of the caller's token.

The page itself is in ``web/``. It shows ``ServedSkills.visible``, as the protocol does. A program sends its token
with each request. A person enters it once: the browser gets a cookie with a random session id, and the token stays
in memory here and is checked again with every request. So the cookie contains no token: browsers send it to other
servers on the same host too, because cookies ignore ports.
"""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from anyio import sleep_forever
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.requests import Request

from skillwire.server.access import Verifier

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillwire.server.access import Access
    from skillwire.server.dialect import ServedSkills

KNOWN = "skillwire.known"  # in the scope of a request: whether its caller has access
# The prefix of all paths in the current request.
mounted_at: ContextVar[str] = ContextVar("mounted_at", default="")
_MAX_SESSIONS = 1000
_IDLE_SECONDS = 12 * 3600


class Sessions(ABC):
    """Browser sessions: who signed in, by the secret in the cookie.

    ``same_site``: with "lax", a link from another site does not require a new sign-in.
    """

    cookie: str
    same_site: ClassVar[Literal["lax", "strict"]] = "lax"
    is_required: ClassVar[bool] = True  # whether callers without a token see nothing
    ends: ClassVar[str]  # when a session ends, for the sign-in page

    @abstractmethod
    async def open(self, token: str) -> str | None:
        """Open a session for ``token``. Returns its secret, or ``None`` if the token is unknown."""

    @abstractmethod
    async def close(self, name: str) -> None:
        """End a session."""

    @abstractmethod
    async def user(self, scope: Scope) -> AuthenticatedUser | None:
        """The user of the session in the cookie of a request."""

    def name_in(self, scope: Scope) -> str:
        """The secret in the cookie of a request, or an empty text."""
        return Request(scope).cookies.get(self.cookie, "")


class TokenSessions(Sessions):
    """Sessions of one process: tokens by the session id in the cookie. They end after twelve idle hours."""

    ends = "when you sign out, after twelve hours without use, and when the server restarts"

    def __init__(self, access: Access) -> None:
        self._verifier = Verifier(access)
        self._tokens: OrderedDict[str, tuple[str, float]] = OrderedDict()  # the most recently used one is last
        self.cookie = f"skillwire_{secrets.token_hex(4)}"  # all servers on one host share its cookies

    async def open(self, token: str) -> str | None:
        """Open a session for ``token``. Returns its id, or ``None`` if the token is unknown."""
        if await self._verifier.verify_token(token) is None:
            return None
        name = secrets.token_urlsafe(32)
        self._tokens[name] = (token, time.monotonic())
        while len(self._tokens) > _MAX_SESSIONS:
            self._tokens.popitem(last=False)
        return name

    async def close(self, name: str) -> None:
        """End a session."""
        self._tokens.pop(name, None)

    async def user(self, scope: Scope) -> AuthenticatedUser | None:
        """The user of the session in the cookie of a request."""
        name = self.name_in(scope)
        token, used = self._tokens.get(name, ("", 0.0))
        if not token:
            return None
        holder = await self._verifier.verify_token(token)
        if holder is None or time.monotonic() - used > _IDLE_SECONDS:
            await self.close(name)
            return None
        self._tokens[name] = (token, time.monotonic())
        self._tokens.move_to_end(name)
        return AuthenticatedUser(holder)


class MountedPage(NamedTuple):
    """A web application at ``paths``. It has ``sessions`` if callers can sign in.

    ``drain`` ends its event streams, which would stay open forever. ``run`` is its work in the background: it is
    started with the server, and cancelled when the server stops.
    """

    app: ASGIApp
    paths: Sequence[str]
    sessions: Sessions | None = None
    drain: Callable[[], None] = lambda: None
    run: Callable[[], Coroutine[Any, Any, None]] = sleep_forever


class SourceStatus(NamedTuple):
    """The state of one upstream of a gateway. It has no address: clients must not learn it (R4)."""

    label: str
    state: str
    seen_at: float | None


class PageMaker(Protocol):
    """Makes the page of a server, such as ``skillwire.catalog_page``.

    The protocol is at ``path`` of the application. ``public_url`` is its address for clients, if it is known.
    """

    def __call__(
        self,
        skills: ServedSkills,
        *,
        name: str,
        path: str,
        public_url: str | None,
        access: Access | None,
        sources: Callable[[], Sequence[SourceStatus]] | None = None,
    ) -> MountedPage:
        """The page for ``skills``. ``sources`` returns the state of the upstreams of a gateway."""
        ...


def caller_name() -> str:
    """The name of the caller of the current request, from the token; empty without one."""
    user = auth_context_var.get()
    return "" if user is None else user.access_token.subject or user.access_token.client_id


class Guard:
    """Wraps a page: identifies callers as the protocol does. The application around it has checked host names."""

    def __init__(self, page: MountedPage) -> None:
        self._app, self._sessions = page.app, page.sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        user = scope.get("user")
        if not isinstance(user, AuthenticatedUser) and self._sessions is not None:
            user = await self._sessions.user(scope)
        is_known = isinstance(user, AuthenticatedUser)
        is_open = self._sessions is None or not self._sessions.is_required
        scope = {**scope, KNOWN: is_known or is_open}
        mounted_at.set(str(scope.get("root_path", "")).rstrip("/"))  # each request has its own context
        before = auth_context_var.set(user if isinstance(user, AuthenticatedUser) else None)
        try:
            await self._app(scope, receive, send)
        finally:
            auth_context_var.reset(before)
