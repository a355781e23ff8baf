"""The log as a person filters it, and as a file: JSON lines, or a table for a spreadsheet.

A cell of a table that a spreadsheet would take for a formula begins with an apostrophe, so that it stays text:
names in it were chosen by strangers.
"""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from skillwire.store.contract import Happening

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillwire.store.contract import LogLine, Store

PAGE_LINES = 100
MOST_LINES = 50_000
_LOOKED_THROUGH = (500, 5_000, MOST_LINES)  # most pages need the newest lines only
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

    def fits(self, line: LogLine) -> bool:
        """Whether a line is wanted."""
        return (
            self.origin in ("", line.origin)
            and self.what in ("", line.what)
            and self.by.casefold() in line.by.casefold()
            and self.skill.casefold() in line.uri.casefold()
            and (not self.before or line.number < self.before)
        )


class LogPage(NamedTuple):
    """The lines that are shown, newest first, and whether there are older ones."""

    choice: LogChoice
    lines: Sequence[LogLine]
    has_older: bool


async def find_lines(store: Store, choice: LogChoice, at_most: int = PAGE_LINES) -> LogPage:
    """The newest lines that are wanted."""
    found: list[LogLine] = []
    for limit in _LOOKED_THROUGH:
        lines = await store.lines(limit=limit, origin=choice.origin or None)
        found = [line for line in lines if choice.fits(line)]
        if len(found) > at_most or len(lines) < limit:
            break
    return LogPage(choice, found[:at_most], len(found) > at_most)


def as_json_lines(lines: Iterable[LogLine]) -> str:
    """One document in each line, as ``skillwire log --json`` writes them; ASCII, whatever a name may be."""
    return "".join(json.dumps(_document(line)) + "\n" for line in lines)


def as_csv(lines: Iterable[LogLine]) -> str:
    """A table with a heading."""
    text = io.StringIO()
    table = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    table.writerow(_COLUMNS)
    table.writerows(_cells(line) for line in lines)
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
