"""Which words to look for first, so that a search costs about the same however many skills there are. PURE.

To rank a skill takes about a microsecond, and a common word stands in thousands. So the rarest words lead: as many
as together stand in no more than ``ROWS`` skills. A few words that are more common add to the score of what those
find; words that stand in more than a fifth of all skills say nothing beside rarer ones. Only if the leading words
find too little, or there are none, are the least common of the others looked for: in company, in names, in
descriptions, anywhere; of each, no more than ``ROWS`` skills are ranked.

Where there are no more than ``ROWS`` skills, all words lead, and the order is simply BM25's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROWS: Final = 600
_FOLLOWERS = 4
_WIDENING = 3
_TOO_COMMON = 0.2


class Counted(NamedTuple):
    """An expression for FTS5, and in how many skills it is found."""

    expression: str
    skills: int


class Stage(NamedTuple):
    """Expressions for FTS5 whose finds are merged by their scores; ``is_small`` if no cut at ``ROWS`` is due."""

    expressions: tuple[str, ...]
    is_small: bool = False


def plan_search(words: Sequence[Counted], total: int) -> Iterator[Stage]:
    """What to ask for, stage by stage; whoever has found enough stops."""
    known = sorted((word for word in words if word.skills), key=lambda word: word.skills)
    count = _count_leading(known, total)
    leading, following = known[:count], known[count : count + _FOLLOWERS]
    if leading:
        yield _lead(leading, [word for word in following if word.skills <= total * _TOO_COMMON])
    if following:
        yield from _widen(following[:_WIDENING])


def _count_leading(known: Sequence[Counted], total: int) -> int:
    rows = 0
    for index, word in enumerate(known):
        rows += word.skills
        if min(rows, total) > ROWS:
            return index
    return len(known)


def _lead(rare: Sequence[Counted], common: Sequence[Counted]) -> Stage:
    """What has a rare word; before it, what also has a common one."""
    anywhere = _any_of(rare)
    if not common:
        return Stage((anywhere,), is_small=True)
    return Stage((f"{anywhere} AND {_any_of(common)}", anywhere), is_small=True)


def _widen(common: Sequence[Counted]) -> Iterator[Stage]:
    if len(common) > 1:
        company = f"({common[0].expression} AND {_any_of(common[1:])})"
        yield Stage((f"{{name description}} : {company}",))
        yield Stage((company,))
    anywhere = _any_of(common)
    for columns in ("name : ", "{name description} : ", ""):
        yield Stage((f"{columns}{anywhere}",))


def _any_of(words: Sequence[Counted]) -> str:
    return f"({' OR '.join(word.expression for word in words)})"
