"""The routes and pages of the catalog. Each shows what the protocol would show to the same caller, and no more."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import quote

import anyio
from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route, Router

from skillwire.amounts import counted, size_of
from skillwire.catalog.examination import Examiner, review_skill
from skillwire.catalog.packer import Packer
from skillwire.errors import FormatError, NotFoundError, SkillwireError
from skillwire.install.agents import find_agent
from skillwire.install.config_edit import COMMON_HOSTS, host_setups
from skillwire.server.callers import ViewCache
from skillwire.server.page import KNOWN
from skillwire.skill.entry import digest_of
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.review import Review, review_files
from skillwire.skill.uri import SKILL_MD, format_uri, parse_path, parse_uri, path_in_skill, skill_md_uri
from skillwire.skill.version_status import version_status
from skillwire.web.catalog.lists import MAX_VIEWS, ListFilter, SkillPaths, list_row, visible_problems
from skillwire.web.catalog.site import SignIn, no_store
from skillwire.web.files import (
    FILE_HEADERS,
    MAX_FILES,
    FileView,
    file_headers,
    file_tree,
    file_view,
    image_type,
    max_shown_size,
    skill_links,
)
from skillwire.web.highlight import snippet
from skillwire.web.markdown import markdown, table_of_contents
from skillwire.web.theme import PAGE_HEADERS, error_of, error_title, field_texts, static_route
from skillwire.wire.extension import get_result
from skillwire.wire.meta import ORIGIN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import SkillEntry
    from skillwire.skill.uri import SkillUri
    from skillwire.web.catalog.site import Site, Work
    from skillwire.web.events import ChangeCounter
    from skillwire.web.files import TreeNode
    from skillwire.web.markdown import LinkTo

    View: TypeAlias = Callable[[Request], Awaitable[Response]]

MAX_FOUND = 50
_MAX_PAGES = 10  # of search results
TABS = {"text": "SKILL.md", "files": "Files", "findings": "Findings", "install": "Install", "details": "Details"}
_MAX_QUERY = 1000
_MAX_WALKED = 512
_HINT = "it may have been moved or renamed; search for it"
_MAX_ENTRY = 24_000
_PATIENCE_SECONDS = 1.0


def application(site: Site, pages: CatalogPages | None = None) -> tuple[ASGIApp, Work]:
    """The web application of ``site``, and its work in the background."""
    pages, sign_in = pages or CatalogPages(site), SignIn(site)

    def signed_in(view: View) -> View:
        """``view`` for callers who may use the server; others get the sign-in page."""

        async def guarded(request: Request) -> Response:
            if not request.scope.get(KNOWN, False):
                return sign_in.ask(request)
            await site.skills.identify_caller()
            return await view(request)

        return guarded

    router = Router(
        [
            *(Route(path, signed_in(view)) for path, view in pages.views.items()),
            *(Route(path, signed_in(form), methods=["POST"]) for path, form in pages.forms.items()),
            Route("/sign-in", sign_in.form),
            Route("/sign-in", sign_in.submit, methods=["POST"]),
            Route("/sign-out", sign_in.sign_out, methods=["POST"]),
            static_route(),
        ]
    )

    async def failed(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and not request.scope.get(KNOWN, False):
            return sign_in.ask(request)
        status, shown = error_of(request, error)
        home = (f"{site.base}/", "Show all skills")
        response = site.page("message.html", status=status, title=error_title(status), error=shown, action=home)
        response.headers.update(getattr(error, "headers", None) or {})
        return response

    app = ExceptionMiddleware(router, handlers=dict.fromkeys((SkillwireError, HTTPException, Exception), failed))
    return (no_store(app) if site.sessions is not None else app), pages.run


class CatalogPages:
    """One method for each address."""

    list_template = "catalog/list.html"
    skill_template = "catalog/skill.html"

    def __init__(self, site: Site) -> None:
        self._site = site
        self._outdated = anyio.Event()
        self._paths = ViewCache(lambda view: SkillPaths(view, self._refresh), MAX_VIEWS)
        self._examiner = Examiner(self._tell)
        self._packer = Packer()

    async def run(self) -> None:
        """Keep the lists current, and examine their skills, until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._examiner.run)
            while True:
                self._outdated = anyio.Event()
                for paths in self._paths.values():
                    with suppress(SkillwireError):  # the next request has the error
                        self._examiner.ask_all(paths.catalog, (await paths.listing()).entries)
                await self._outdated.wait()

    def _refresh(self) -> None:
        self._outdated.set()

    def _tell(self) -> None:
        for paths in self._paths.values():
            paths.tell()

    @property
    def views(self) -> dict[str, View]:
        """The pages by their paths."""
        return {
            "/": self.listing,
            "/search": self.search,
            "/connect": self.connect,
            "/problems": self.problems,
            "/events": self.events,
            "/skill/{path:path}": self.skill,
            "/entry/{path:path}": self.entry,
            "/file/{path:path}": self.file,
            "/raw/{path:path}": self.raw,
            "/zip/{path:path}": self.archive,
        }

    @property
    def forms(self) -> dict[str, View]:
        """What forms are sent to. Those of a catalog change nothing."""
        return {}

    async def about(self, entry: SkillEntry) -> dict[str, Any]:  # noqa: ARG002 - for pages that know more
        """What the page of a skill shows besides its entry."""
        return {}

    async def listing(self, request: Request) -> Response:
        """The listed skills: filtered, sorted, by page. The first page also introduces the server."""
        block = "results" if "part" in request.query_params else ""
        return self._site.page(self.list_template, block=block, **await self._listed(request))

    async def search(self, request: Request) -> Response:
        """The results of ``search_skills``; with ``part``, only the HTML that replaces the results on the page."""
        query = request.query_params.get("q", "").strip()[:_MAX_QUERY]
        block = "results" if "part" in request.query_params else ""
        if not query and not block:
            return RedirectResponse(f"{self._site.base}/", 303)
        if not query:
            return await self.listing(request)
        page = min(ListFilter.of(request.query_params).page, _MAX_PAGES)
        found = await self._site.skills.search(query, page * MAX_FOUND + 1)
        shown = found[(page - 1) * MAX_FOUND : page * MAX_FOUND]
        self._ask([entry for _, entry in shown])
        return self._site.page(
            self.list_template,
            block=block,
            query=query,
            rows=[list_row(entry, self._examiner.known(entry), hit, query) for hit, entry in shown],
            page=page,
            first=(page - 1) * MAX_FOUND + 1,
            total=len(found),
            has_more=len(found) > page * MAX_FOUND,
            similar=[] if found else await self._similar(query),
            number=self._changes.number,
        )

    async def events(self, request: Request) -> Response:
        """Announces changes of the skills that the caller may see."""
        busy = Response("too many open pages\n", 503, PAGE_HEADERS)
        headers = {**PAGE_HEADERS, "Cache-Control": "no-store"}
        return self._site.streams.response(request, self._changes, headers) or busy

    async def skill(self, request: Request) -> Response:
        """One skill, by tab: its text, its files, what was found in them, how to install it, and its entry."""
        catalog, site = self._catalog, self._site
        tab = request.query_params.get("tab", "")
        entry = await catalog.get_skill(self._skill_uri(request))
        files = await list_files(catalog, entry)
        context: dict[str, Any] = {"tab": tab if tab in TABS else "text", "tabs": TABS, "files": files}
        examined = await self._examiner.examine(catalog, entry)
        context["problems"] = () if examined is None else examined.others
        review = await review_text(catalog, entry) if examined is None or tab == "findings" else None
        context |= {"review": review, "risk": review.risk if review is not None else examined and examined.risk}
        if tab == "files":
            is_all = "all" in request.query_params
            context |= {"files": files if is_all else files[:MAX_FILES]}
            context |= {"more": 0 if is_all else max(len(files) - MAX_FILES, 0)}
        elif tab == "install":
            archives = await self._packer.digests(catalog, entry)
            command = shlex.join(["skillwire", "add", site.url_for(request), entry.path])
            context |= {**self._host_setups(request), "zip_digest": archives.get("zip"), "command": command}
            context["agents"] = [(each, find_agent(each).title) for each in COMMON_HOSTS]
        elif tab == "details":
            sent = json.dumps(get_result(entry), indent=2, ensure_ascii=False)
            context |= {"sent": snippet(sent, "json") if len(sent) <= _MAX_ENTRY else None}
        else:
            body, error = await rendered_body(catalog, entry, site.base)
            context |= {"body": body, "error": error, "toc": table_of_contents(body)}
        return site.page(
            self.skill_template,
            entry=entry,
            stated=version_status(entry),
            root=str(parse_uri(entry.uri).parent),
            facts=field_texts(entry.frontmatter, indent=2),
            tree=self._tree(files),
            amount=describe_amount(entry, files),
            modified=last_change(entry, files),
            origin=entry.meta.meta.get(ORIGIN),
            **context,
            **await self.about(entry),
        )

    async def archive(self, request: Request) -> Response:
        """A skill as a zip file, with its digest."""
        entry = await self._catalog.get_skill(self._skill_uri(request))
        data = await self._packer.archive(self._catalog, entry, "zip")
        if data is None:
            raise NotFoundError("archive-unknown", "this skill cannot be packed", "download its files one by one")
        name = f"{entry.path.rpartition('/')[2]}.zip"
        headers = {**file_headers(name), "Content-Type": "application/zip", "ETag": f'"{digest_of(data)}"'}
        return Response(data, headers=headers)

    async def entry(self, request: Request) -> Response:
        """The response to ``skills/get``, as the protocol sends it."""
        entry = await self._catalog.get_skill(self._skill_uri(request))
        return JSONResponse(get_result(entry), headers=dict(FILE_HEADERS))

    async def file(self, request: Request) -> Response:
        """One file: text and images are shown, and every file can be downloaded."""
        catalog = self._catalog
        uri = parse_file_path(request.path_params["path"], self._site.skills.scheme)
        name = uri.segments[-1]
        entry = await find_skill_around(catalog, uri)
        known, base, place = entry.resource(str(uri)), self._site.base, quote(uri.path)
        files = await list_files(catalog, entry)
        as_text = request.query_params.get("as") == "text"
        if known is None or (known.size or 0) <= max_shown_size(name):
            file = await catalog.read_file(str(uri))
            link, image = links_of(entry, uri, base)
            is_source = as_text or name == SKILL_MD
            view = await to_thread.run_sync(
                lambda: file_view(file.data, name, link=link, image=image, as_text=is_source)
            )
            modified, size = file.modified, len(file.data)
        else:
            view, modified, size = FileView("large"), None, known.size
        return self._site.page(
            "file.html",
            name=path_in_skill(entry.uri, str(uri)),
            skill_name=entry.folder_name,
            skill_path=entry.path,
            back=f"{base}/skill/{quote(entry.path)}",
            tree=self._tree(files),
            view=view,
            modified=modified,
            size=size,
            raw=f"{base}/raw/{place}",
            other_view="" if name == SKILL_MD else f"{base}/file/{place}{'' if as_text else '?as=text'}",
            digest=known.digest if known is not None else None,
            uri=str(uri),
        )

    async def raw(self, request: Request) -> Response:
        """The bytes of a file: an image or a download, never a document of this site."""
        uri = parse_file_path(request.path_params["path"], self._site.skills.scheme)
        file = await self._catalog.read_file(str(uri))
        return Response(file.data, headers=file_headers(uri.segments[-1]))

    async def problems(self, request: Request) -> Response:
        """The skills that are not served, and the problems of served ones."""
        paths, block = self._paths.of(self._catalog), "problems" if "part" in request.query_params else ""
        self._examiner.ask_all(paths.catalog, (await paths.listing()).entries)
        with anyio.move_on_after(_PATIENCE_SECONDS):  # a small catalog is examined at once: nothing moves later
            while self._examiner.remaining(paths.catalog):
                await paths.changed.wait()
        found = await visible_problems(paths, self._site, self._examiner)
        return self._site.page("catalog/problems.html", block=block, number=paths.number, **found)

    async def connect(self, request: Request) -> Response:
        """How to connect a host to this server."""
        return self._site.page("catalog/connect.html", **self._host_setups(request))

    async def _listed(self, request: Request) -> dict[str, Any]:
        paths = self._paths.of(self._catalog)
        wanted, number = ListFilter.of(request.query_params), paths.number
        part, listing = await paths.page(wanted, self._examiner), await paths.listing()
        found = [await paths.catalog.peek_skill(uri) for uri in part.rows]
        entries = [entry for entry in found if entry is not None]
        self._ask(entries)
        folders = listing.folders.get(wanted.under, {})
        sources = () if self._site.sources is None else self._site.sources()
        if self._site.needs_token:  # only those whose skills the caller sees
            sources = [source for source in sources if source.label in folders]
        return {
            "wanted": wanted,
            "part": part,
            "rows": [list_row(entry, self._examiner.known(entry)) for entry in entries],
            "unexamined": self._examiner.remaining(paths.catalog) if wanted.needs_files else 0,
            "folders": folders,
            "licenses": listing.licenses,
            "total": len(listing.entries),
            "sources": sources,
            "number": number,
        }

    def _tree(self, files: Sequence[File]) -> list[TreeNode]:
        return file_tree((file.name, f"{self._site.base}/file/{quote(file.path)}") for file in files[:MAX_FILES])

    def _ask(self, entries: Sequence[SkillEntry]) -> None:
        """Examine the skills of a page next."""
        self._examiner.ask(self._catalog, entries)

    async def _similar(self, query: str) -> list[str]:
        """Other words for a query without results."""
        return await self._paths.of(self._catalog).similar(query)

    def _host_setups(self, request: Request) -> dict[str, Any]:
        site = self._site
        url = site.url_for(request)
        return {
            "url": url,
            "hosts": host_setups(site.name, url, token=self._sends_token),
            "token": self._sends_token,
        }

    @property
    def _sends_token(self) -> bool:
        """Whether a host of the caller has to send a token."""
        return self._site.needs_token

    @property
    def _changes(self) -> ChangeCounter:
        """What changes when the skills of the caller do."""
        return self._paths.of(self._catalog)

    def _skill_uri(self, request: Request) -> str:
        return parse_skill_path(request.path_params["path"].rstrip("/"), self._site.skills.scheme)

    @property
    def _catalog(self) -> Catalog:
        return self._site.skills.visible()


