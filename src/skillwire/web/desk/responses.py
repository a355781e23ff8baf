"""Addresses and responses of the desk: pages, refusals and errors.

A skill is at ``/skill/<origin>/<path>`` if its URI is the usual one for that path, otherwise at
``/skill/<origin>/<URI>``. The path of a file is in the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

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
    from collections.abc import Mapping

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


class RefusalPage(NamedTuple):
    """A page that refuses a request: the reason, and what to do."""

    status: int
    title: str
    text: str


REFUSALS = {
    "no-session": RefusalPage(
        401,
        "Open the desk with its link",
        "This browser has no session, or the desk was restarted. Use the link that “skillwire ui” printed.",
    ),
    "link-used": RefusalPage(
        410,
        "This link was already used",
        "A link opens the desk once, in one browser. If you used it, go back to that browser. If you did not,"
        " another person has access to your desk: stop “skillwire ui” with Ctrl-C, check the log, and start it"
        " again for a new link.",
    ),
    "link-unknown": RefusalPage(
        403,
        "Invalid link",
        "The link is incomplete, or its desk has ended. Use the link that “skillwire ui” printed last.",
    ),
    "wrong-origin": RefusalPage(
        403,
        "Request from another site",
        "The desk accepts requests only from its own pages. Nothing was changed.",
    ),
    "wrong-token": RefusalPage(
        403,
        "This form belongs to another session",
        "Nothing was changed. Go back, reload the page, and try again.",
    ),
    "form-too-large": RefusalPage(413, "The form is too large", "Nothing was changed. Send less text."),
    "too-many-streams": RefusalPage(503, "Too many open pages", "Close some of them."),
}


def page_response(request: Request, template: str, *, status: int = 200, **context: object) -> Response:
    """Render a page or a part of one, with the form token of the session."""
    session = getattr(request.state, "session", None)
    response = page(template, status=status, csrf=session.csrf if session else "", **context)
    response.headers.update(HEADERS)
    return response


def refusal(kind: str, request: Request) -> Response:
    """The page for one of ``REFUSALS``."""
    reason = REFUSALS[kind]
    return page_response(request, "desk/refusal.html", status=reason.status, refusal=reason)


def error_page(request: Request, error: Exception) -> Response:
    """The page for a ``SkillwireError``."""
    assert isinstance(error, SkillwireError)  # noqa: S101 - registered only for these
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    return page_response(request, "desk/error.html", status=status, error=error)


def redirect(url: str) -> Response:
    """Redirect to the page that shows the result of a change."""
    return RedirectResponse(url, 303, headers=HEADERS)


def skill_url(origin: str, uri: str, **query: str) -> str:
    """The page of a skill."""
    return _url("/skill", origin, uri, query)


def file_url(origin: str, uri: str, path: str) -> str:
    """The page of a file of a skill."""
    return _url("/file", origin, uri, {"path": path})


def raw_url(origin: str, uri: str, path: str) -> str:
    """The bytes of a file of a skill."""
    return _url("/raw", origin, uri, {"path": path})


def action_url(action: str, origin: str, uri: str) -> str:
    """The target of a form about a skill."""
    return _url(f"/{action}", origin, uri, {})


def uri_from_path(path: str) -> str:
    """The URI of the skill in the path of an address."""
    return path if "://" in path else skill_md_uri(path)


def path_in_skill(skill: str, uri: str) -> str:
    """The path of a file inside the skill whose ``SKILL.md`` is at ``skill``; its URI if it is outside (P4)."""
    try:
        root, place = skill_root(parse_uri(skill)), parse_uri(uri)
    except FormatError:
        return uri
    depth = len(root.segments)
    is_inside = place.scheme == root.scheme and place.segments[:depth] == root.segments
    return "/".join(place.segments[depth:]) if is_inside else uri


def _url(page: str, origin: str, uri: str, query: Mapping[str, str]) -> str:
    suffix = f"?{urlencode(query)}" if query else ""
    return f"{page}/{quote(origin, safe='')}/{_skill_part(uri)}{suffix}"


def _skill_part(uri: str) -> str:
    try:
        path = skill_root(parse_uri(uri)).path
    except FormatError:
        return quote(uri, safe="")
    is_usual = skill_md_uri(path) == uri and "://" not in path
    return quote(path, safe="/") if is_usual else quote(uri, safe="")
