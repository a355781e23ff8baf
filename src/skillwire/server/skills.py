"""Skills for an MCP server, in one line: ``Skills("skills/").attach(server)``.

Works on the official SDK's ``MCPServer`` and ``Server`` and on FastMCP 4. The server's own tools, prompts and
resources keep working beside the skills. ``Skills("skills/").asgi()`` is a separate server, as a web application.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import cached_property
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from skillwire.catalog.archive import local_catalog
from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, Catalog
from skillwire.catalog.functions import GeneratedCatalog, TemplateCatalog
from skillwire.catalog.snapshot import LoadedCatalog
from skillwire.catalog.union import CombinedCatalog, Mount, unique_labels
from skillwire.errors import FormatError, NotFoundError, SkillwireError
from skillwire.server.callers import CallerViews, both
from skillwire.server.dialect import MCP_PATH, Dialects, Endpoints, ServedSkills
from skillwire.server.extension import Extension
from skillwire.server.fallback import FallbackItems
from skillwire.server.native import Native
from skillwire.server.notifications import Notifier
from skillwire.server.scopes import Scope, Scopes
from skillwire.server.sdk_compat import lowlevel_server
from skillwire.server.sep2076 import Sep2076
from skillwire.skill.entry import DEFAULT_META, SkillMeta
from skillwire.skill.uri import DEFAULT_SCHEME
from skillwire.wire.extension import EXTENSION_ID, SKILLS_LIST, Freshness

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from skillwire.catalog.archive import ArchiveCatalog
    from skillwire.catalog.directory import DirectoryCatalog
    from skillwire.catalog.functions import MakeFiles, MakeSkill, Values
    from skillwire.catalog.settings import Describe
    from skillwire.server.access import Access
    from skillwire.server.callers import Caller, Views, Visible
    from skillwire.server.dialect import Dialect, Endpoint
    from skillwire.server.http import Door, HttpOptions, WebApp
    from skillwire.server.page import PageMaker
    from skillwire.skill import Diagnostic

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

    ``on_problem`` is called with each problem, when the server starts and when it appears later. By default
    problems are logged as warnings. With ``strict`` they are raised, all in one ``FormatError``: those of folders
    and archives at once, those of catalogs and functions and collisions between sources when the server starts.

    ``visible(caller)`` returns what a caller may see: prefixes of paths, or a function that tests one path. It may
    be a coroutine function.

    ``describe(path, meta)`` gets the path of each skill of a folder and the folder's settings for it, and returns
    the ``SkillMeta`` that is served.
    """

    def __init__(
        self,
        *sources: str | os.PathLike[str] | Catalog,
        strict: bool = False,
        on_problem: Callable[[Diagnostic], object] | None = None,
        visible: Callable[[Caller], Visible | Awaitable[Visible]] | None = None,
        scheme: str = DEFAULT_SCHEME,
        page_size: int = DEFAULT_PAGE_SIZE,
        freshness: Freshness | None = None,
        watch: bool = True,
        dialects: Dialects | None = None,
        describe: Describe | None = None,
    ) -> None:
        local = {
            place: _local_source(place, scheme, describe) for place in sources if not isinstance(place, Catalog)
        }
        if describe is not None and not local:
            raise FormatError(
                "describe-unused",
                "'describe' needs a folder or an archive as the source",
                "give it to the catalog, or declare the skills with @skills.skill(path, meta=SkillMeta(…))",
            )
        if visible is not None and not callable(visible):
            raise TypeError(f"'visible' is {type(visible).__name__}; give a function that takes a Caller")
        if strict:
            for catalog in local.values():
                catalog.load()
            _refuse([problem for catalog in local.values() for problem in catalog.known_problems()])
        catalogs = [source if isinstance(source, Catalog) else local[source] for source in sources]
        names = ["files" if isinstance(source, Catalog) else Path(source).resolve().name for source in sources]
        self._sources: tuple[Mount, ...] = ()
        if len(catalogs) == 1 and isinstance(catalogs[0], CombinedCatalog):
            self._sources = catalogs[0].mounts  # one level of mounts, so that names collide in one place
        elif catalogs:
            self._sources = tuple(map(Mount, catalogs, unique_labels(names)))
        self._declared = GeneratedCatalog(scheme=scheme)
        self._templates = TemplateCatalog(scheme=scheme)
        self._declared_mount = Mount(self._declared, "declared")
        self._template_mount = Mount(self._templates, "template-skills")
        self._mounts = self._sources
        self.catalog: Catalog = self._declared  # everything that is served
        if len(catalogs) == 1:
            self.catalog = catalogs[0]
        elif catalogs:
            self.catalog = CombinedCatalog(self._sources, scheme=scheme)
        self._strict = strict
        self._on_problem = on_problem or log_problem
        self._reported: frozenset[Diagnostic] = frozenset()
        self._visible = visible
        self.scheme = scheme  # of the skills' URIs
        self._page_size = page_size
        self._freshness = freshness or Freshness()
        self._watch = watch
        self._dialects = dialects or Dialects()
        self._scopes = Scopes()
        self._attached: list[tuple[ServedSkills, Notifier]] = []

    def skill(self, path: str, *, dynamic: bool = False, meta: SkillMeta = DEFAULT_META) -> Callable[[F], F]:
        """Declare a skill, before or while it is served. Two declarations for one path are an error.

        The function takes no parameters, and returns the text of a ``SKILL.md``, files by name, a ``Skill`` (whose
        path is not used), or the ``Path`` of a folder.
        """
        if not isinstance(cast("object", path), str):
            raise TypeError("write the path of the skill: @skills.skill('acme/refunds')")

        def declare(make: F) -> F:
            if self._declared.has(path):
                raise FormatError(
                    "skill-declared-twice",
                    f"two functions are declared for the skill {path!r:.200}",
                    "remove one of them, or give it another path",
                )
            self._use(self._declared_mount)  # first, so that the change is notified
            self._declared.add(path, make, dynamic=dynamic, meta=meta)
            return make

        return declare

    async def regenerate(self, path: str) -> None:
        """Call the function of a declared skill again. Subscribers are notified if its files changed.

        ``UpstreamError`` if the function fails; then the skill is not served.
        """
        await self._declared.regenerate(path)

    def template(self, path: str, *, values: Mapping[str, Values], description: str) -> Callable[[M], M]:
        """Declare skills that are made from values in their path: ``docs/{product}`` (I1, T1).

        The function takes the variables by name and returns the same as a function for ``skill``, or ``None`` if
        there is no such skill. ``values`` has for each variable all its values, or a function that completes a
        prefix.
        """

        def declare(make: M) -> M:
            self._templates.add(path, make, values=values, description=description)
            self._use(self._template_mount)
            return make

        return declare

    def _use(self, mount: Mount) -> None:
        """Serve the skills of ``mount`` too. A single mount is not wrapped, so that a read has one step less."""
        if mount in self._mounts:
            return
        self._mounts = (*self._mounts, mount)
        only = self._mounts[0].catalog if len(self._mounts) == 1 else None
        self.catalog = only or CombinedCatalog(self._mounts, scheme=self.scheme)
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
        self._serve(server)
        return server

    def asgi(
        self,
        path: str = MCP_PATH,
        *,
        name: str = "skillwire",
        instructions: str | None = None,
        access: Access | str | os.PathLike[str] | None = None,
        public_url: str | None = None,
        metrics: bool = True,
        page: PageMaker | None = None,
    ) -> WebApp:
        """A server with only these skills, as a web application: run it, or mount it below any prefix.

        ``access`` is an access file, or its contents: who may connect and see what. ``public_url`` is the address
        that clients use, if this machine does not know it. ``page=skillwire.catalog_page`` adds a page for people.
        """
        from skillwire.server.http import embedding_options  # late: it imports the web server

        options = embedding_options(path, access, public_url, metrics=metrics)
        return self.web_app(options, name=name, instructions=instructions, page=page)

    def web_app(
        self,
        options: HttpOptions,
        *,
        name: str = "skillwire",
        instructions: str | None = None,
        page: PageMaker | None = None,
        prepare: Callable[[ServedSkills], object] = lambda _: None,
        door: Door | None = None,
        views: Views | None = None,
    ) -> WebApp:
        """The same with all settings. ``prepare`` may add to the server before it starts.

        ``views`` replaces ``visible`` and ``access`` for a catalog that knows its callers itself.
        """
        from skillwire.server.http import WebApp

        server = Server(name, version=version("skillwire"), instructions=instructions)
        served = self._serve(server, options.access, views)
        prepare(served)
        mounted = None
        if page is not None:
            mounted = page(
                served, name=name, path=options.path, public_url=options.public_url, access=options.access
            )
        # What a function allows may depend on anything, so such responses are not cached.
        cached = served if self._visible is None and views is None else None
        return WebApp(server, options, skills=cached, page=mounted, door=door)

    def _serve(self, server: object, access: Access | None = None, views: Views | None = None) -> ServedSkills:
        low = lowlevel_server(server)
        attached = any(isinstance(middleware, Endpoints) for middleware in low.middleware)
        if attached or EXTENSION_ID in low.extensions or low.get_request_handler(SKILLS_LIST) is not None:
            raise FormatError(
                "skills-attached",
                "this server has skills already",
                "give all sources to one call: Skills('a', 'b')",
            )
        self._scopes.attach(server)
        visible = self._visible
        if access is not None:
            visible = access.visible if visible is None else both(access.visible, visible)
        if views is None and visible is not None:
            views = CallerViews(visible)
        served = ServedSkills(
            low,
            self.catalog,
            views,
            scheme=self.scheme,
            page_size=self._page_size,
            freshness=self._freshness,
        )
        notifier = Notifier(low, self.catalog, served.sees)
        notifier.after_change = self._report_problems
        self._attached.append((served, notifier))
        options = self._dialects
        fallback = (
            None if options.fallback == "never" else FallbackItems(served, always=options.fallback == "always")
        )
        sep2076 = Sep2076(served)
        dialects: dict[Endpoint, Dialect] = {
            "extension": Extension(served, notifier, fallback).dialect(),
            "sep-2076": sep2076.dialect(),
            "native": Native(served, notifier, self._scopes, options).dialect(),
        }
        low.middleware.append(Endpoints(dialects, served, notifier, options.default))
        if hasattr(server, "add_provider"):  # FastMCP, which may be mounted into another server
            from skillwire.server.fastmcp_provider import provide_skills  # late: it imports FastMCP

            provide_skills(server, low, served)
        self._extend_lifespan(served, notifier, sep2076)
        return served

    def _extend_lifespan(self, served: ServedSkills, notifier: Notifier, sep2076: Sep2076) -> None:
        """Send notifications while the server runs, check dependencies once, and close what requests opened."""
        inner, runs = served.server.lifespan, 0

        @asynccontextmanager
        async def lifespan(app: Server[Any]) -> AsyncGenerator[Any]:
            nonlocal runs
            if self._strict:
                _refuse(await self.catalog.problems())
            runs += 1  # in memory each connection runs the server
            sources = [mount.catalog for mount in self._sources] if self._watch else []
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(notifier.run, sources)
                    async with inner(app) as state:
                        group.start_soon(self._report_start)
                        group.start_soon(sep2076.check_at_start, state)
                        yield state
                    group.cancel_scope.cancel()
            finally:
                runs -= 1
                if not runs:
                    served.close()

        served.server.lifespan = lifespan

    async def _report_start(self) -> None:
        """Report the problems, and folders without any skill, which often are a wrong path."""
        await self._report_problems()
        if self._on_problem is not log_problem:
            return
        for mount in self._sources:
            catalog = mount.catalog
            if isinstance(catalog, LoadedCatalog) and not catalog.snapshot().has_skills():
                log.warning("%r has no skills: a skill is a folder with a file named SKILL.md", str(catalog.root))

    async def _report_problems(self) -> None:
        """Report every problem once, until it is fixed."""
        if self._on_problem is ignore_problem:
            return
        try:
            problems = frozenset(await self.catalog.problems())
        except SkillwireError as error:  # the server does not depend on this report
            log.warning("the problems of the skills are unknown: %s", error.message)
            return
        except Exception:  # a catalog may raise anything
            log.exception("the problems of the skills are unknown")
            return
        new, self._reported = problems - self._reported, problems
        for problem in sorted(new, key=lambda each: (each.file, each.reference)):
            self._on_problem(problem)


