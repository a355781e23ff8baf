"""Untrusted text as HTML: escaped, with invisible and bidirectional characters spelled out (B6)."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from skillwire.skill.hidden import HiddenKind, find_hidden_runs

if TYPE_CHECKING:
    from skillwire.skill.hidden import HiddenRun

_SPELLED = 8


def visible(text: str) -> Markup:
    """Escape ``text``, and spell out and mark its invisible characters."""
    if text.isascii() and text.isprintable():
        return escape(text)
    pieces: list[Markup] = []
    at = 0
    for run in find_hidden_runs(text):
        pieces += (escape(text[at : run.start]), _marked(run, text[run.start : run.end]))
        at = run.end
    return Markup("").join((*pieces, escape(text[at:])))


def _marked(run: HiddenRun, characters: str) -> Markup:
    if run.kind is HiddenKind.TAG_CHARACTERS:
        title = f"U+{ord(characters[0]):04X} … {run.kind.label}: models read them, people do not see them"
        return _mark(title, f"U+{ord(characters[0]):04X}… “{run.text}”")
    if len(characters) > _SPELLED:
        return _mark(f"{len(characters)} × {run.kind.label}", run.text)
    return Markup("").join(
        _mark(f"{_number(c)} {unicodedata.name(c, run.kind.label)}", _number(c)) for c in characters
    )


def _mark(title: str, shown: str) -> Markup:
    return Markup('<mark class="hidden" title="{}">{}</mark>').format(title, shown)


def _number(character: str) -> str:
    return f"U+{ord(character):04X}"
