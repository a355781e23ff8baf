"""A diff of two texts: added, removed and changed lines, and changes within a line.

Only line feeds end a line; other line separators are shown as part of the line. Differences within a line are
marked, so that a letter that was replaced by a similar one stands out. Equal lines are folded, and keep their
content, so that a page can unfold them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from markupsafe import Markup

from skillwire.limits import MIB
from skillwire.web.highlight import language_of, span, token_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Tokens = list[list[tuple[str, str]]]

ChangeKind: TypeAlias = Literal["added", "removed", "changed"]
RowKind: TypeAlias = Literal["same", "changed", "added", "removed", "gap"]

_MARKS = {"old": Markup("<del>{}</del>"), "new": Markup("<ins>{}</ins>")}
_CONTEXT = 3
_MIN_FOLDED = 4  # fewer lines are shown: the row that folds them would be as long
_MAX_BYTES = 2 * MIB
_MAX_LINES = 2000  # a server chooses the lines, and the time of a diff can be quadratic
_LONGEST_LINE = 240  # the longest line that is compared by character
_MAX_PAIRS = 200  # lines that are compared by character
_MAX_ROWS = 1500
_ALIKE = 0.4  # below this ratio, too many marks would make a line unreadable


class Piece(NamedTuple):
    """A part of a line, and whether it differs from the other side."""

    text: str
    differs: bool = False


class DiffLine(NamedTuple):
    """One line of one side."""

    number: int
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The whole line."""
        return "".join(piece.text for piece in self.pieces)


class DiffRow(NamedTuple):
    """One row of the diff. A ``gap`` has the equal lines that it folds."""

    kind: RowKind
    old: DiffLine | None = None
    new: DiffLine | None = None
    folded: tuple[DiffRow, ...] = ()


@dataclass(frozen=True, slots=True)
class FileChange:
    """One added, removed or changed file: its rows, or a note why there are none.

    ``plus`` and ``minus`` count the lines. ``tokens`` are those of the old and the new text, for their colours.
    """

    path: str
    kind: ChangeKind
    rows: tuple[DiffRow, ...] = ()
    note: str = ""
    plus: int = 0
    minus: int = 0
    tokens: tuple[Tokens, Tokens] = ([], [])

    @property
    def unified(self) -> Iterator[DiffRow]:
        """The rows with one line each: the old lines of a change, then the new ones."""
        changed: list[DiffRow] = []
        for row in (*self.rows, None):
            if row is not None and row.kind == "changed":
                changed.append(row)
                continue
            yield from (DiffRow("removed", old=each.old) for each in changed)
            yield from (DiffRow("added", new=each.new) for each in changed)
            changed.clear()
            if row is not None:
                yield row

    def html(self, line: DiffLine, side: Literal["old", "new"]) -> Markup:
        """A line with its colours and its differences."""
        tokens, mark = self.tokens[side == "new"], _MARKS[side]
        left = deque(tokens[line.number - 1] if line.number <= len(tokens) else ())
        if "".join(text for _, text in left) != line.text:  # the lexer read other ends of lines
            left = deque([("", line.text)])
        html = Markup("")
        for piece in line.pieces:
            inner, length = list[Markup](), len(piece.text)
            while length:
                name, text = left.popleft()
                if len(text) > length:
                    left.appendleft((name, text[length:]))
                    text = text[:length]
                length -= len(text)
                inner.append(span(name, text.replace("\r", "␍") if piece.differs else text))
            shown = Markup("").join(inner)
            html += mark.format(shown) if piece.differs else shown
        return html


def compare(path: str, old: bytes | None, new: bytes | None, *, in_colour: bool = False) -> FileChange:
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
    plus, minus = (sum(row.kind in ("changed", which) for row in rows) for which in ("added", "removed"))
    more = len(rows) - _MAX_ROWS
    note = _ending(old, new) if more <= 0 else f"and {more:,} more rows"
    language = language_of(path) if in_colour else ""
    tokens = token_lines("\n".join(before), language) or [], token_lines("\n".join(after), language) or []
    return FileChange(path, kind, rows[:_MAX_ROWS], note, plus, minus, tokens)


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
    if before == after:
        return
    pairs = 0
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            rows = [_same(text, i + at, k + at) for at, text in enumerate(before[i:j], 1)]
            is_last = j == len(before) and m == len(after)
            yield from _folded(rows, _CONTEXT if i or k else 0, 0 if is_last else _CONTEXT)
            continue
        paired = min(j - i, m - k)  # replaced lines are paired, the rest is removed or added
        pairs += paired
        for at in range(paired):
            compared = _within if pairs <= _MAX_PAIRS else _whole
            old, new = compared(before[i + at], after[k + at])
            yield DiffRow("changed", DiffLine(i + at + 1, old), DiffLine(k + at + 1, new))
        for at in range(i + paired, j):
            yield DiffRow("removed", old=DiffLine(at + 1, (Piece(before[at]),)))
        for at in range(k + paired, m):
            yield DiffRow("added", new=DiffLine(at + 1, (Piece(after[at]),)))


def _same(text: str, old: int, new: int) -> DiffRow:
    return DiffRow("same", DiffLine(old, (Piece(text),)), DiffLine(new, (Piece(text),)))


def _folded(rows: list[DiffRow], head: int, tail: int) -> Iterator[DiffRow]:
    """Equal lines, of which ``head`` and ``tail`` stay visible if the others are worth folding."""
    end = len(rows) - tail
    if end - head < _MIN_FOLDED:
        yield from rows
    else:
        yield from (*rows[:head], DiffRow("gap", folded=tuple(rows[head:end])), *rows[end:])


def _within(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """The pieces of two lines that differ by character, if that is readable."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if max(len(old), len(new)) > _LONGEST_LINE or matcher.ratio() < _ALIKE:
        return _whole(old, new)
    codes = matcher.get_opcodes()
    mine = tuple(Piece(old[i:j], tag != "equal") for tag, i, j, _, _ in codes if i < j)
    return mine, tuple(Piece(new[k:m], tag != "equal") for tag, _, _, k, m in codes if k < m)


def _whole(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    return (Piece(old, differs=True),), (Piece(new, differs=True),)
