"""The catalog in a browser: what is served, as the caller of each request may see it.

Nothing of it is imported before somebody opens it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread

from skillwire.server.page import Page, Sessions
from skillwire.web.catalog.site import Site

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillwire.server.access import Access
    from skillwire.server.skills import Skills

_PAGES = ("/search", "/connect", "/left-out", "/sign-in", "/sign-out")
_FOLDERS = ("/skill", "/entry", "/file", "/raw", "/static")
# What lies below a page is ours, too: it is not there, and a page says so.
PATHS = ("/", *_PAGES, *(f"{path}/{{rest:path}}" for path in (*_PAGES, *_FOLDERS)))


def catalog_page(
    skills: Skills,
    *,
    name: str,
    url: str,
    public_url: str | None = None,
    access: Access | None = None,
    unlisted: Sequence[str] = (),
) -> Page:
    """A page of ``skills``, which a host reaches at ``url``, or at ``public_url`` if there is one.

    ``unlisted`` are globs of paths that no page names by itself, also where there is no skill to ask.
    """
    sessions = None if access is None else Sessions(access)
    return Page(_Later(Site(skills, name, url, public_url, sessions, tuple(unlisted))), PATHS, sessions)


class _Later:
    """The page's application, made for the first who asks. Importing takes a while: nobody else waits for it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            self._app = await to_thread.run_sync(self._made)
        await self._app(scope, receive, send)

    def _made(self) -> ASGIApp:
        from skillwire.web.catalog.views import routes
        from skillwire.web.theme import prepare

        prepare("catalog/")
        return routes(self._site)
