"""``/file/…`` and ``/raw/…``: one file of a skill, and its bytes. Fetched when it is opened, verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.responses import Response
from starlette.routing import Route

from skillwire.errors import NotFoundError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.web.desk.places import file_place, path_inside, raw_place, skill_place
from skillwire.web.desk.rendering import link_in
from skillwire.web.headers import file_headers, image_type
from skillwire.web.text import code, markdown

if TYPE_CHECKING:
    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from skillwire.host.names import NamedEntry
    from skillwire.web.desk.desk import Desk


def routes(desk: Desk) -> list[BaseRoute]:
    """The viewer, and the bytes."""

    async def file(request: Request) -> Response:
        found, uri, path = await _located(desk, request)
        content = await desk.reader.read(found, uri)
        view = "rendered" if request.query_params.get("view") == "rendered" and _is_markdown(path) else "source"
        html = await to_thread.run_sync(_shown, found, uri, path, content.data, view)
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
            raw=raw_place(found.origin.label, found.entry.uri, path),
            here=file_place(found.origin.label, found.entry.uri, path),
            back=skill_place(found.origin.label, found.entry.uri),
        )

    async def raw(request: Request) -> Response:
        found, uri, path = await _located(desk, request)
        content = await desk.reader.read(found, uri)
        return Response(content.data, headers={**file_headers(path), "Cache-Control": "no-store"})

    place = "{origin}/{place:path}"
    return [Route(f"/file/{place}", file), Route(f"/raw/{place}", raw)]


async def _located(desk: Desk, request: Request) -> tuple[NamedEntry, str, str]:
    """The skill, and the URI and path of a file that it lists (V2)."""
    found, wanted = await desk.find(request), request.query_params.get("path", "")
    uris = [file.uri for file in found.entry.files] or [found.entry.uri]
    for uri in uris:
        if path_inside(found.entry.uri, uri) == wanted:
            return found, uri, wanted
    raise NotFoundError(
        "file-unlisted",
        f"{found.entry.uri!r:.300} has no file {wanted!r:.200}",
        "go back to the skill: it may have changed",
        rule="V2",
    )


def _shown(found: NamedEntry, uri: str, path: str, data: bytes, view: str) -> Markup | None:
    """The text as HTML; ``None`` if it is no text, or too much of it."""
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
