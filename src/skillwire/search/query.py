"""Turns the input of a user or a model into words. Pure.

No input is syntax or an error: letters and digits form words, everything else separates them. Stop words ("how do
I", "please") are dropped unless there are no others. Only the beginning of a very long query counts
(``Limits.max_query_length``, ``max_query_words``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.search.text import name_key, seamed, split_humps, split_words

if TYPE_CHECKING:
    from collections.abc import Iterable

Term: TypeAlias = tuple[str, ...]
"""One word in all its spellings: ``("github", "git hub")``."""

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
