"""How text is cut into words, in the index and in what is searched for. PURE.

Scripts that put no spaces between words (Chinese, Japanese, Korean, Thai and their neighbours) are indexed letter
by letter: ``SEAM``, which nobody sees and which separates words for SQLite, is put behind each. Control characters
and broken Unicode become spaces, so that nothing in a text can end it early or look like a mark of ours.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def seamed(text: str) -> str:
    """``text`` as it is indexed; without its seams a person can read it."""
    text = _NO_TEXT.sub(" ", text)
    if text.isascii():
        return text
    return _LETTER.sub(rf"\g<0>{SEAM}", unicodedata.normalize("NFKC", text))


def split_words(text: str) -> list[str]:
    """The words of ``text`` as they are written; of unspaced scripts, each two letters that stand together."""
    if text.isascii():
        return _PLAIN_WORD.findall(text)
    text = unicodedata.normalize("NFKC", text)
    spaced = "".join(c if c.isalnum() or unicodedata.category(c) in ("Mn", "Mc") else " " for c in text)
    return [word for chunk in spaced.split() for run in _RUN.findall(chunk) for word in _pairs(run)]


def split_humps(word: str) -> str:
    """``pdfForm`` as ``pdf Form``; any other word as it is."""
    return _HUMP.sub(" ", word)


def name_key(text: str) -> str:
    """What names that differ only in case, hyphens, spaces or humps have in common."""
    return " ".join(word.lower() for word in split_words(split_humps(text)))


def _pairs(run: str) -> Iterator[str]:
    if len(run) < 3 or not _LETTER.match(run):
        yield run
    else:
        yield from (run[start : start + 2] for start in range(len(run) - 1))
