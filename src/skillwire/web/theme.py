"""What all pages share: templates, static files, forms, and the format of sizes and times.

Templates escape everything except ``Markup``. ``base`` is the path where the pages are mounted (``""`` at the
root), and ``m`` has the macros. ``static('style.css')`` is the address of a file in ``static/`` with its digest,
so that browsers can cache it without ever using an old version. A block of a page can be rendered alone, to update
a part of the page in the browser.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from skillwire import __version__
from skillwire.amounts import counted, size_of
from skillwire.errors import (
    ApprovalError,
    ConflictError,
    FormatError,
    LimitError,
    NotFoundError,
    OriginError,
    ProtocolError,
    SkillwireError,
    UpstreamError,
    VerificationError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Environment
    from jinja2.runtime import Context
    from markupsafe import Markup
    from starlette.requests import Request

    from skillwire.skill import Json

T = TypeVar("T")
PAGE_SIZE = 100  # rows of a list
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A page loads only scripts and styles of this program, none inline and none from other servers.
PAGE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": browsers would then send "Origin: null" with our own forms, which could not be checked.
    # Other sites receive no referrer either way.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
_HERE = Path(__file__).parent
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png"}
_IMMUTABLE = "public, max-age=31536000, immutable"
_STATUSES: tuple[tuple[type[SkillwireError], int], ...] = (
    (NotFoundError, 404),
    (OriginError, 404),
    (FormatError, 400),
    (ConflictError, 409),
    (VerificationError, 409),
    (LimitError, 413),
    (UpstreamError, 502),
)
_TITLES = {403: "Not allowed", 404: "Not found", 409: "Nothing was changed"}
log = logging.getLogger("skillwire.page")
_SPANS = ((60, 1, "second"), (3600, 60, "minute"), (86_400, 3600, "hour"), (30 * 86_400, 86_400, "day"))


class _Static(NamedTuple):
    data: bytes
    version: str
    media_type: str


class ListPage(NamedTuple, Generic[T]):
    """One page of a list, and its position."""

    rows: Sequence[T]
    page: int
    total: int

    @property
    def pages(self) -> int:
        """The number of pages; at least one."""
        return max(1, -(-self.total // PAGE_SIZE))

    @property
    def first(self) -> int:
        """The number of the first row of the page."""
        return (self.page - 1) * PAGE_SIZE + 1

    @property
    def last(self) -> int:
        """The number of the last row of the page."""
        return self.first + len(self.rows) - 1


def list_page(rows: Sequence[T], page: int) -> ListPage[T]:
    """A page of ``rows``."""
    return ListPage(rows[(page - 1) * PAGE_SIZE : page * PAGE_SIZE], page, len(rows))


def page_number(query: Mapping[str, str]) -> int:
    """The number of the requested page; the first one if it is invalid."""
    number = query.get("page", "")[:6]
    return max(int(number), 1) if number.isascii() and number.isdigit() else 1


def render(template: str, *, block: str = "", **context: object) -> str:
    """Render ``template`` with ``context``, or only one of its blocks."""
    found, values = _environment().get_template(template), {"base": "", **context}
    return "".join(found.blocks[block](found.new_context(values))) if block else found.render(values)


def prepare(folder: str) -> None:
    """Compile the templates of ``folder`` now, so that no request waits for it."""
    for name in _environment().list_templates(filter_func=lambda name: name.startswith(folder)):
        _environment().get_template(name)


def page(template: str, *, block: str = "", status: int = 200, **context: object) -> HTMLResponse:
    """Render ``template``, or one of its blocks, as a response with the security headers."""
    text = render(template, block=block, status=status, **context)
    html = text.encode(errors="replace")  # untrusted text may contain lone surrogates
    return HTMLResponse(html, status, headers=dict(PAGE_HEADERS))


def error_of(request: Request, error: Exception) -> tuple[int, SkillwireError]:
    """The status and the text of a page about an error. An unexpected one shows only a number, for the log."""
    path, method = request.url.path, request.method
    if isinstance(error, HTTPException) and error.status_code == 405:
        message = f"{path!r:.200} does not support {method:.20}"
        return 405, ProtocolError("method-refused", message, "open a page instead")
    if isinstance(error, HTTPException):
        return error.status_code, NotFoundError(
            "page-unknown", f"there is no page {path!r:.200}", "go to the list"
        )
    if isinstance(error, ApprovalError):
        return 403 if method == "GET" else 409, error
    if isinstance(error, SkillwireError):
        return next((status for kind, status in _STATUSES if isinstance(error, kind)), 503), error
    number = secrets.token_hex(4)
    log.error("%s of a page failed [unexpected %s]", method, number, exc_info=error)
    hint = "try again; if it fails again, report the number to the operator, whose log has it"
    return 500, UpstreamError(f"unexpected {number}", "internal error", hint)


def error_title(status: int) -> str:
    """The title of a page about an error."""
    return _TITLES.get(status, "This page cannot be shown")


async def read_form(request: Request, max_bytes: int, max_fields: int) -> list[tuple[str, str]]:
    """The fields of a submitted form; none if it is invalid. ``LimitError`` if it is too large."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > max_bytes:
                raise LimitError("form-too-large", "the form is too large", "send less text", rule="B1")
        return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=max_fields)
    except (ClientDisconnect, ValueError):
        return []


