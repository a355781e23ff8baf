"""How text is split into words and shown as a snippet. Pure.

Scripts without spaces between words (Chinese, Japanese, Korean, Thai and their neighbours) are indexed character
by character: the invisible ``SEAM``, which SQLite treats as a separator, is added after each character. Control
characters and invalid Unicode become spaces, so that no text can end early or imitate a mark of ours.

The engine decides why a skill matches. A snippet only looks for words that begin like a searched word, which shows
the reason in most cases. If there is none, the snippet is the beginning of the description.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillwire.search.query import Term

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


class _Place(NamedTuple):
    words: int = 0  # the number of different words
    begin: int = 0


def make_snippet(terms: Iterable[Term], description: str, body: str) -> str:
    """Return the part of ``body`` or ``description`` with most of ``terms``, up to ``MAX_SNIPPET`` characters."""
    stems = list(dict.fromkeys(_stem(way) for term in terms for way in term))
    in_body, in_description = _densest(stems, body[:LOOKED_AT]), _densest(stems, description[:LOOKED_AT])
    if in_body.words and in_body.words >= in_description.words:
        return _piece(body, in_body.begin)
    return _piece(description, in_description.begin)


def _stem(word: str) -> str:
    return word[: max(_SHORTEST_STEM, len(word) - _ENDING)]


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