class File(NamedTuple):
    """One file of a skill: its paths in the catalog and in the skill, and the claims of its entry."""

    path: str
    name: str
    uri: str
    digest: str | None
    size: int | None
    modified: float | None


def parse_skill_path(path: str, scheme: str) -> str:
    """The URI of the ``SKILL.md`` of the skill at ``path``; ``NotFoundError`` if the path is invalid."""
    try:
        return skill_md_uri(parse_path(path), scheme)
    except FormatError as error:
        raise NotFoundError("skill-unknown", f"no skill is served at {path!r:.200}", _HINT) from error


def parse_file_path(path: str, scheme: str) -> SkillUri:
    """The URI of the file at ``path``; ``NotFoundError`` if the path is invalid."""
    try:
        return parse_uri(format_uri(parse_path(path), scheme))
    except FormatError as error:
        raise NotFoundError("file-unknown", f"no skill has a file at {path!r:.200}", _HINT) from error


def links_of(entry: SkillEntry, file: SkillUri, base: str) -> tuple[LinkTo, LinkTo]:
    """The targets of links in a file of a skill, and of its images."""

    def image(place: SkillUri) -> str | None:
        return f"{base}/raw/{quote(place.path)}" if image_type(place.path) else None

    pages = skill_links(entry, file, lambda place: f"{base}/file/{quote(place.path)}", outward=True)
    return pages, skill_links(entry, file, image)


