"""Whether a URI is one that a template stands for, without knowing which server will read it.

Servers read RFC 6570 differently: ``{path*}`` crosses slashes in one and not in another, one looks at queries and
another does not. What is scoped by a template must not be reached by a spelling, so this says yes where any of
them might. ``{name}`` stays inside one segment, as everywhere.
"""

from __future__ import annotations

import re
from itertools import starmap
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pydantic import AnyUrl, ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXPRESSION = re.compile(r"\{[^{}]*\}")
_SIMPLE = re.compile(r"\{[A-Za-z0-9_][^{}*]*\}")


def is_template(text: str) -> bool:
    """Whether ``text`` has variables."""
    return _EXPRESSION.search(text) is not None


def canonical_uri(uri: str) -> str:
    """One spelling for those that servers take for the same: some keep a URI as it is, others parse it."""
    try:
        return str(AnyUrl(uri))
    except ValidationError:
        return uri


def matches_template(template: str, uri: str) -> bool:
    """Whether some server may take ``uri`` for one of ``template``."""
    return any(
        _matches(template, spelling) or _matches(unquote(template), spelling) for spelling in _spellings(uri)
    )


def _spellings(uri: str) -> Iterator[str]:
    for whole in {uri, canonical_uri(uri), unquote(uri)}:
        yield whole
        yield whole.partition("#")[0]
        yield whole.partition("#")[0].partition("?")[0]


def _matches(template: str, uri: str) -> bool:
    if all(_SIMPLE.fullmatch(part) for part in _EXPRESSION.findall(template)):
        ours, theirs = template.split("/"), uri.split("/")
        return len(ours) == len(theirs) and all(starmap(_fits, zip(ours, theirs, strict=True)))
    return _fits(template, uri)


def _fits(pattern: str, text: str) -> bool:
    """Whether ``text`` has the literal parts of ``pattern`` in their order: one pass, whoever chose the text."""
    first, *rest = _EXPRESSION.split(pattern)
    if not rest:
        return text == first
    if not text.startswith(first):
        return False
    place = len(first)
    for literal in rest[:-1]:
        found = text.find(literal, place)
        if found < 0:
            return False
        place = found + len(literal)
    return len(text) - place >= len(rest[-1]) and text.endswith(rest[-1])
