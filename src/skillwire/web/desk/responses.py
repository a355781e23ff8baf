"""Addresses and responses of the desk: pages, redirects and errors.

A skill is at ``/skill/<origin>/<path>`` if its URI is the usual one for that path, otherwise at
``/skill/<origin>/<URI>``. The path of a file is in the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from starlette.responses import RedirectResponse, Response

from skillwire.errors import FormatError
from skillwire.skill.uri import parse_uri, skill_md_uri, skill_root
from skillwire.web.theme import PAGE_HEADERS, error_of, error_title, page

if TYPE_CHECKING:
    from starlette.requests import Request

# Pages contain private data and change often, so browsers must not store them.
HEADERS = {**PAGE_HEADERS, "Cache-Control": "no-store"}


def page_response(
    request: Request, template: str, *, block: str = "", status: int = 200, **context: object
) -> Response:
    """Render a page or one of its blocks, with the form token of the session."""
    csrf = getattr(request.state, "csrf", "")
    response = page(template, block=block, status=status, frame="desk/frame.html", csrf=csrf, **context)
    response.headers.update(HEADERS)
    return response


def error_page(request: Request, error: Exception) -> Response:
    """The page for an error: one of ours, an unknown page or method, or a defect."""
    status, shown = error_of(request, error)
    home = ("/", "Back to the overview")
    return page_response(
        request, "message.html", status=status, title=error_title(status), error=shown, action=home
    )


def redirect(url: str) -> Response:
    """Redirect to the page that shows the result of a change."""
    return RedirectResponse(url, 303, headers=HEADERS)


def skill_url(origin: str, uri: str, page: str = "skill", **query: str) -> str:
    """The address of a page or a form about a skill; for ``file`` and ``raw``, the query has the ``path``."""
    try:
        path = skill_root(parse_uri(uri)).path
    except FormatError:
        path = ""
    is_usual = path and skill_md_uri(path) == uri and "://" not in path
    place = quote(path, safe="/") if is_usual else quote(uri, safe="")
    return f"/{page}/{quote(origin, safe='')}/{place}" + (f"?{urlencode(query)}" if query else "")


def named_skill(request: Request) -> tuple[str, str]:
    """The origin and the URI of the skill in the address of a request."""
    path = request.path_params["skill"]
    return request.path_params["origin"], path if "://" in path else skill_md_uri(path)
