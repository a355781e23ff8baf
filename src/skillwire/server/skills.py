"""Skills for an MCP server, in one line: ``Skills("skills/").attach(server)``.

Works on the official SDK's ``MCPServer`` and ``Server`` and on FastMCP 4. The server's own tools, prompts and
resources keep working beside the skills.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from skillwire.catalog.archive import local_catalog
from skillwire.catalog.combined import CombinedCatalog, Mount, unique_labels
from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, Catalog
from skillwire.catalog.generated import GeneratedCatalog
from skillwire.catalog.template import TemplateCatalog
from skillwire.errors import FormatError
from skillwire.server.callers import CallerViews
from skillwire.server.dialect import ServedSkills
from skillwire.server.endpoints import Dialects, Endpoints
from skillwire.server.extension import Extension
from skillwire.server.fallback import Fallback, SkillSearch
from skillwire.server.native import Native
from skillwire.server.notifications import Notifier, everything
from skillwire.server.scopes import Scope, Scopes
from skillwire.server.sdk_compat import lowlevel_server
from skillwire.server.sep2076 import Sep2076
from skillwire.skill.entry import DEFAULT_META, SkillMeta
from skillwire.skill.uri import DEFAULT_SCHEME
from skillwire.wire.extension import EXTENSION_ID, SKILLS_LIST, Freshness

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Callable, Mapping

    from skillwire.catalog.archive import ArchiveCatalog
    from skillwire.catalog.directory import DirectoryCatalog
    from skillwire.catalog.generated import MakeFiles
    from skillwire.catalog.settings import Describe
    from skillwire.catalog.template import MakeSkill, Values
    from skillwire.search.fts5 import Hit
    from skillwire.server.callers import Caller, Visible
    from skillwire.server.dialect import Dialect
    from skillwire.server.endpoints import Endpoint
    from skillwire.skill import Diagnostic, SkillEntry

log = logging.getLogger("skillwire.skills")

S = TypeVar("S")
F = TypeVar("F", bound="MakeFiles")
M = TypeVar("M", bound="MakeSkill")


def log_problem(problem: Diagnostic) -> None:
    """Log a problem of a skill as a warning."""
    place = problem.file or problem.skill
    log.warning("%s: %s [%s]; hint: %s", place, problem.message, problem.reference, problem.hint)


def ignore_problem(_: Diagnostic) -> None:
    """Do nothing, because the problems are reported elsewhere."""


class Skills:
    """Skills from folders, archives and catalogs, and from functions (``skill``, ``template``).

    ``on_problem`` is called for every problem when the server starts; by default it is logged as a warning. With
    ``strict`` the problems of folders and archives are raised at once, all in one ``FormatError``.

    ``visible(caller)`` returns what a caller may see: prefixes of paths, or a function that tests one path.

    ``describe(path, meta)`` gets the path of each skill of a folder and the folder's settings for it, and returns
    the ``SkillMeta`` that is served.
    """

    def __init__(
        self,
        *sources: str | os.PathLike[str] | Catalog,
        strict: bool = False,
        on_problem: Callable[[Diagnostic], object] = log_problem,
        visible: Callable[[Caller], Visible] | None = None,
        scheme: str = DEFAULT_SCHEME,
        page_size: int = DEFAULT_PAGE_SIZE,
        freshness: Freshness | None = None,
        watch: bool = True,
        dialects: Dialects | None = None,
        describe: Describe | None = None,
    ) -> None:
        local = [source for source in sources if not isinstance(source, Catalog)]
        if describe is not None and not local:
            raise FormatError(
                "describe-unused",
                "'describe' needs a folder or an archive as the source",
                "give it to the catalog, or declare the skills with @skills.skill(path, meta=SkillMeta(…))",
            )
        catalogs = [
            source if isinstance(source, Catalog) else _open_local(source, scheme, describe, strict=strict)
            for source in sources
        ]
        names = ["files" if isinstance(source, Catalog) else Path(source).resolve().name for source in sources]
        self._sources: tuple[Mount, ...] = ()
        if len(catalogs) == 1 and isinstance(catalogs[0], CombinedCatalog):
            self._sources = catalogs[0].mounts  # one level of mounts, so that names collide in one place
        elif catalogs:
            self._sources = tuple(map(Mount, catalogs, unique_labels(names)))
        self._declared = GeneratedCatalog(scheme=scheme)
        self._templates = TemplateCatalog(scheme=scheme)
        self._served_mounts = self._sources
        self.catalog: Catalog = self._declared  # everything that is served
        if len(catalogs) == 1:
            self.catalog = catalogs[0]
        elif catalogs:
            self.catalog = CombinedCatalog(self._sources, scheme=scheme)
        self._on_problem = on_problem
        self._scheme = scheme
        self._page_size = page_size
        self._freshness = freshness or Freshness()
        self._views = None if visible is None else CallerViews(visible)
        if visible is not None:  # results that differ between callers must not be shared
            self._freshness = Freshness(self._freshness.ttl_ms, "private")
        self._watch = watch
        self._dialects = dialects or Dialects()
        self._scopes = Scopes()
        self._search = SkillSearch()
        self._attached: list[tuple[ServedSkills, Notifier]] = []
        self._runs = 0

    @property
    def scheme(self) -> str:
        """The scheme of the skills' URIs."""
        return self._scheme

    def skill(self, path: str, *, dynamic: bool = False, meta: SkillMeta = DEFAULT_META) -> Callable[[F], F]:
        """Declare a skill. Two declarations for one path are an error.

        The function returns the text of a ``SKILL.md``, files by name, a ``Skill``, or the ``Path`` of a folder.
        """

        def declare(make: F) -> F:
            if self._declared.has(path):
                raise FormatError(
                    "skill-declared-twice",
                    f"two functions are declared for the skill {path!r:.200}",
                    "remove one of them, or give it another path",
                )
            self._declared.add(path, make, dynamic=dynamic, meta=meta)
            self._combine()
            return make

        return declare

    def template(self, path: str, *, values: Mapping[str, Values], description: str) -> Callable[[M], M]:
        """Declare skills that are made from values in their path: ``docs/{product}`` (I1, T1).

        The function takes the variables by name and returns the same as a function for ``skill``, or ``None`` if
        there is no such skill. ``values`` has for each variable all its values, or a function that completes a
        prefix.
        """

        def declare(make: M) -> M:
            self._templates.add(path, make, values=values, description=description)
            self._combine()
            return make

        return declare

    def _combine(self) -> None:
        """Serve the declared skills beside the source. Only what is used is combined, to keep reads short."""
        mounts = self._sources
        if not self._declared.is_empty:
            mounts += (Mount(self._declared, "declared"),)
        if not self._templates.is_empty:
            mounts += (Mount(self._templates, "template-skills"),)
        if mounts == self._served_mounts:
            return
        self._served_mounts = mounts
        self.catalog = mounts[0].catalog if len(mounts) == 1 else CombinedCatalog(mounts, scheme=self._scheme)
        for served, notifier in self._attached:
            served.replace_catalog(self.catalog)
            notifier.replace_catalog(self.catalog)

    @cached_property
    def server(self) -> Server[Any]:
        """A server with only these skills. Run it on any transport of the SDK; ``connect`` uses it in memory."""
        return build_server(self)

    def scope(self, path: str) -> Scope:
        """The tools, prompts and resources of the server that the skill at ``path`` binds (M3)."""
        return self._scopes.scope(path)

    def attach(self, server: S) -> S:
        """Serve the skills on ``server``, which is returned."""
        low = lowlevel_server(server)
        attached = any(isinstance(middleware, Endpoints) for middleware in low.middleware)
        if attached or EXTENSION_ID in low.extensions or low.get_request_handler(SKILLS_LIST) is not None:
            raise FormatError(
                "skills-attached",
                "this server has skills already",
                "give all sources to one call: Skills('a', 'b')",
            )
        self._scopes.attach(server)
        served = ServedSkills(
            low,
            self.catalog,
            self._search,
            view=None if self._views is None else self._views.catalog,
            sees=self._sees,
            scheme=self._scheme,
            page_size=self._page_size,
            freshness=self._freshness,
        )
        notifier = Notifier(low, self.catalog, self._sees)
        self._attached.append((served, notifier))
        options = self._dialects
        fallback = None if options.fallback == "never" else Fallback(served, always=options.fallback == "always")
        sep2076 = Sep2076(served)
        dialects: dict[Endpoint, Dialect] = {
            "extension": Extension(served, notifier, fallback).dialect(),
            "sep-2076": sep2076.dialect(),
            "native": Native(served, notifier, self._scopes, options).dialect(),
        }
        low.middleware.append(Endpoints(dialects, notifier, options.default))
        self._extend_lifespan(low, notifier, sep2076)
        return server

    def visible(self) -> Catalog:
        """The part of the catalog that the caller of the current request may see."""
        return self.catalog if self._views is None else self._views.catalog(self.catalog)

    async def search(self, query: str, limit: int) -> list[tuple[Hit, SkillEntry]]:
        """Search the skills that the caller of the current request may see; best first."""
        return await self._search.search(self.visible(), query, limit)

    def _sees(self) -> Callable[[str], bool]:
        return everything if self._views is None else self._views.sees()

    def _extend_lifespan(self, server: Server[Any], notifier: Notifier, sep2076: Sep2076) -> None:
        """Send notifications while the server runs, check dependencies once, and close what searches opened."""
        inner = server.lifespan

        @asynccontextmanager
        async def lifespan(app: Server[Any]) -> AsyncGenerator[Any]:
            self._runs += 1  # in memory each connection runs the server
            sources = [mount.catalog for mount in self._sources] if self._watch else []
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(notifier.run, sources)
                    async with inner(app) as state:
                        group.start_soon(self._report_problems)
                        group.start_soon(sep2076.check_at_start, state)
                        yield state
                    group.cancel_scope.cancel()
            finally:
                self._runs -= 1
                if not self._runs:
                    self._search.close()

        server.lifespan = lifespan

    async def _report_problems(self) -> None:
        if self._on_problem is not ignore_problem:
            for problem in await self.catalog.problems():
                self._on_problem(problem)


def _open_local(
    path: str | os.PathLike[str], scheme: str, describe: Describe | None, *, strict: bool
) -> ArchiveCatalog | DirectoryCatalog:
    catalog = local_catalog(path, scheme=scheme, describe=describe)
    catalog.demand_root()
    if strict:
        catalog.load()
        problems = [f"{each.file}: {each.message} [{each.reference}]" for each in catalog.known_problems()]
        if problems:
            raise FormatError(
                "skills-have-problems",
                f"{len(problems)} problems in {Path(path).name!r}:\n" + "\n".join(problems),
                "fix them, or leave out strict=True to serve the other skills",
            )
    return catalog


def build_server(skills: Skills, *, name: str = "skillwire", instructions: str | None = None) -> Server[Any]:
    """A server with only ``skills``. Run it on any transport of the SDK."""
    return skills.attach(Server(name, version=version("skillwire"), instructions=instructions))


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client on stdin and stdout until stdin closes."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
