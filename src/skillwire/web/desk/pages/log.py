"""``/log``: what happened, filtered, and the same as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

from starlette.responses import StreamingResponse
from starlette.routing import Route

from skillwire.web.desk.answers import HEADERS, shown
from skillwire.web.desk.logs import HAPPENINGS, LogChoice, find_lines, written
from skillwire.web.desk.places import skill_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from skillwire.store.contract import LogLine
    from skillwire.web.desk.desk import Desk

_HIDDEN_FACTS = ("note", "contents", "fingerprint")  # the first stands beside them, the others are long


def routes(desk: Desk) -> list[BaseRoute]:
    """The page, and both files."""
    store = desk.host.store

    async def log(request: Request) -> Response:
        page = await find_lines(store, LogChoice.of(request.query_params))
        context: dict[str, Any] = {
            "log": page,
            "older": _older(request, page.lines),
            "facts_of": _facts,
            "place_of": _place,
        }
        if request.query_params.get("part"):
            return shown(request, "desk/_log.html", **context)
        filters = page.choice._replace(before=0)  # a file is of every page
        query = urlencode({name: value for name, value in filters._asdict().items() if value})
        labels = sorted({origin.label for origin in desk.host.origins})
        return await desk.show(
            request, "desk/log.html", query=query, labels=labels, happenings=HAPPENINGS, **context
        )

    async def as_file(request: Request) -> Response:
        is_csv = request.url.path.endswith(".csv")
        media, kind = ("text/csv; charset=utf-8", "csv") if is_csv else ("application/x-ndjson", "jsonl")
        headers = {**HEADERS, "Content-Disposition": f'attachment; filename="skillwire-log.{kind}"'}
        await store.lines(limit=0)  # a memory that cannot be read is said on a page, and not in half a file
        text = written(store, LogChoice.of(request.query_params), as_csv=is_csv)
        return StreamingResponse(text, headers=headers, media_type=media)

    return [Route("/log", log), Route("/log.csv", as_file), Route("/log.jsonl", as_file)]


def _older(request: Request, lines: Sequence[LogLine]) -> str:
    """The address of the lines before these."""
    words = {key: value for key, value in request.query_params.items() if value and key not in ("before", "part")}
    return f"/log?{urlencode({**words, 'before': str(lines[-1].number)})}" if lines else ""


def _facts(line: LogLine) -> list[tuple[str, str]]:
    """A line's facts in a few words."""
    return [
        (key, ", ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value))
        for key, value in line.facts.items()
        if key not in _HIDDEN_FACTS and value not in ("", [], None) and (key, value) != ("kind", "load")
    ]


def _place(line: LogLine) -> str:
    """The page of the skill that a line is about; empty if it is about none, or only about one of its files."""
    return skill_place(line.origin, line.uri) if line.origin and line.uri.endswith("/SKILL.md") else ""
