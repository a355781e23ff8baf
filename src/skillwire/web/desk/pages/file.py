"""``/file/…`` and ``/raw/…``: one file of a skill, and its bytes. Fetched and verified when opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.responses import Response
from starlette.routing import Route

from skillwire.errors import NotFoundError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.web.desk.urls import file_url, link_in, path_in_skill, raw_url, skill_url
from skillwire.web.headers import file_headers, image_type
from skillwire.web.highlight import code
from skillwire.web.markdown import markdown

if TYPE_CHECKING:
    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from skillwire.host.names import NamedEntry
    from skillwire.web.desk.app import Desk


def routes(desk: Desk) -> list[BaseRoute]:
    """The page of a file, and its bytes."""

    async def file(request: Request) -> Response:
        found, uri, path = await _find_file(desk, request)
        content = await desk.reader.read(found, uri)
        view = "rendered" if request.query_params.get("view") == "rendered" and _is_markdown(path) else "source"
        html = await to_thread.run_sync(_html, found, uri, path, content.data, view)
        resource = found.entry.resource(uri)
        return await desk.show(
            request,
            "desk/file.html",
            skill=found,
            path=path,
            size=len(content.data),
            digest=None if resource is None else resource.digest,
            html=html,
            view=view if _is_markdown(path) else "",
            image=image_type(path) is not None,
            raw=raw_url(found.origin.label, found.entry.uri, path),
            here=file_url(found.origin.label, found.entry.uri, path),
            back=skill_url(found.origin.label, found.entry.uri),
        )

    async def raw(request: Request) -> Response:
        found, uri, path = await _find_file(desk, request)
        content = await desk.reader.read(found, uri)
        return Response(content.data, headers={**file_headers(path), "Cache-Control": "no-store"})

    path = "{origin}/{skill:path}"
    return [Route(f"/file/{path}", file), Route(f"/raw/{path}", raw)]


async def _find_file(desk: Desk, request: Request) -> tuple[NamedEntry, str, str]:
    """The skill, and the URI and path of one of its listed files (V2)."""
    found, wanted = await desk.requested_skill(request), request.query_params.get("path", "")
    uris = [file.uri for file in found.entry.files] or [found.entry.uri]
    for uri in uris:
        if path_in_skill(found.entry.uri, uri) == wanted:
            return found, uri, wanted
    raise NotFoundError(
        "file-unlisted",
        f"{found.entry.uri!r:.300} has no file {wanted!r:.200}",
        "go back to the skill, which may have changed",
        rule="V2",
    )


def _html(found: NamedEntry, uri: str, path: str, data: bytes, view: str) -> Markup | None:
    """The text as HTML; ``None`` if the file is not text or too large."""
    if len(data) > DEFAULT_LIMITS.max_checked_text:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if view == "rendered":
        return markdown(text, link=link_in(found.origin.label, found.entry, uri))
    return code(text, path)


def _is_markdown(path: str) -> bool:
    return path.lower().endswith((".md", ".markdown"))
