"""Answers of the desk: pages with what every page needs, and refusals and errors in words for people."""

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

# What a person looks at is theirs alone, and may be another thing a moment later: nothing of it is kept.
HEADERS = {**PAGE_HEADERS, "Cache-Control": "no-store"}


class Words(NamedTuple):
    """A page that says no: what happened, and what to do."""

    status: int
    title: str
    text: str


REFUSALS = {
    "no-session": Words(
        401,
        "Open the desk with its link",
        "This browser has not opened the desk, or the desk was started again since. Use the link that"
        " “skillwire ui” printed when it started.",
    ),
    "link-used": Words(
        410,
        "This link was used already",
        "A link opens the desk once, in one browser. If you used it, go back to that browser. If it was not you,"
        " somebody else is at your desk: end it with Ctrl-C where “skillwire ui” runs, look at the log, and start"
        " it again for a new link.",
    ),
    "link-unknown": Words(
        403,
        "This is not the desk’s link",
        "It is not whole, or belongs to a desk that has ended. Use the link that “skillwire ui” printed last.",
    ),
    "wrong-origin": Words(
        403,
        "Another page sent this",
        "The desk takes requests from its own pages only, and nothing was changed.",
    ),
    "wrong-token": Words(
        403,
        "This form is not from this session",
        "Nothing was changed. Go back, reload the page, and try again.",
    ),
    "form-too-large": Words(413, "That is too much for one form", "Nothing was changed. Write less."),
    "too-many-streams": Words(503, "Too many pages are open", "Close some of them."),
}
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


def shown(request: Request, template: str, *, status: int = 200, **context: object) -> Response:
    """A page, or a part of one, for the session of ``request``."""
    session = getattr(request.state, "session", None)
    answer = page(template, status=status, csrf=session.csrf if session else "", **context)
    answer.headers.update(HEADERS)
    return answer


def refusal(kind: str, request: Request) -> Response:
    """A page that says why not."""
    words = REFUSALS[kind]
    return shown(request, "desk/refusal.html", status=words.status, words=words)


def failure(request: Request, error: Exception) -> Response:
    """One of our errors as a page."""
    assert isinstance(error, SkillwireError)  # noqa: S101 - it is only ever registered for those
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    return shown(request, "desk/failure.html", status=status, error=error)


def goes_to(address: str) -> Response:
    """After a change: the page that shows it."""
    return RedirectResponse(address, 303, headers=HEADERS)