async def find_skill_around(catalog: Catalog, file: SkillUri) -> SkillEntry:
    """The innermost skill around a file."""
    entry = await catalog.skill_around(file.parent)
    if entry is not None:
        return entry
    raise NotFoundError("file-unknown", f"no skill has a file at {str(file)!r:.300}", _HINT)


async def review_text(catalog: Catalog, entry: SkillEntry) -> Review:
    """The review of a skill. Of a skill on another server, only the ``SKILL.md`` is read (V5)."""
    if entry.local:
        return await review_skill(catalog, entry)
    try:
        files = [(SKILL_MD, (await catalog.read_file(entry.uri)).data)]
    except SkillwireError:
        files = []
    return await to_thread.run_sync(review_files, entry, files)


async def rendered_body(catalog: Catalog, entry: SkillEntry, base: str) -> tuple[Markup, SkillwireError | None]:
    """The rendered ``SKILL.md`` without its frontmatter, or the error that prevents it."""
    link, image = links_of(entry, parse_uri(entry.uri), base)
    try:
        body = parse_skill_md((await catalog.read_file(entry.uri)).data).body
    except SkillwireError as error:
        return markdown("", link=link), error
    return await to_thread.run_sync(lambda: markdown(body, link=link, image=image)), None


async def list_files(catalog: Catalog, entry: SkillEntry) -> list[File]:
    """The files of a skill, ``SKILL.md`` first; for a dynamic skill, its current files."""
    known = [(file.uri, file.digest, file.size) for file in entry.files]
    times: dict[str, float | None] = {}
    if not known or (len(known) <= _MAX_WALKED and entry.local):
        there = await _walked(catalog, str(parse_uri(entry.uri).parent))
        times = {uri: modified for uri, _, modified in there}
        known = known or [(uri, None, size) for uri, size, _ in there]
    files = [
        File(parse_uri(uri).path, path_in_skill(entry.uri, uri) or uri, uri, digest, size, times.get(uri))
        for uri, digest, size in known
    ]
    return sorted(files, key=lambda file: (file.uri != entry.uri, file.path))


def describe_amount(entry: SkillEntry, files: Sequence[File]) -> str:
    """The number and size of the files of a skill, as far as they are known."""
    if not files:
        return "files unknown"
    many = counted(len(files), "file")
    if not entry.is_complete:
        return f"at least {many}"
    return f"{many}, sizes partly unknown" if "size" in entry.gaps else f"{many}, {size_of(entry.size)}"


def last_change(entry: SkillEntry, files: Sequence[File]) -> float | None:
    """The time of the last change of any file of the skill, if it is known."""
    times = [file.modified for file in files if file.modified is not None]
    return max(times, default=entry.modified)


async def _walked(catalog: Catalog, root: str) -> list[tuple[str, int | None, float | None]]:
    found: list[tuple[str, int | None, float | None]] = []
    try:
        async for child in catalog.walk(root):
            found.append((child.uri, child.size, child.modified))
            if len(found) == _MAX_WALKED:
                break
    except SkillwireError:  # the page works without the times
        return []
    return found
