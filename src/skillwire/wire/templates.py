"""Whether a URI matches a template, without knowing which server will interpret it.

Servers interpret RFC 6570 differently: in one ``{path*}`` matches slashes and in another not; one considers
queries and another does not. No spelling may bypass the scope of a template, so a URI matches here if any server
might accept it. ``{name}`` matches within one segment on all servers.
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
    """One spelling for equal URIs: some servers keep a URI unchanged, others normalise it."""
    try:
        return str(AnyUrl(uri))
    except ValidationError:
        return uri


def matches_template(template: str, uri: str) -> bool:
    """Whether a server may match ``uri`` with ``template``."""
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
    """Whether ``text`` has the literal parts of ``pattern`` in their order, in one pass."""
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
