"""``/log`` and ``/approvals``: the log and all approvals, with filters, export and import.

In CSV, a cell that a spreadsheet would read as a formula starts with an apostrophe, because the authors of skills
choose names in it. An export of the log is streamed, because the log can be larger than the memory.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args
from urllib.parse import urlencode

from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from skillwire.host.approval_export import approvals_as_document, import_approvals, parse_approvals
from skillwire.host.approvals import ASKED_TO
from skillwire.limits import MIB
from skillwire.skill.approval import fingerprint
from skillwire.store.records import Happening
from skillwire.store.store import log_pages
from skillwire.web.desk.guard import form_endpoint
from skillwire.web.desk.overview import Choice
from skillwire.web.desk.responses import HEADERS, skill_url

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from skillwire.store.records import LogFilter, LogLine
    from skillwire.store.store import Store
    from skillwire.web.desk.app import Desk
    from skillwire.web.desk.guard import Form

PAGE_LINES = 100
EVENTS: tuple[str, ...] = get_args(Happening)
_COLUMNS = ("number", "at", "what", "origin", "uri", "by", "note", "facts")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_MAX_VALUE = 500
_MAX_IMPORT = 16 * MIB
_USUAL = (("kind", "load"), ("why", ASKED_TO))
_HIDDEN_FACTS = ("note", "contents", "fingerprint")  # the note has its own place, the others are long


class LogChoice(NamedTuple):
    """The filter of the log: origin, skill, event and user."""

    origin: str = ""
    skill: str = ""
    what: str = ""
    by: str = ""
    before: int = 0

    @classmethod
    def of(cls, query: Mapping[str, str]) -> LogChoice:
        """Parse the query of a request."""
        before = query.get("before", "")
        words = {name: query.get(name, "").strip()[:_MAX_VALUE] for name in ("origin", "skill", "what", "by")}
        return cls(**words, before=int(before[:15]) if before.isascii() and before.isdigit() else 0)

    @property
    def filters(self) -> LogFilter:
        """The filter as arguments of ``Store.lines``."""
        return {
            "origin": self.origin or None,
            "what": (self.what,) if self.what else None,
            "by": self.by,
            "about": self.skill,
            "before": self.before or None,
        }


async def export_lines(store: Store, choice: LogChoice, *, as_csv: bool) -> AsyncGenerator[str]:
    """All matching lines, newest first, as chunks of a file: CSV, or JSON lines like ``skillwire log --json``."""
    if as_csv:
        yield _csv([_COLUMNS])
    async for lines in log_pages(store, **choice.filters):
        if as_csv:
            yield _csv(map(_cells, lines))
        else:
            yield "".join(json.dumps(line.to_json()) + "\n" for line in lines)  # ASCII


def _csv(rows: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def _cells(line: LogLine) -> Iterator[str]:
    document = line.to_json()
    document["note"] = document["facts"].pop("note", "")
    document["facts"] = json.dumps(document["facts"])
    for name in _COLUMNS:
        text = str(document[name]).encode(errors="replace").decode()
        yield f"'{text}" if text.startswith(_FORMULA) else text


def _log_routes(desk: Desk) -> list[BaseRoute]:
    """The log and both exports."""
    store = desk.host.store

    async def log(request: Request) -> Response:
        query = {
            key: value for key, value in request.query_params.items() if value and key not in ("before", "part")
        }
        choice = LogChoice.of(request.query_params)
        lines = await store.lines(limit=PAGE_LINES + 1, **choice.filters)
        context: dict[str, Any] = {"choice": choice, "lines": lines[:PAGE_LINES], "facts_of": _facts, "older": ""}
        context |= {"url_of": _skill_url_of, "content_of": _content_of, "diff_of": _diff_url_of}
        if len(lines) > PAGE_LINES:
            context["older"] = f"/log?{urlencode({**query, 'before': str(lines[PAGE_LINES - 1].number)})}"
        filters = choice._replace(before=0)._asdict()  # an export has all pages
        query = urlencode({name: value for name, value in filters.items() if value})
        labels = sorted({origin.label for origin in desk.host.registry})
        context |= {"query": query, "labels": labels, "events": EVENTS}
        return await desk.show(request, "desk/log.html", block="lines", **context)

    async def export(request: Request) -> Response:
        is_csv = request.url.path.endswith(".csv")
        media, kind = ("text/csv; charset=utf-8", "csv") if is_csv else ("application/x-ndjson", "jsonl")
        headers = {**HEADERS, "Content-Disposition": f'attachment; filename="skillwire-log.{kind}"'}
        await store.lines(limit=0)  # fails here with an error page instead of a partial file
        text = export_lines(store, LogChoice.of(request.query_params), as_csv=is_csv)
        return StreamingResponse(text, headers=headers, media_type=media)

    return [Route("/log", log), Route("/log.csv", export), Route("/log.jsonl", export)]


def _facts(line: LogLine) -> list[tuple[str, str]]:
    """The facts of a line as names and values."""
    return [
        (key, ", ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value))
        for key, value in line.facts.items()
        if key not in _HIDDEN_FACTS and value not in ("", [], None) and (key, value) not in _USUAL
    ]


def _skill_url_of(line: LogLine) -> str:
    """The page of the skill in a line; empty if the line is about no skill, or about one of its files."""
    return skill_url(line.origin, line.uri) if line.origin and line.uri.endswith("/SKILL.md") else ""


def _content_of(line: LogLine) -> str:
    """The fingerprint of the content in a line; empty if it has none."""
    contents = line.facts.get("contents")
    return str(
        line.facts.get("fingerprint", "") or (fingerprint(frozenset(map(tuple, contents))) if contents else "")
    )


def _diff_url_of(line: LogLine) -> str:
    """The page that compares the content in a line with the version before it; empty if it has none."""
    content = _content_of(line)
    return skill_url(line.origin, line.uri, "history", to=content) if content and _skill_url_of(line) else ""


def _approval_routes(desk: Desk) -> list[BaseRoute]:
    """The approvals, their export and their import."""
    store = desk.host.store

    async def listed(choice: Choice) -> dict[str, Any]:
        """The context of the page and of its part."""
        every = await store.approvals()
        found = [each for each in every if choice.contains_words(f"{each.origin} {each.uri} {each.by}")]
        return {"part": choice.page_of(found), "total": len(every), "choice": choice, "url_of": skill_url}

    async def approvals(request: Request) -> Response:
        context = await listed(Choice.of(request.query_params))
        return await desk.show(
            request, "desk/approvals.html", block="approvals", imported=None, skipped=(), **context
        )

    async def export(request: Request) -> Response:  # noqa: ARG001 - the shape of a Starlette endpoint
        text = json.dumps(approvals_as_document(await store.approvals()), indent=2) + "\n"
        disposition = 'attachment; filename="skillwire-approvals.json"'
        headers = {**HEADERS, "Content-Disposition": disposition}
        return Response(text, headers=headers, media_type="application/json")

    async def import_file(request: Request, form: Form) -> Response:
        wanted = parse_approvals(form.get("export").encode(errors="replace"))
        skipped = await import_approvals(store, wanted, by=desk.by, note=form.note)
        imported, context = len(wanted) - len(skipped), await listed(Choice())
        return await desk.show(request, "desk/approvals.html", imported=imported, skipped=skipped, **context)

    return [
        Route("/approvals", approvals),
        Route("/approvals.json", export),
        Route("/approvals/import", form_endpoint(import_file, max_bytes=_MAX_IMPORT), methods=["POST"]),
    ]


def routes(desk: Desk) -> list[BaseRoute]:
    """The log and the approvals."""
    return [*_log_routes(desk), *_approval_routes(desk)]
