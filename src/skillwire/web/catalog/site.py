"""The catalog page of a server: its settings and addresses, sign-in, and its application.

The pages are not imported before the first request, because that takes a while. On a server with access control a
token is pasted once, and then there is a session cookie, which is ``HttpOnly`` and ``SameSite``. It may be
sent with a link from another site, because links change nothing: only forms do, and only those of this page are
accepted (``Origin`` is checked). After sign-in the browser goes to a path of this page only, and responses are not
cached.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from starlette.datastructures import MutableHeaders
from starlette.responses import RedirectResponse, Response

from skillwire.errors import FormatError, LimitError
from skillwire.limits import KIB
from skillwire.server.dialect import MCP_PATH
from skillwire.server.http import route_path
from skillwire.server.page import KNOWN, MountedPage, TokenSessions, caller_name, mounted_at
from skillwire.web.events import EventStreams
from skillwire.web.theme import PAGE_HEADERS, page, prepare, read_form

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillwire.server.access import Access
    from skillwire.server.dialect import ServedSkills
    from skillwire.server.page import Sessions, SourceStatus

    Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

_MAX_BYTES = 32 * KIB
_MAX_FIELDS = 8
_OWN_PATH = re.compile(r"/(?![/\\])[^\x00-\x1f\x7f\\]{0,2000}\Z")
_WRONG = "Token not recognised. Check that you pasted all of it."
_PAGES = ("/search", "/connect", "/events", "/sign-in", "/sign-out")
_FOLDERS = ("/skill", "/entry", "/file", "/raw", "/zip", "/static")
PAGES = (("skills", "/", "Skills"), ("connect", "/connect", "Connect"), ("problems", "/problems", "Problems"))
_HOST = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?\Z")


@dataclass(frozen=True, slots=True)
class Site:
    """A server and its page."""

    skills: ServedSkills
    name: str
    path: str = MCP_PATH  # of the protocol
    public_url: str | None = None  # of the protocol, for clients
    sessions: Sessions | None = None
    unlisted: tuple[str, ...] = ()  # globs of paths
    sources: Callable[[], Sequence[SourceStatus]] | None = None  # the upstreams of a gateway
    streams: EventStreams = field(default_factory=EventStreams)
    pages: Sequence[tuple[str, str, str]] = PAGES  # in the navigation: name, path and title
    caller_pages: Sequence[tuple[str, str, str]] = ()  # those for callers who are signed in

    @property
    def base(self) -> str:
        """The prefix of every path. The page is beside the protocol, also behind a proxy and if it is mounted."""
        if self.public_url is None:
            return mounted_at.get()
        path = urlsplit(self.public_url).path
        return path.removesuffix(self.path) if path.endswith(self.path) else ""

    @property
    def needs_token(self) -> bool:
        """Whether callers need a token."""
        return self.sessions is not None and self.sessions.is_required

    def url_for(self, request: Request) -> str:
        """The URL of the protocol as the caller reaches it."""
        host = request.headers.get("host", "")
        if self.public_url:
            return self.public_url
        return f"{request.url.scheme}://{host if _HOST.match(host) else 'localhost'}{self.base}{self.path}"

    def is_own_form(self, request: Request) -> bool:
        """Whether a page of this site sent the form (CSRF)."""
        origin = request.headers.get("origin", "")
        public = urlsplit(self.public_url or "")
        ours = {f"{scheme}://{request.headers.get('host', '')}" for scheme in ("http", "https")}
        if self.public_url:
            ours.add(f"{public.scheme}://{public.netloc}")
        return origin in ours and request.headers.get("sec-fetch-site", "same-origin") == "same-origin"

    def refuse_form(self) -> Response:
        """The page for a form that no page of this site sent."""
        text = (
            "If the server is behind a proxy, start it with --public-url. Otherwise reload the page and try again."
        )
        error = FormatError("form-foreign", "this form was not sent by a page of this server", text)
        action = (f"{self.base}/", "Reload the page")
        return self.page("message.html", status=403, title="Refused", error=error, action=action)

    def page(self, template: str, *, block: str = "", status: int = 200, **context: Any) -> Response:
        """Render ``template``, or one of its blocks, as a page of this site."""
        caller = caller_name() if self.sessions is not None else ""
        common = {
            "base": self.base,
            "frame": "catalog/frame.html",
            "site": self.name,
            "about": (self.skills.server.instructions or "").strip(),
            "query": "",
            "pages": (*self.pages, *(self.caller_pages if caller else ())),
            "needs_token": self.needs_token,
            "sessions": self.sessions,
            "caller": caller,
        }
        return page(template, block=block, status=status, **{**common, **context})


def catalog_page(
    skills: ServedSkills,
    *,
    name: str,
    path: str = MCP_PATH,
    public_url: str | None = None,
    access: Access | None = None,
    sources: Callable[[], Sequence[SourceStatus]] | None = None,
    unlisted: Sequence[str] = (),
) -> MountedPage:
    """The page of ``skills`` for a server at ``path``, or at ``public_url`` behind a proxy.

    ``unlisted`` are globs of paths that no page mentions, also if there is no skill at a path.
    """
    sessions = None if access is None else TokenSessions(access)
    site = Site(skills, name, path, public_url, sessions, tuple(unlisted), sources)

    def create() -> tuple[ASGIApp, Work]:
        from skillwire.web.catalog.pages import application

        prepare("catalog/")
        return application(site)

    app = LazyApplication(create)
    return MountedPage(app, paths_of("/problems"), sessions, site.streams.end, app.run)


def paths_of(*more: str) -> Sequence[str]:
    """The paths of an application with ``more`` pages. Those below a page belong to it: they get an error page."""
    pages = (*_PAGES, *more)
    return ("/", *pages, *(f"{path}/{{rest:path}}" for path in (*pages, *_FOLDERS)))


def page_address(url: str, public_url: str | None) -> str:
    """The address of the page of a server whose protocol is at ``url``."""
    if public_url is not None and urlsplit(public_url).path.endswith(MCP_PATH):
        return f"{public_url.removesuffix(MCP_PATH)}/"
    return f"{url.removesuffix(MCP_PATH)}/"


class LazyApplication:
    """Imports and creates the application in a thread at the first request, so that other requests do not wait."""

    def __init__(self, create: Callable[[], tuple[ASGIApp, Work]]) -> None:
        self._create = create
        self._app: ASGIApp | None = None
        self._run: Work | None = None
        self._created = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if self._app is None:
            self._app, self._run = await to_thread.run_sync(self._create)
            self._created.set()
        await self._app(scope, receive, send)

    async def run(self) -> None:
        """Work in the background, from the first request until cancelled."""
        await self._created.wait()
        if self._run is not None:
            await self._run()


class SignIn:
    """The sign-in form and its actions."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def ask(self, request: Request, *, wrong: str = "", to: str = "") -> Response:
        """401 with the sign-in form, and instructions for programs."""
        path = f"{self._site.base}{route_path(request.scope)}"
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
        """The sign-in page. It leads back to the page with the link; callers who are signed in go there."""
        before = urlsplit(request.headers.get("referer", ""))
        is_own = before.netloc == request.headers.get("host") and not before.path.endswith("/sign-in")
        asked = f"{before.path}?{before.query}" if before.query else before.path
        to = _own_path(asked if is_own else "", self._site.base)
        is_in = caller_name() if self._site.sessions is not None else request.scope.get(KNOWN, False)
        return self._go(to) if is_in else self.ask(request, to=to)

    async def submit(self, request: Request) -> Response:
        """Check the token, start a session, and go to the requested page."""
        sessions = self._site.sessions
        if sessions is None:
            return self._go(f"{self._site.base}/")
        if not self._site.is_own_form(request):
            return self._site.refuse_form()
        try:
            form = dict(await read_form(request, _MAX_BYTES, _MAX_FIELDS))
        except LimitError:
            form = {}
        name = await sessions.open(form.get("token", "").strip())
        if name is None:
            return self.ask(request, wrong=_WRONG, to=_own_path(form.get("to", ""), self._site.base))
        response = self._go(_own_path(form.get("to", ""), self._site.base))
        response.set_cookie(
            sessions.cookie,
            name,
            path=self._site.base or "/",
            httponly=True,
            samesite=sessions.same_site,
            secure=self._site.url_for(request).startswith("https:"),
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        sessions = self._site.sessions
        if not self._site.is_own_form(request):
            return self._site.refuse_form()
        response = self._go(f"{self._site.base}/")
        if sessions is not None:
            await sessions.close(sessions.name_in(request.scope))
            response.delete_cookie(
                sessions.cookie, path=self._site.base or "/", httponly=True, samesite=sessions.same_site
            )
        return response

    def _go(self, to: str) -> Response:
        return RedirectResponse(to, 303, headers=dict(PAGE_HEADERS))


def no_store(app: ASGIApp) -> ASGIApp:
    """``app`` with ``no-store`` on every response except static files: others may use the same machine."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Cache-Control"] = "no-store"
            await send(message)

        is_static = scope["type"] != "http" or route_path(scope).startswith("/static/")
        await app(scope, receive, send if is_static else marked)

    return answer


def _own_path(to: str, base: str) -> str:
    return to if _OWN_PATH.match(to) else f"{base}/"
