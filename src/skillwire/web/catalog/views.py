"""The routes of the catalog's page. Each shows what the protocol would show to the same caller, no more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route, Router

from skillwire.errors import SkillwireError
from skillwire.server.page import KNOWN
from skillwire.skill.uri import SKILL_MD, parse_uri
from skillwire.web.catalog.connecting import hosts
from skillwire.web.catalog.framed import framed
from skillwire.web.catalog.left_out import left_out
from skillwire.web.catalog.paths import AllPaths
from skillwire.web.catalog.rows import found_row, row_of
from skillwire.web.catalog.signing import Signing, unkept
from skillwire.web.catalog.skill import (
    MOST_FILES,
    Texts,
    amount_of,
    facts_of,
    files_of,
    find_around,
    last_change,
    parse_file_path,
    parse_skill_path,
    rendered,
)
from skillwire.web.catalog.troubles import Troubles
from skillwire.web.catalog.viewing import most_shown, shown
from skillwire.web.headers import FILE_HEADERS, file_headers
from skillwire.web.text import snippet
from skillwire.web.theme import static_route
from skillwire.wire.extension import get_result

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from skillwire.catalog.contract import Catalog
    from skillwire.web.catalog.site import Site

    View = Callable[[Request], Awaitable[Response]]

PAGE_SIZE = 100
MOST_FOUND = 50
_LONGEST_QUERY = 1000
_LARGEST_ENTRY = 24_000


def routes(site: Site) -> ASGIApp:
    """The whole page."""
    views, signing = Views(site), Signing(site)

    def known(view: View) -> View:
        """Only for callers who may come in."""

        async def answered(request: Request) -> Response:
            return await view(request) if request.scope.get(KNOWN, False) else signing.ask(request)

        return answered

    router = Router(
        [
            Route("/", known(views.listing)),
            Route("/search", known(views.search)),
            Route("/connect", known(views.connect)),
            Route("/left-out", known(views.left_out)),
            Route("/skill/{path:path}", known(views.skill)),
            Route("/entry/{path:path}", known(views.entry)),
            Route("/file/{path:path}", known(views.file)),
            Route("/raw/{path:path}", known(views.raw)),
            Route("/sign-in", signing.form),
            Route("/sign-in", signing.sign_in, methods=["POST"]),
            Route("/sign-out", signing.sign_out, methods=["POST"]),
            static_route(),
        ]
    )
    app = ExceptionMiddleware(router, handlers=Troubles(site, signing).handlers)
    return unkept(app) if site.needs_token else app


class Views:
    """One view for each address."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._paths = AllPaths()

    async def listing(self, request: Request) -> Response:
        """What is served, by path; ``under`` a folder, ``after`` a path."""
        return self._page("catalog/list.html", **await self._listed(request))

    async def search(self, request: Request) -> Response:
        """The search of ``search_skills``; with ``part``, only what replaces the results on the page."""
        query = request.query_params.get("q", "")[:_LONGEST_QUERY]
        is_part = "part" in request.query_params
        if not query.strip():
            if not is_part:
                return RedirectResponse(f"{self._site.base}/", 303)
            return self._page("catalog/parts/listed.html", **await self._listed(request))
        found = await self._site.skills.search(query, MOST_FOUND)
        rows = [found_row(hit, entry, query) for hit, entry in found]
        template = "catalog/parts/found.html" if is_part else "catalog/search.html"
        return self._page(template, query=query, rows=rows, is_full=len(rows) == MOST_FOUND)

    async def skill(self, request: Request) -> Response:
        """One skill: its text, its fields, its files, its entry, and how hosts get at it."""
        catalog = self._catalog
        entry = await catalog.get_skill(self._skill_uri(request))
        files = await files_of(catalog, entry)
        body = await rendered(catalog, entry, self._site.base)
        sent = json.dumps(get_result(entry), indent=2, ensure_ascii=False)
        is_all = "all" in request.query_params
        return self._page(
            "catalog/skill.html",
            entry=entry,
            root=str(parse_uri(entry.uri).parent),
            body=None if isinstance(body, SkillwireError) else body,
            error=body if isinstance(body, SkillwireError) else None,
            facts=facts_of(dict(entry.frontmatter)),
            files=files if is_all else files[:MOST_FILES],
            more=0 if is_all else max(len(files) - MOST_FILES, 0),
            amount=amount_of(entry, files),
            modified=last_change(entry, files),
            sent=snippet(sent, "json") if len(sent) <= _LARGEST_ENTRY else None,
            **self._connecting(request),
        )

    async def entry(self, request: Request) -> Response:
        """The answer to ``skills/get``, as the protocol sends it."""
        entry = await self._catalog.get_skill(self._skill_uri(request))
        return JSONResponse(get_result(entry), headers=dict(FILE_HEADERS))

    async def file(self, request: Request) -> Response:
        """One file: to read if it is text, to look at if it is an image, to download in any case."""
        catalog = self._catalog
        place = parse_file_path(request.path_params["path"], self._site.skills.scheme)
        entry = await find_around(catalog, place)
        known = entry.resource(str(place))
        context: dict[str, Any] = {"entry": entry, "place": place, "known": known, "view": None, "modified": None}
        if known is None or (known.size or 0) <= most_shown(place.segments[-1]):
            file = await catalog.read_file(str(place))
            texts = Texts(entry, place, self._site.base)
            is_source = request.query_params.get("as") == "text" or place.segments[-1] == SKILL_MD
            view = await to_thread.run_sync(lambda: shown(file.data, place.segments[-1], texts, as_text=is_source))
            context |= {"view": view, "modified": file.modified, "size": len(file.data)}
        else:
            context["size"] = known.size
        return self._page("catalog/file.html", **context)

    async def raw(self, request: Request) -> Response:
        """The bytes of a file: an image, or a download. Never a document of ours."""
        place = parse_file_path(request.path_params["path"], self._site.skills.scheme)
        file = await self._catalog.read_file(str(place))
        return Response(file.data, headers=file_headers(place.segments[-1]))

    async def left_out(self, request: Request) -> Response:  # noqa: ARG002 - the shape of a Starlette endpoint
        """What is not served, and why; what is served although something is wrong with it."""
        catalog = self._catalog
        found = await left_out(catalog, self._paths.of(catalog), self._site)
        return self._page("catalog/left_out.html", **found)

    async def connect(self, request: Request) -> Response:
        """How hosts are told of this server."""
        return self._page("catalog/connect.html", **self._connecting(request))

    async def _listed(self, request: Request) -> dict[str, Any]:
        catalog, paths = self._catalog, self._paths.of(self._catalog)
        under = request.query_params.get("under", "").strip("/")
        part = await paths.part(under, request.query_params.get("after", ""), PAGE_SIZE)
        entries = [await catalog.peek_skill(uri) for uri in part.uris]
        folders = await paths.folders(under)
        rows = [row_of(entry) for entry in entries if entry is not None]
        return {"under": under, "part": part, "rows": rows, "folders": folders}

    def _connecting(self, request: Request) -> dict[str, Any]:
        site = self._site
        url = site.url_for(request)
        return {"url": url, "hosts": hosts(site.name, url, token=site.needs_token), "token": site.needs_token}

    def _skill_uri(self, request: Request) -> str:
        return parse_skill_path(request.path_params["path"].rstrip("/"), self._site.skills.scheme)

    @property
    def _catalog(self) -> Catalog:
        return self._site.skills.visible()

    def _page(self, template: str, **context: Any) -> Response:
        return framed(self._site, template, **context)
