"""What a list shows of a skill, and of one that was found: short, and with the searched words marked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from skillwire.search.query import parse_query
from skillwire.web.text import visible

if TYPE_CHECKING:
    from skillwire.search.index import Hit
    from skillwire.skill import SkillEntry

_LONGEST = 240  # of a description; the skill's own page has all of it

_FOUND = Markup('<mark class="found">{}</mark>')


class Row(NamedTuple):
    """One skill in a list."""

    path: str
    folder: str
    name: str
    words: Markup
    files: int | None
    size: int | None
    modified: float | None
    is_dynamic: bool


def row_of(entry: SkillEntry) -> Row:
    """A skill in the listing."""
    return _row(entry, visible(_short(entry.description)))


def found_row(hit: Hit, entry: SkillEntry, query: str) -> Row:
    """A skill that was found: with the piece of its text that shows why."""
    return _row(entry, _with_marks(_short(hit.snippet or entry.description), query))


def _row(entry: SkillEntry, words: Markup) -> Row:
    folder, slash, name = entry.path.rpartition("/")
    is_whole = entry.is_complete
    return Row(
        path=entry.path,
        folder=folder + slash,
        name=name,
        words=words,
        files=len(entry.files) if is_whole else None,
        size=entry.size if is_whole and "size" not in entry.gaps else None,
        modified=entry.modified,
        is_dynamic=entry.is_dynamic,
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"


def _with_marks(text: str, query: str) -> Markup:
    """``text`` with every word marked that begins like a searched one."""
    ways = {way for term in parse_query(query).terms for way in term}
    if not ways:
        return visible(text)
    any_way = "|".join(sorted(map(re.escape, ways), key=len, reverse=True))
    pieces: list[Markup] = []
    at = 0
    for match in re.finditer(rf"\b(?:{any_way})\w*", text, re.IGNORECASE):
        pieces += (visible(text[at : match.start()]), _FOUND.format(match.group()))
        at = match.end()
    return Markup("").join((*pieces, visible(text[at:])))
