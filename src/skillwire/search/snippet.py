"""A short piece of the text that was found, as plain text. PURE.

Which words made a skill be found is the engine's business. Here a word counts that begins as a searched one does:
most of the time a piece shows why. Where nothing does, it is the beginning of the description.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillwire.search.query import Term

MAX_SNIPPET: Final = 200
LOOKED_AT: Final = 8_192
_BEFORE = 50
_WINDOW = MAX_SNIPPET - 2 * _BEFORE
_SHORTEST_STEM = 4
_ENDING = 2  # letters that a word may change at its end
_OCCURRENCES = 8


class _Place(NamedTuple):
    words: int = 0  # how many different ones
    begin: int = 0


def make_snippet(terms: Iterable[Term], description: str, body: str) -> str:
    """The piece of ``body`` or ``description`` with most of ``terms``; at most ``MAX_SNIPPET`` characters."""
    stems = list(dict.fromkeys(_stem(way) for term in terms for way in term))
    in_body, in_description = _densest(stems, body[:LOOKED_AT]), _densest(stems, description[:LOOKED_AT])
    if in_body.words and in_body.words >= in_description.words:
        return _piece(body, in_body.begin)
    return _piece(description, in_description.begin)


def _stem(word: str) -> str:
    return word[: max(_SHORTEST_STEM, len(word) - _ENDING)]


def _densest(stems: Sequence[str], text: str) -> _Place:
    """Where the piece begins that holds the most different words; the first of several."""
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
        if place == 0 or not (text[place - 1].isalnum() and stem.isascii()):  # where a word begins
            yield place
        place = text.find(stem, place + len(stem))


def _piece(text: str, begin: int) -> str:
    start = max(0, begin - _BEFORE)
    if start:
        start = begin - len(text[start:begin].partition(" ")[2])  # not in the middle of a word
    words = " ".join(text[start : start + 2 * MAX_SNIPPET].split())
    before = "…" if start else ""
    room = MAX_SNIPPET - len(before) - 1
    if len(words) > room:
        return f"{before}{words[:room].rpartition(' ')[0] or words[:room]}…"
    return before + words
