"""The catalog page of a server: its settings and addresses, and its application, which loads on first use.

Nothing else of ``web/catalog`` is imported before the first request, because that takes a while.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from anyio import to_thread

from skillwire.server.http import MCP_PATH
from skillwire.server.page import MountedPage, Sessions
from skillwire.web.theme import page, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillwire.server.access import Access
    from skillwire.server.skills import Skills

_PAGES = ("/search", "/connect", "/problems", "/sign-in", "/sign-out")
_FOLDERS = ("/skill", "/entry", "/file", "/raw", "/static")
# Paths below a page belong to the catalog too, so that an unknown one gets an error page.
PATHS = ("/", *_PAGES, *(f"{path}/{{rest:path}}" for path in (*_PAGES, *_FOLDERS)))
_HOST = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?\Z")


@dataclass(frozen=True, slots=True)
class Site:
    """A server and its page."""

    skills: Skills
    name: str
    url: str  # of the protocol, at the listening address
    public_url: str | None = None  # of the protocol, for clients
    sessions: Sessions | None = None
    unlisted: tuple[str, ...] = ()  # globs of paths

    @property
    def base(self) -> str:
        """The prefix of every path. The page is beside the protocol, also behind a proxy."""
        path = urlsplit(self.public_url).path if self.public_url else ""
        return path.removesuffix(MCP_PATH) if path.endswith(MCP_PATH) else ""

    @property
    def needs_token(self) -> bool:
        """Whether callers need a token."""
        return self.sessions is not None

    def url_for(self, request: Request) -> str:
        """The URL of the protocol as the caller reaches it."""
        host = request.headers.get("host", "")
        if self.public_url or not _HOST.match(host):
            return self.public_url or self.url
        return f"{request.url.scheme}://{host}{MCP_PATH}"

    def is_own_form(self, request: Request) -> bool:
        """Whether a page of this site sent the form (CSRF)."""
        origin = request.headers.get("origin", "")
        public = urlsplit(self.public_url or "")
        ours = {f"{scheme}://{request.headers.get('host', '')}" for scheme in ("http", "https")}
        if self.public_url:
            ours.add(f"{public.scheme}://{public.netloc}")
        return origin in ours and request.headers.get("sec-fetch-site", "same-origin") == "same-origin"

    def page(self, template: str, *, status: int = 200, **context: Any) -> Response:
        """Render ``template`` as a page of this site."""
        common = {"base": self.base, "site": self.name, "query": "", "needs_token": self.needs_token}
        return page(template, status=status, **{**common, **context})


def catalog_page(
    skills: Skills,
    *,
    name: str,
    url: str,
    public_url: str | None = None,
    access: Access | None = None,
    unlisted: Sequence[str] = (),
) -> MountedPage:
    """The page of ``skills`` for a server at ``url``, or at ``public_url`` behind a proxy.

    ``unlisted`` are globs of paths that no page mentions, also if there is no skill at a path.
    """
    sessions = None if access is None else Sessions(access)
    site = Site(skills, name, url, public_url, sessions, tuple(unlisted))
    return MountedPage(_LazyApplication(site), PATHS, sessions)


def page_address(url: str, public_url: str | None) -> str:
    """The address of the page of a server whose protocol is at ``url``."""
    if public_url is not None and urlsplit(public_url).path.endswith(MCP_PATH):
        return f"{public_url.removesuffix(MCP_PATH)}/"
    return f"{url.removesuffix(MCP_PATH)}/"


class _LazyApplication:
    """Imports and creates the application in a thread at the first request, so that other requests do not wait."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            self._app = await to_thread.run_sync(self._create)
        await self._app(scope, receive, send)

    def _create(self) -> ASGIApp:
        from skillwire.web.catalog.pages import application

        prepare("catalog/")
        return application(self._site)
