"""Words: how text is split, how a query is read, and how a snippet shows the match. Pure.

Scripts without spaces between words (Chinese, Japanese, Korean, Thai and their neighbours) are indexed character
by character: the invisible ``SEAM``, which SQLite treats as a separator, is added after each character. Control
characters and invalid Unicode become spaces, so that no text can end early or imitate a mark of ours.

No query is syntax or an error: letters and digits form words, everything else separates them. Stop words ("how do
I", "please") are dropped unless there are no others. Only the beginning of a very long query counts
(``Limits.max_query_length``, ``max_query_words``).

The engine decides why a skill matches. A snippet only looks for words that begin like a searched word, which shows
the reason in most cases. If there is none, the snippet is the beginning of the description.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from skillwire.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Term: TypeAlias = tuple[str, ...]
"""One word in all its spellings: ``("github", "git hub")``."""

SEAM: Final = "\u200b"

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_LETTER = re.compile(f"[{_UNSPACED}]")
_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_NO_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_PLAIN_WORD = re.compile("[A-Za-z0-9]+")
_HUMP = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
MAX_SNIPPET: Final = 200
LOOKED_AT: Final = 8_192
_BEFORE = 50
_WINDOW = MAX_SNIPPET - 2 * _BEFORE
_SHORTEST_STEM = 4
_ENDING = 2  # letters at the end of a word that may differ
_OCCURRENCES = 8

_STOP_WORDS = """
a about after again all also always am an and another any anybody anyone anything are aren as at be
because been before being between both but by can cannot could couldn d did didn do does doesn doing
don done dont each either else every everything few for from get gets getting give given gives go
goes going gonna got had hadn has hasn have haven having he hello help her here hers hey hi him his
how however i if im in instead into is isn it its itself just keep know let lets like ll looking lot
m many may maybe me might mine more most much must my myself need needed needing needs never no nor
not now of off oh ok okay on once one ones only or other others ought our ours out over own per
perhaps please put quite rather re really right s same shall she should shouldn so some somebody
somehow someone something soon still such sure t take takes tell than thank thanks that the their
theirs them then there these they thing things this those through to together too trying two under
until up upon us use used using ve very via want wanted wanting wants was wasn way ways we well were
weren what whatever when where whether which while who whole whom whose why will with within without
won would wouldn yes yet you your yours
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())


def seamed(text: str) -> str:
    """Return ``text`` in its indexed form. Without the seams it is readable."""
    text = _NO_TEXT.sub(" ", text)
    if text.isascii():
        return text
    return _LETTER.sub(rf"\g<0>{SEAM}", unicodedata.normalize("NFKC", text))


def split_words(text: str) -> list[str]:
    """Split ``text`` into words; scripts without spaces into each two neighbouring characters."""
    if text.isascii():
        return _PLAIN_WORD.findall(text)
    text = unicodedata.normalize("NFKC", text)
    spaced = "".join(c if c.isalnum() or unicodedata.category(c) in ("Mn", "Mc") else " " for c in text)
    return [word for chunk in spaced.split() for run in _RUN.findall(chunk) for word in _pairs(run)]


def split_humps(word: str) -> str:
    """Split ``pdfForm`` into ``pdf Form``."""
    return _HUMP.sub(" ", word)


def name_key(text: str) -> str:
    """Return a key that is equal for names that differ only in case, hyphens, spaces or camel case."""
    return " ".join(word.lower() for word in split_words(split_humps(text)))


def _pairs(run: str) -> Iterator[str]:
    if len(run) < 3 or not _LETTER.match(run):
        yield run
    else:
        yield from (run[start : start + 2] for start in range(len(run) - 1))


@dataclass(frozen=True, slots=True)
class Query:
    """``terms``: find any of them. ``name``: the whole query as a name. ``unfinished``: the last term may be."""

    name: str = ""
    terms: tuple[Term, ...] = ()
    unfinished: bool = False

    def __bool__(self) -> bool:
        return bool(self.terms)


def parse_query(text: str, limits: Limits = DEFAULT_LIMITS) -> Query:
    """Return the words of ``text`` to search for. Never raises."""
    text = text[: limits.max_query_length]
    words = list(dict.fromkeys(split_words(text)))
    telling = [word for word in words if word.lower() not in STOP_WORDS] or words
    terms = dict.fromkeys(map(_term, telling[: limits.max_query_words]))
    ends_in = words[-1] if words and text.endswith(words[-1]) else None
    unfinished = ends_in is not None and ends_in.isalpha() and telling[-1] == ends_in
    return Query(name_key(text), tuple(terms), unfinished and len(telling) <= limits.max_query_words)


def quoted(term: Iterable[str]) -> str:
    """Return ``term`` for FTS5 as quoted strings, which are never syntax."""
    ways = ['"{}"'.format(seamed(way).replace('"', '""')) for way in term]
    return ways[0] if len(ways) == 1 else f"({' OR '.join(ways)})"


def _term(word: str) -> Term:
    parts = split_humps(word).lower()
    if " " not in parts or not STOP_WORDS.isdisjoint(parts.split()):  # a phrase of common words is slow
        return (word.lower(),)
    return word.lower(), parts


class _Place(NamedTuple):
    words: int = 0  # the number of different words
    begin: int = 0


def make_snippet(terms: Iterable[Term], description: str, body: str) -> str:
    """Return the part of ``body`` or ``description`` with most of ``terms``, up to ``MAX_SNIPPET`` characters."""
    ways = (way for term in terms for way in term)
    stems = list(dict.fromkeys(way[: max(_SHORTEST_STEM, len(way) - _ENDING)] for way in ways))
    in_body, in_description = _densest(stems, body[:LOOKED_AT]), _densest(stems, description[:LOOKED_AT])
    if in_body.words and in_body.words >= in_description.words:
        return _piece(body, in_body.begin)
    return _piece(description, in_description.begin)


def _densest(stems: Sequence[str], text: str) -> _Place:
    """Return the first position with the most different words."""
    text = text.lower()
    found = sorted((place, stem) for stem in stems for place in _places(stem, text))
    best = _Place()
    for index, (begin, _) in enumerate(found):
        near = {stem for place, stem in found[index : index + _OCCURRENCES] if place < begin + _WINDOW}
        if len(near) > best.words:
            best = _Place(len(near), begin)
    return best


def _places(stem: str, text: str) -> Iterator[int]:
    place = text.find(stem)
    for _ in range(_OCCURRENCES):
        if place < 0:
            return
        if place == 0 or not (text[place - 1].isalnum() and stem.isascii()):  # at the beginning of a word
            yield place
        place = text.find(stem, place + len(stem))


def _piece(text: str, begin: int) -> str:
    start = max(0, begin - _BEFORE)
    if start:
        start = begin - len(text[start:begin].partition(" ")[2])  # do not begin in the middle of a word
    words = " ".join(text[start : start + 2 * MAX_SNIPPET].split())
    before = "…" if start else ""
    room = MAX_SNIPPET - len(before) - 1
    if len(words) > room:
        return f"{before}{words[:room].rpartition(' ')[0] or words[:room]}…"
    return before + words
