"""The pages of a registry as a part of its web application.

Everyone sees what is public. A person signs in with a token of the registry. The session is in the database, so
every replica knows it, and its cookie is sent with no request that comes from another site.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillwire.registry.sessions import RegistrySessions
from skillwire.server.page import MountedPage
from skillwire.web.catalog.site import PAGES, LazyApplication, Site, paths_of
from skillwire.web.theme import prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import ASGIApp

    from skillwire.registry.app import Registry
    from skillwire.server.access import Access
    from skillwire.server.dialect import ServedSkills
    from skillwire.server.page import PageMaker, SourceStatus
    from skillwire.web.catalog.site import Work

_PAGES: Final = PAGES[:2]  # a registry has no problems: it refuses them
_CALLER_PAGES: Final = (("reviews", "/reviews", "Reviews"), ("log", "/log", "Log"))


def registry_page(registry: Registry) -> PageMaker:
    """The page of ``registry``."""

    def make(
        skills: ServedSkills,
        *,
        name: str,
        path: str,
        public_url: str | None,
        access: Access | None,  # noqa: ARG001 - the registry knows its callers itself
        sources: Callable[[], Sequence[SourceStatus]] | None = None,  # noqa: ARG001 - it has no upstreams
    ) -> MountedPage:
        url = None if public_url is None else f"{public_url.rstrip('/').removesuffix(path)}{path}"
        sessions = RegistrySessions(registry.store, registry.identities)
        site = Site(skills, name, path, url, sessions, pages=_PAGES, caller_pages=_CALLER_PAGES)

        def create() -> tuple[ASGIApp, Work]:
            from skillwire.web.catalog.pages import application
            from skillwire.web.registry.pages import RegistryPages

            for folder in ("catalog/", "registry/"):
                prepare(folder)
            return application(site, RegistryPages(site, registry))

        app, paths = LazyApplication(create), paths_of("/versions", "/change", "/reviews", "/log")
        return MountedPage(app, paths, sessions, site.streams.end, app.run)

    return make
