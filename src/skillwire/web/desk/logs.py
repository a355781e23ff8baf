"""The log as a person filters it, and as a file: JSON lines, or a table for a spreadsheet.

A cell of a table that a spreadsheet would take for a formula begins with an apostrophe, so that it stays text:
names in it were chosen by strangers.

A file has every line that is wanted, and is written while it is read: the log may be longer than memory is large.
"""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from skillwire.store.contract import Happening
from skillwire.store.paging import pieces_of_log

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence

    from skillwire.store.contract import LogLine, Store

PAGE_LINES = 100
HAPPENINGS: tuple[str, ...] = get_args(Happening)
_COLUMNS = ("number", "at", "what", "origin", "uri", "by", "note", "facts")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_LONGEST_WORD = 500


class LogChoice(NamedTuple):
    """Which lines are wanted: about which origin and skill, what happened, by whom."""

    origin: str = ""
    skill: str = ""
    what: str = ""
    by: str = ""
    before: int = 0

    @classmethod
    def of(cls, query: Mapping[str, str]) -> LogChoice:
        """From the address of the page."""
        before = query.get("before", "")
        words = {name: query.get(name, "").strip()[:_LONGEST_WORD] for name in ("origin", "skill", "what", "by")}
        return cls(**words, before=int(before[:15]) if before.isascii() and before.isdigit() else 0)

    @property
    def filters(self) -> dict[str, Any]:
        """The same, as the store is asked for it."""
        return {
            "origin": self.origin or None,
            "what": (self.what,) if self.what else None,
            "by": self.by,
            "about": self.skill,
            "before": self.before or None,
        }


class LogPage(NamedTuple):
    """The lines that are shown, newest first, and whether there are older ones."""

    choice: LogChoice
    lines: Sequence[LogLine]
    has_older: bool


async def find_lines(store: Store, choice: LogChoice) -> LogPage:
    """The newest lines that are wanted."""
    lines = await store.lines(limit=PAGE_LINES + 1, **choice.filters)
    return LogPage(choice, lines[:PAGE_LINES], len(lines) > PAGE_LINES)


async def written(store: Store, choice: LogChoice, *, as_csv: bool) -> AsyncGenerator[str]:
    """Every line that is wanted, newest first, as the text of a file, piece by piece."""
    if as_csv:
        yield _table([_COLUMNS])
    async for lines in pieces_of_log(store, **choice.filters):
        yield _table(map(_cells, lines)) if as_csv else _json_lines(lines)


def _json_lines(lines: Iterable[LogLine]) -> str:
    """One document in each line, as ``skillwire log --json`` writes them; ASCII, whatever a name may be."""
    return "".join(json.dumps(_document(line)) + "\n" for line in lines)


def _table(rows: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def _document(line: LogLine) -> dict[str, Any]:
    return {
        "number": line.number,
        "at": _stamp(line.at),
        "what": line.what,
        "origin": line.origin,
        "uri": line.uri,
        "by": line.by,
        "facts": dict(line.facts),
    }


def _cells(line: LogLine) -> Iterator[str]:
    facts = {key: value for key, value in line.facts.items() if key != "note"}
    note = str(line.facts.get("note", ""))
    values = (line.number, _stamp(line.at), line.what, line.origin, line.uri, line.by, note, json.dumps(facts))
    for value in values:
        text = str(value).encode(errors="replace").decode()
        yield f"'{text}" if text.startswith(_FORMULA) else text


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
