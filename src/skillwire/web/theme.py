"""One look for every page: templates, static files, and how sizes and times are written.

Everything in a template is escaped unless ``text.py`` made it. Templates take the place where the pages are
mounted from ``base`` (``""`` at the root), and ``static('style.css')`` is the address of a file of ``static/``,
with its digest in it, so that a browser can keep it for good and never has an old one.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from skillwire import __version__
from skillwire.amounts import counted, size_of
from skillwire.web.headers import PAGE_HEADERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment
    from jinja2.runtime import Context
    from markupsafe import Markup
    from starlette.requests import Request

_HERE = Path(__file__).parent
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".png": "image/png"}
_FOR_GOOD = "public, max-age=31536000, immutable"
_SPANS = ((60, 1, "second"), (3600, 60, "minute"), (86_400, 3600, "hour"), (30 * 86_400, 86_400, "day"))


class _Static(NamedTuple):
    data: bytes
    version: str
    media_type: str


def render(template: str, **context: object) -> str:
    """``template`` with ``context``, escaped."""
    return _environment().get_template(template).render({"base": "", **context})


def prepare(folder: str) -> None:
    """Read the templates of ``folder`` now, so that nobody waits for it later."""
    for name in _environment().list_templates(filter_func=lambda name: name.startswith(folder)):
        _environment().get_template(name)


def page(template: str, *, status: int = 200, **context: object) -> HTMLResponse:
    """A whole page, with the headers that keep it safe."""
    html = render(template, **context).encode(errors="replace")  # text from elsewhere may hold half a character
    return HTMLResponse(html, status, headers=dict(PAGE_HEADERS))


def static_route(prefix: str = "/static") -> Route:
    """The files of ``static/``, and nothing else."""
    return Route(f"{prefix}/{{name}}", _serve_static)


def moment(when: float | None, now: float | None = None) -> Markup:
    """``3 minutes ago``, with the exact time on hover."""
    from markupsafe import Markup

    if when is None:
        return Markup("")
    exact = datetime.fromtimestamp(when, UTC)
    day, clock = exact.isoformat(" ", "seconds").removesuffix("+00:00").split(" ")
    words = ago(when, time.time() if now is None else now)
    html = f'<time datetime="{day}T{clock}Z" title="{day} {clock} UTC">{words}</time>'
    return Markup(html)  # noqa: S704 - all of it is made here


def ago(when: float, now: float) -> str:
    """How long before ``now`` that was, or how long after; the date if it is more than a month."""
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
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context  # late: only pages need it

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
    globals_: dict[str, Any] = {"version": __version__, "static": static}
    environment.globals.update(globals_)  # pyright: ignore[reportUnknownMemberType] - jinja2 leaves its type open
    return environment


@cache
def _static_files() -> Mapping[str, _Static]:
    """Read once: they are few, small, and part of the program."""
    files: dict[str, _Static] = {}
    for path in sorted((_HERE / "static").iterdir()):
        if path.suffix in _TYPES:
            data = path.read_bytes()
            files[path.name] = _Static(data, sha256(data).hexdigest()[:12], _TYPES[path.suffix])
    return files


async def _serve_static(request: Request) -> Response:
    file = _static_files().get(request.path_params["name"])
    if file is None:
        return PlainTextResponse("there is no such file\n", 404, headers=dict(PAGE_HEADERS))
    is_exact = request.query_params.get("v") == file.version
    headers = {
        **PAGE_HEADERS,
        "ETag": f'"{file.version}"',
        "Cache-Control": _FOR_GOOD if is_exact else "public, no-cache",
    }
    if file.version in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.data, headers=headers, media_type=file.media_type)
