"""Addresses and responses of the desk: pages, redirects and errors.

A skill is at ``/skill/<origin>/<path>`` if its URI is the usual one for that path, otherwise at
``/skill/<origin>/<URI>``. The path of a file is in the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from skillwire.errors import (
    ApprovalError,
    FormatError,
    LimitError,
    NotFoundError,
    OriginError,
    SkillwireError,
    StoreError,
    UpstreamError,
    VerificationError,
)
from skillwire.skill.uri import parse_uri, skill_md_uri, skill_root
from skillwire.web.theme import PAGE_HEADERS, page

if TYPE_CHECKING:
    from starlette.requests import Request

# Pages contain private data and change often, so browsers must not store them.
HEADERS = {**PAGE_HEADERS, "Cache-Control": "no-store"}
_STATUSES: tuple[tuple[type[SkillwireError], int], ...] = (
    (NotFoundError, 404),
    (OriginError, 404),
    (ApprovalError, 409),
    (FormatError, 400),
    (VerificationError, 409),
    (LimitError, 413),
    (UpstreamError, 502),
    (StoreError, 503),
)


def page_response(
    request: Request, template: str, *, block: str = "", status: int = 200, **context: object
) -> Response:
    """Render a page or one of its blocks, with the form token of the session."""
    session = getattr(request.state, "session", None)
    response = page(template, block=block, status=status, csrf=session.csrf if session else "", **context)
    response.headers.update(HEADERS)
    return response


def error_page(request: Request, error: Exception) -> Response:
    """The page for an error: one of ours, an unknown page or method, or a bug.

    The traceback of a bug is in the terminal of ``skillwire ui``.
    """
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    if isinstance(error, HTTPException):
        status = error.status_code
        error = NotFoundError("page-unknown", "this page does not exist", "go back to the overview")
    elif not isinstance(error, SkillwireError):
        hint = "see the terminal of skillwire ui"
        error = SkillwireError("desk-broken", "the desk had an internal error", hint)
    title = "Not found" if status == 404 else "This page cannot be shown"
    return page_response(request, "desk/message.html", status=status, title=title, error=error)


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