def _local_source(
    place: str | os.PathLike[str], scheme: str, describe: Describe | None
) -> ArchiveCatalog | DirectoryCatalog:
    """The catalog of a folder or an archive that exists."""
    if not isinstance(cast("object", place), str | PathLike):
        raise TypeError(
            f"cannot serve {type(place).__name__}: give folders, archives and catalogs, such as Skills('a', 'b')"
        )
    catalog = local_catalog(place, scheme=scheme, describe=describe)
    try:
        catalog.demand_root()
    except NotFoundError as error:
        raise NotFoundError(error.reference, error.message, _source_hint(place, error.hint)) from error
    return catalog


def _source_hint(place: str | os.PathLike[str], hint: str) -> str:
    """What to do about a source that does not exist."""
    if isinstance(place, str) and "://" in place:
        return "for a repository give GitCatalog(url); for a server, connect(url) has a catalog"
    path = Path(place)
    if path.is_file():
        return "this is a file: give the folder around it, or an archive (.zip, .tar.gz, .tgz)"
    if path.is_absolute():
        return hint
    return f"the current folder is {str(Path.cwd())!r}; Path(__file__).parent / {str(path)!r} is beside your file"


def _refuse(problems: Sequence[Diagnostic]) -> None:
    if problems:
        lines = [f"{each.file}: {each.message} [{each.reference}]" for each in problems]
        raise FormatError(
            "skills-have-problems",
            f"{len(lines)} problems in the skills:\n" + "\n".join(lines),
            "fix them, or omit strict=True to serve the other skills",
        )


def build_server(skills: Skills, *, name: str = "skillwire", instructions: str | None = None) -> Server[Any]:
    """A server with only ``skills``. Run it on any transport of the SDK."""
    return skills.attach(Server(name, version=version("skillwire"), instructions=instructions))


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client on stdin and stdout until stdin closes."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
