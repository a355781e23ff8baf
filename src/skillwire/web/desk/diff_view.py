"""Two texts side by side: which lines came, went and changed, and where in a line. PURE.

Lines end at line feeds only: a character that merely looks like an end of line is shown as part of its line. What
differs within a line is marked, so that a letter that was replaced by its double stands out.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal, TypeAlias

from skillwire.limits import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ChangeKind: TypeAlias = Literal["added", "removed", "changed"]
RowKind: TypeAlias = Literal["same", "changed", "added", "removed", "gap"]

_CONTEXT = 3
_MOST_BYTES = 2 * MIB
_MOST_LINES = 2000  # a server chooses the lines, and comparing them can take the square of their number
_LONGEST_LINE = 240  # compared letter by letter
_MOST_PAIRS = 200  # of lines that are compared so
_MOST_ROWS = 1500
_ALIKE = 0.4  # below it, marks within a line would be confetti


@dataclass(frozen=True, slots=True)
class Piece:
    """Some letters of a line, and whether the other side has others there."""

    text: str
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One line of one side."""

    number: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """What stands side by side; ``gap`` stands for lines that are the same and left out."""

    kind: RowKind
    old: Line | None = None
    new: Line | None = None


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that came, went or changed: its rows, or a note why there are none."""

    path: str
    kind: ChangeKind
    rows: tuple[Row, ...] = ()
    note: str = ""


def compare(path: str, old: bytes | None, new: bytes | None) -> FileChange:
    """How a file that is at hand before, now, or both, differs."""
    kind = "added" if old is None else "removed" if new is None else "changed"
    if max(len(old or b""), len(new or b"")) > _MOST_BYTES:
        return FileChange(path, kind, note=f"too large to compare here: {_sizes(old, new)}")
    try:
        before, after = _lines(old), _lines(new)
    except UnicodeDecodeError:
        return FileChange(path, kind, note=f"not text: {_sizes(old, new)}")
    if max(len(before), len(after)) > _MOST_LINES:
        return FileChange(
            path, kind, note=f"too long to compare here: {len(before):,} lines before, {len(after):,} now"
        )
    rows = tuple(_rows(before, after))
    if len(rows) > _MOST_ROWS:
        return FileChange(path, kind, rows[:_MOST_ROWS], f"and {len(rows) - _MOST_ROWS:,} rows more")
    return FileChange(path, kind, rows, _ending(old, new))


def _lines(data: bytes | None) -> list[str]:
    return [] if not data else data.decode().removesuffix("\n").split("\n")


def _ending(old: bytes | None, new: bytes | None) -> str:
    """Whether only one side ends its last line: no row shows that."""
    if not old or not new or old.endswith(b"\n") == new.endswith(b"\n"):
        return ""
    when = "was" if new.endswith(b"\n") else "is now"
    return f"the last line {when} without an end of line"


def _sizes(old: bytes | None, new: bytes | None) -> str:
    before = "" if old is None else f"{len(old):,} bytes before"
    return ", ".join(filter(None, (before, "" if new is None else f"{len(new):,} bytes now")))


def _rows(before: Sequence[str], after: Sequence[str]) -> Iterator[Row]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    ends, pairs = (0, 0), 0
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        if (group[0][1], group[0][3]) != ends:
            yield Row("gap")
        for tag, old_from, old_to, new_from, new_to in group:
            pairs += tag == "replace" and min(old_to - old_from, new_to - new_from)
            old, new = _numbered(before, old_from, old_to), _numbered(after, new_from, new_to)
            yield from _block(tag, old, new, by_letter=pairs <= _MOST_PAIRS)
        ends = group[-1][2], group[-1][4]
    if ends != (len(before), len(after)) and ends != (0, 0):
        yield Row("gap")


def _numbered(lines: Sequence[str], start: int, stop: int) -> list[tuple[int, str]]:
    return [(number + 1, lines[number]) for number in range(start, stop)]


def _block(tag: str, old: list[tuple[int, str]], new: list[tuple[int, str]], *, by_letter: bool) -> Iterator[Row]:
    """Lines that were replaced stand beside each other as far as there are as many."""
    paired = min(len(old), len(new))
    for (old_number, old_text), (new_number, new_text) in zip(old, new, strict=False):
        if tag == "equal":
            pieces = (Piece(old_text),)
            yield Row("same", Line(old_number, pieces), Line(new_number, pieces))
        else:
            mine, theirs = _within(old_text, new_text) if by_letter else _whole(old_text, new_text)
            yield Row("changed", Line(old_number, mine), Line(new_number, theirs))
    for number, text in old[paired:]:
        yield Row("removed", old=Line(number, (Piece(text),)))
    for number, text in new[paired:]:
        yield Row("added", new=Line(number, (Piece(text),)))


def _within(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    if max(len(old), len(new)) > _LONGEST_LINE:
        return _whole(old, new)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return _whole(old, new)
    mine: list[Piece] = []
    theirs: list[Piece] = []
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if old_to > old_from:
            mine.append(Piece(old[old_from:old_to], tag != "equal"))
        if new_to > new_from:
            theirs.append(Piece(new[new_from:new_to], tag != "equal"))
    return tuple(mine), tuple(theirs)


def _whole(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    return (Piece(old, differs=True),), (Piece(new, differs=True),)