def field_texts(values: Mapping[str, Json], indent: int | None = None) -> list[tuple[str, str, bool]]:
    """Names and values as text, and whether a value is JSON because it is not a string.

    ``metadata`` is a table of strings (F3). Each of them is a field of its own, such as ``metadata.owner``.
    """
    fields: list[tuple[str, Json]] = []
    for key, value in values.items():
        if key == "metadata" and isinstance(value, dict):
            fields += ((f"{key}.{name}", each) for name, each in value.items())
        else:
            fields.append((key, value))
    return [
        (key, value, False)
        if isinstance(value, str)
        else (key, json.dumps(value, indent=indent, ensure_ascii=False), True)
        for key, value in fields
    ]


def static_route() -> Route:
    """The route of the files in ``static/``."""
    return Route("/static/{name}", _serve_static)


def moment(when: float | None, now: float | None = None) -> Markup:
    """A time as ``3 minutes ago``, with the exact time on hover."""
    from markupsafe import Markup

    if when is None:
        return Markup("")
    exact = datetime.fromtimestamp(when, UTC)
    day, clock = exact.isoformat(" ", "seconds").removesuffix("+00:00").split(" ")
    words = ago(when, time.time() if now is None else now)
    html = f'<time datetime="{day}T{clock}Z" title="{day} {clock} UTC">{words}</time>'
    return Markup(html)  # noqa: S704 - made here, from a number


def ago(when: float, now: float) -> str:
    """The distance from ``now`` to ``when`` in words; the date if it is more than a month."""
    distance = abs(now - when)
    if distance < 10:
        return "just now"
    for bound, length, noun in _SPANS:
        if distance < bound:
            words = counted(int(distance / length), noun)
            return f"{words} ago" if now > when else f"in {words}"
    return f"{datetime.fromtimestamp(when, UTC):%Y-%m-%d}"


@cache
def _environment() -> Environment:
    from jinja2 import (  # slow to import, and only pages need it
        Environment,
        FileSystemLoader,
        StrictUndefined,
        pass_context,
    )

    from skillwire.web.escape import visible

    @pass_context
    def static(context: Context, name: str) -> str:
        return f"{context['base']}/static/{name}?v={_static_files()[name].version}"

    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {"size": size_of, "moment": moment, "count": counted, "visible": visible}
    environment.filters.update(filters)
    globals_ = cast("dict[str, Any]", environment.globals)  # jinja2 leaves its type open
    globals_ |= {"version": __version__, "static": static}
    globals_["m"] = environment.get_template("macros.html").module
    return environment


@cache
def _static_files() -> Mapping[str, _Static]:
    """The files of ``static/``. They are few and small, so they stay in memory."""
    files: dict[str, _Static] = {}
    for path in sorted((_HERE / "static").iterdir()):
        if path.suffix in _TYPES:
            data = path.read_bytes()
            files[path.name] = _Static(data, sha256(data).hexdigest()[:12], _TYPES[path.suffix])
    return files


async def _serve_static(request: Request) -> Response:
    file = _static_files().get(request.path_params["name"])
    if file is None:
        return PlainTextResponse("file not found\n", 404, headers=dict(PAGE_HEADERS))
    is_exact = request.query_params.get("v") == file.version
    headers = {
        **PAGE_HEADERS,
        "ETag": f'"{file.version}"',
        "Cache-Control": _IMMUTABLE if is_exact else "public, no-cache",
    }
    if file.version in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.data, headers=headers, media_type=file.media_type)
