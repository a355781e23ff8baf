"""Skills for an MCP server, in one line: ``Skills("skills/").attach(server)``.

Works on the official SDK's ``MCPServer`` and ``Server`` and on FastMCP 4. The server's own tools, prompts and
resources keep working beside the skills.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from skillwire.catalog.archive import local_catalog
from skillwire.catalog.collisions import Mount
from skillwire.catalog.combined import CombinedCatalog
from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, Catalog
from skillwire.catalog.generated import GeneratedCatalog
from skillwire.catalog.settings import as_the_folder_says
from skillwire.catalog.template import TemplateCatalog
from skillwire.errors import FormatError
from skillwire.server.dependencies import check_at_start
from skillwire.server.dialect import Served
from skillwire.server.endpoints import Dialects, Endpoints
from skillwire.server.notifications import Notifier, everything
from skillwire.server.scopes import Scope, Scopes
from skillwire.server.sdk_compat import lowlevel_server
from skillwire.server.skill_tools import SkillSearch
from skillwire.skill.entry import DEFAULT_META, SkillMeta
from skillwire.skill.uri import DEFAULT_SCHEME
from skillwire.wire.extension import EXTENSION_ID, SKILLS_LIST, Freshness

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from skillwire.catalog.generated import MakeFiles
    from skillwire.catalog.settings import Describe
    from skillwire.catalog.template import MakeSkill, Values
    from skillwire.search.index import Hit
    from skillwire.skill import SkillEntry

S = TypeVar("S")
F = TypeVar("F", bound="MakeFiles")
M = TypeVar("M", bound="MakeSkill")


class Viewer(Protocol):
    """Decides what the caller of the current request may see."""

    def catalog(self, catalog: Catalog) -> Catalog:
        """The part of ``catalog`` that the caller may see."""
        ...

    def sees(self) -> Callable[[str], bool]:
        """A function that tells whether the caller may see a URI. It is used until the connection ends."""
        ...


class Skills:
    """Skills from a folder, an archive or any catalog, and from functions (``skill``, ``template``).

    ``describe(path, meta)`` gets the path of each skill of a folder and the folder's settings for it, and returns
    the ``SkillMeta`` that is served.
    """

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
        describe: Describe | None = None,
    ) -> None:
        if isinstance(source, str | os.PathLike):
            source = local_catalog(source, scheme=scheme, describe=describe or as_the_folder_says)
            source.demand_root()
        elif describe is not None:
            raise FormatError(
                "describe-unused",
                "'describe' needs a folder or an archive as the source",
                "give it to the catalog, or declare the skills with @skills.skill(path, meta=SkillMeta(…))",
            )
        self._source = source
        self._declared = GeneratedCatalog(scheme=scheme)
        self._templates = TemplateCatalog(scheme=scheme)
        own = (Mount(self._declared, "declared"), Mount(self._templates, "template-skills"))
        self._mounts = (*_mounts_of(source), *own)
        self._scheme = scheme
        self._page_size = page_size
        self._freshness = freshness or Freshness()
        if viewer is not None:  # results that differ between callers must not be shared
            self._freshness = Freshness(self._freshness.ttl_ms, "private")
        self._watch = watch
        self._viewer = viewer
        self._dialects = dialects or Dialects()
        self._scopes = Scopes()
        self._combined: CombinedCatalog | None = None
        self._search: SkillSearch | None = None

    @property
    def scheme(self) -> str:
        """The scheme of the skills' URIs."""
        return self._scheme

    @property
    def catalog(self) -> Catalog:
        """Everything that is served."""
        unused = [own for own in (self._declared, self._templates) if own.is_empty]
        if len(unused) == 2:
            return self._declared if self._source is None else self._source
        mounts = tuple(mount for mount in self._mounts if mount.catalog not in unused)
        if self._source is None and len(mounts) == 1:
            return mounts[0].catalog
        if self._combined is None or self._combined.mounts != mounts:
            self._combined = CombinedCatalog(mounts, scheme=self._scheme)
        return self._combined

    def skill(self, path: str, *, dynamic: bool = False, meta: SkillMeta = DEFAULT_META) -> Callable[[F], F]:
        """Declare a skill: the function returns its files, a ``Skill``, or the path of its folder."""
        return self._declared.skill(path, dynamic=dynamic, meta=meta)

    def template(self, path: str, *, values: Mapping[str, Values], description: str) -> Callable[[M], M]:
        """Declare skills that are made from values in their path: ``docs/{product}`` (I1, T1).

        The function takes the variables by name and returns the same as a function for ``skill``, or ``None`` if
        there is no such skill. ``values`` has for each variable all its values, or a function that completes a
        prefix.
        """
        return self._templates.template(path, values=values, description=description)

    def scope(self, path: str) -> Scope:
        """The tools, prompts and resources of the server that the skill at ``path`` binds (M3)."""
        return self._scopes.scope(path)

    def attach(self, server: S) -> S:
        """Serve the skills on ``server``, which is returned."""
        low = lowlevel_server(server)
        attached = any(isinstance(middleware, Endpoints) for middleware in low.middleware)
        if attached or EXTENSION_ID in low.extensions or low.get_request_handler(SKILLS_LIST) is not None:
            raise FormatError(
                "skills-attached", "this server has skills already", "put several sources into one CombinedCatalog"
            )
        self._scopes.attach(server)
        notifier = Notifier(low, self._sees)
        self._search = SkillSearch(low)
        served = Served(
            low,
            lambda: self.catalog,
            self.visible,
            self._sees,
            self._search,
            self._scheme,
            self._page_size,
            self._freshness,
            self._scopes,
        )
        low.middleware.append(Endpoints(served, notifier, self._dialects))
        self._extend_lifespan(served, notifier)
        return server

    def visible(self) -> Catalog:
        """The part of the catalog that the caller of the current request may see."""
        return self.catalog if self._viewer is None else self._viewer.catalog(self.catalog)

    async def search(self, query: str, limit: int) -> list[tuple[Hit, SkillEntry]]:
        """Search the skills that the caller of the current request may see; best first."""
        return [] if self._search is None else await self._search.search(self.visible(), query, limit)

    def _sees(self) -> Callable[[str], bool]:
        return everything if self._viewer is None else self._viewer.sees()

    def _extend_lifespan(self, served: Served, notifier: Notifier) -> None:
        """Send notifications while the server runs, and check the dependencies of skills once."""
        inner = served.server.lifespan

        @asynccontextmanager
        async def lifespan(app: Server[Any]) -> AsyncGenerator[Any]:
            async with anyio.create_task_group() as group:
                group.start_soon(partial(notifier.run, self.catalog, watch=self._watch))
                async with inner(app) as state:
                    group.start_soon(check_at_start, served, state)
                    yield state
                group.cancel_scope.cancel()

        served.server.lifespan = lifespan


def _mounts_of(source: Catalog | None) -> tuple[Mount, ...]:
    if isinstance(source, CombinedCatalog):  # one level of mounts, so that names collide in one place
        return source.mounts
    return () if source is None else (Mount(source, "files"),)


def build_server(skills: Skills, *, name: str = "skillwire", instructions: str | None = None) -> Server[Any]:
    """A server with only ``skills``. Run it on any transport of the SDK."""
    return skills.attach(Server(name, version=version("skillwire"), instructions=instructions))


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client on stdin and stdout until stdin closes."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
