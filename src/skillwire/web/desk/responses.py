"""Responses of the desk: pages, refusals and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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
from skillwire.web.headers import PAGE_HEADERS
from skillwire.web.theme import page

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
