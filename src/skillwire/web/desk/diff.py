"""A side-by-side diff of two texts: added, removed and changed lines, and changes within a line. Pure.

Only line feeds end a line; other line separators are shown as part of the line. Differences within a line are
marked, so that a letter that was replaced by a similar one stands out.
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
_MAX_BYTES = 2 * MIB
_MAX_LINES = 2000  # a server chooses the lines, and the time of a diff can be quadratic
_LONGEST_LINE = 240  # the longest line that is compared by character
_MAX_PAIRS = 200  # lines that are compared by character
_MAX_ROWS = 1500
_ALIKE = 0.4  # below this ratio, too many marks would make a line unreadable


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line, and whether it differs from the other side."""

    text: str
    differs: bool = False


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of one side."""

    number: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One row of the diff; ``gap`` replaces equal lines that are not shown."""

    kind: RowKind
    old: DiffLine | None = None
    new: DiffLine | None = None


@dataclass(frozen=True, slots=True)
class FileChange:
    """One added, removed or changed file: its rows, or a note why there are none."""

    path: str
    kind: ChangeKind
    rows: tuple[DiffRow, ...] = ()
    note: str = ""


def compare(path: str, old: bytes | None, new: bytes | None) -> FileChange:
    """Compare the old and the new bytes of a file; ``None`` if one of them does not exist."""
    kind = "added" if old is None else "removed" if new is None else "changed"
    if max(len(old or b""), len(new or b"")) > _MAX_BYTES:
        return FileChange(path, kind, note=f"too large to compare here: {_sizes(old, new)}")
    try:
        before, after = _lines(old), _lines(new)
    except UnicodeDecodeError:
        return FileChange(path, kind, note=f"not text: {_sizes(old, new)}")
    if max(len(before), len(after)) > _MAX_LINES:
        return FileChange(
            path, kind, note=f"too long to compare here: {len(before):,} lines before, {len(after):,} now"
        )
    rows = tuple(_rows(before, after))
    if len(rows) > _MAX_ROWS:
        return FileChange(path, kind, rows[:_MAX_ROWS], f"and {len(rows) - _MAX_ROWS:,} more rows")
    return FileChange(path, kind, rows, _ending(old, new))


def _lines(data: bytes | None) -> list[str]:
    return [] if not data else data.decode().removesuffix("\n").split("\n")


def _ending(old: bytes | None, new: bytes | None) -> str:
    """A note if only one side ends with a line feed, which no row shows."""
    if not old or not new or old.endswith(b"\n") == new.endswith(b"\n"):
        return ""
    change = "now ends" if new.endswith(b"\n") else "no longer ends"
    return f"the last line {change} with a line break"


def _sizes(old: bytes | None, new: bytes | None) -> str:
    before = "" if old is None else f"{len(old):,} bytes before"
    return ", ".join(filter(None, (before, "" if new is None else f"{len(new):,} bytes now")))


def _rows(before: Sequence[str], after: Sequence[str]) -> Iterator[DiffRow]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    ends, pairs = (0, 0), 0
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        if (group[0][1], group[0][3]) != ends:
            yield DiffRow("gap")
        for tag, old_from, old_to, new_from, new_to in group:
            pairs += tag == "replace" and min(old_to - old_from, new_to - new_from)
            old, new = _numbered(before, old_from, old_to), _numbered(after, new_from, new_to)
            yield from _block(tag, old, new, by_letter=pairs <= _MAX_PAIRS)
        ends = group[-1][2], group[-1][4]
    if ends != (len(before), len(after)) and ends != (0, 0):
        yield DiffRow("gap")


def _numbered(lines: Sequence[str], start: int, stop: int) -> list[tuple[int, str]]:
    return [(number + 1, lines[number]) for number in range(start, stop)]


def _block(
    tag: str, old: list[tuple[int, str]], new: list[tuple[int, str]], *, by_letter: bool
) -> Iterator[DiffRow]:
    """Replaced lines are paired; the rest is removed or added."""
    paired = min(len(old), len(new))
    for (old_number, old_text), (new_number, new_text) in zip(old, new, strict=False):
        if tag == "equal":
            pieces = (Piece(old_text),)
            yield DiffRow("same", DiffLine(old_number, pieces), DiffLine(new_number, pieces))
        else:
            mine, theirs = _within(old_text, new_text) if by_letter else _whole(old_text, new_text)
            yield DiffRow("changed", DiffLine(old_number, mine), DiffLine(new_number, theirs))
    for number, text in old[paired:]:
        yield DiffRow("removed", old=DiffLine(number, (Piece(text),)))
    for number, text in new[paired:]:
        yield DiffRow("added", new=DiffLine(number, (Piece(text),)))


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
