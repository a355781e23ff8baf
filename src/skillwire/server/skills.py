"""Skills for an MCP server, in one line: ``Skills("skills/").attach(server)``.

Works on the official SDK's ``MCPServer`` and ``Server`` and on FastMCP 4, tools and all. The server's own
resources keep working beside the skills.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio

from skillwire.catalog.claims import Mount
from skillwire.catalog.combined import CombinedCatalog
from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, Catalog
from skillwire.catalog.directory import DirectoryCatalog
from skillwire.catalog.generated import GeneratedCatalog
from skillwire.errors import FormatError
from skillwire.server.binding import Served
from skillwire.server.endpoints import Dialects, bind
from skillwire.server.lowlevel import lowlevel_server, subscription_bus
from skillwire.server.notices import NoticeBus, Notices, everything
from skillwire.skill.entry import DEFAULT_META, SkillMeta
from skillwire.skill.uri import DEFAULT_SCHEME
from skillwire.wire.extension import EXTENSION_ID, SKILLS_LIST, Freshness

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from mcp.server.lowlevel import Server

    from skillwire.catalog.generated import MakeFiles

S = TypeVar("S")
F = TypeVar("F", bound="MakeFiles")


class Viewer(Protocol):
    """Decides what the caller of the current request may see."""

    def catalog(self, catalog: Catalog) -> Catalog:
        """``catalog``, as far as the caller may see it."""
        ...

    def sees(self) -> Callable[[str], bool]:
        """Whether the caller may see a URI; for as long as its connection lasts."""
        ...


class Skills:
    """Skills from a folder or any catalog, and from functions declared with ``@skills.skill``."""

    def __init__(
        self,
        source: str | os.PathLike[str] | Catalog | None = None,
        *,
        scheme: str = DEFAULT_SCHEME,
        page_size: int = DEFAULT_PAGE_SIZE,
        freshness: Freshness | None = None,
        watch: bool = True,
        viewer: Viewer | None = None,
        dialects: Dialects | None = None,
    ) -> None:
        if isinstance(source, str | os.PathLike):
            source = DirectoryCatalog(source, scheme=scheme)
            source.demand_root()
        self._source = source
        self._declared = GeneratedCatalog(scheme=scheme)
        self._scheme = scheme
        self._page_size = page_size
        self._freshness = freshness or Freshness()
        if viewer is not None:  # what differs from caller to caller is never cached as public
            self._freshness = Freshness(self._freshness.ttl_ms, "private")
        self._watch = watch
        self._viewer = viewer
        self._dialects = dialects or Dialects()
        self._catalog: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """Everything that is served."""
        if self._catalog is None:
            if self._source is None:
                self._catalog = self._declared
            elif self._declared.is_empty:
                return self._source
            else:
                if isinstance(self._source, CombinedCatalog):  # one level of names, whoever combined them
                    sources = self._source.mounts
                else:
                    sources = (Mount(self._source, "files"),)
                mounts = (*sources, Mount(self._declared, "declared"))
                self._catalog = CombinedCatalog(mounts, scheme=self._scheme)
        return self._catalog

    def skill(self, path: str, *, dynamic: bool = False, meta: SkillMeta = DEFAULT_META) -> Callable[[F], F]:
        """Declare a skill: the function returns its files, a ``Skill``, or the path of its folder."""
        return self._declared.skill(path, dynamic=dynamic, meta=meta)

    def attach(self, server: S) -> S:
        """Serve the skills on ``server``, which is returned."""
        low = lowlevel_server(server)
        if EXTENSION_ID in low.extensions or low.get_request_handler(SKILLS_LIST) is not None:
            raise FormatError(
                "skills-attached", "this server has skills already", "put several sources into one CombinedCatalog"
            )
        notices = Notices(subscription_bus(low, NoticeBus(self._sees)), self._sees)
        served = Served(
            low,
            lambda: self.catalog,
            self._caller_catalog,
            self._sees,
            self._scheme,
            self._page_size,
            self._freshness,
        )
        low.extensions[EXTENSION_ID] = {"directoryRead": True}
        low.middleware.append(bind(served, notices, self._dialects))
        self._tell_with(low, notices)
        return server

    def _caller_catalog(self, ctx: Any) -> Catalog:  # noqa: ARG002 - the caller is known from the request's context
        return self.catalog if self._viewer is None else self._viewer.catalog(self.catalog)

    def _sees(self) -> Callable[[str], bool]:
        return everything if self._viewer is None else self._viewer.sees()

    def _tell_with(self, low: Server[Any], notices: Notices) -> None:
        """Tell of changes as long as the server runs."""
        inner = low.lifespan

        @asynccontextmanager
        async def lifespan(app: Server[Any]) -> AsyncGenerator[Any]:
            async with anyio.create_task_group() as group:
                group.start_soon(partial(notices.run, self.catalog, watch=self._watch))
                async with inner(app) as state:
                    yield state
                group.cancel_scope.cancel()

        low.lifespan = lifespan
