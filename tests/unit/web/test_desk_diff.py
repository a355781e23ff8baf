"""The side-by-side diff: added, removed and changed lines, and changes within a line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillwire.web.desk.diff import DiffLine, DiffRow, FileChange, compare

LINES = st.lists(st.text("ab\r\u202e\x85", max_size=3), max_size=12)


def kinds(change: FileChange) -> list[str]:
    return [row.kind for row in change.rows]


def text_of(line: DiffLine | None) -> str | None:
    return None if line is None else "".join(piece.text for piece in line.pieces)


def sides(rows: tuple[DiffRow, ...]) -> list[tuple[str | None, str | None]]:
    return [(text_of(row.old), text_of(row.new)) for row in rows if row.kind != "same"]


def test_a_line_that_changed_stands_beside_what_it_was() -> None:
    change = compare("x.md", b"one\ntwo tigers\nthree\n", b"one\ntwo lions\nthree\n")
    assert kinds(change) == ["same", "changed", "same"]
    row = change.rows[1]
    assert sides(change.rows) == [("two tigers", "two lions")]
    assert row.old is not None
    assert row.new is not None
    assert (row.old.number, row.new.number) == (2, 2)
    assert next(piece.text for piece in row.old.pieces if not piece.differs).startswith("two ")


def test_a_letter_that_was_replaced_by_its_double_stands_out() -> None:
    change = compare("x.md", b"pay admin\n", "pay \u0430dmin\n".encode())
    row = change.rows[0]
    assert row.old is not None
    assert row.new is not None
    assert [(piece.text, piece.differs) for piece in row.new.pieces] == [
        ("pay ", False), ("\u0430", True), ("dmin", False),
    ]  # fmt: skip


def test_lines_that_came_and_went_have_nothing_beside_them() -> None:
    assert sides(compare("x", b"a\nb\n", b"a\nnew\nb\n").rows) == [(None, "new")]
    assert sides(compare("x", b"a\nold\nb\n", b"a\nb\n").rows) == [("old", None)]


def test_a_new_file_is_all_added_and_one_that_went_all_removed() -> None:
    added, removed = compare("x", None, b"a\nb"), compare("x", b"a\nb", None)
    assert (added.kind, kinds(added)) == ("added", ["added", "added"])
    assert (removed.kind, kinds(removed)) == ("removed", ["removed", "removed"])


def test_what_is_the_same_far_away_is_left_out() -> None:
    old = "\n".join(str(number) for number in range(100))
    change = compare("x", old.encode(), old.replace("50", "fifty").encode())
    assert kinds(change) == ["gap", "same", "same", "same", "changed", "same", "same", "same", "gap"]


def test_what_is_folded_can_be_shown() -> None:
    old = "\n".join(str(number) for number in range(100))
    [before, *_, after] = compare("x", old.encode(), old.replace("50", "fifty").encode()).rows
    assert [text_of(row.new) for row in before.folded] == [str(number) for number in range(47)]
    assert [row.new and row.new.number for row in after.folded] == list(range(55, 101))


def test_a_gap_that_would_save_nothing_is_shown() -> None:
    change = compare("x", b"1\n2\n3\n4\n5\n6\n", b"1\n2\n3\n4\n5\nsix\n")
    assert kinds(change) == ["same"] * 5 + ["changed"]


def test_lines_are_counted_and_unified() -> None:
    change = compare("x.md", b"a\nb tiger\nc tiger\n", b"a\nb lion\nc lion\nd\n")
    assert (change.plus, change.minus) == (3, 2)
    assert [row.kind for row in change.unified] == ["same", "removed", "removed", "added", "added", "added"]


def test_lines_have_the_colours_of_their_language_and_marks_where_they_differ() -> None:
    change = compare("x.py", b"def a():\n    return 1\n", b"def a():\n    return '1<'\n", in_colour=True)
    same, changed = change.rows
    assert same.new is not None
    assert changed.new is not None
    assert '<span class="k">def</span>' in change.html(same.new, "new")
    html = change.html(changed.new, "new")
    assert "<ins>" in html
    assert "&lt;" in html
    assert re.sub(r"<[^>]+>", "", html) == "    return &#39;1&lt;&#39;"


@pytest.mark.parametrize("end", ["\r", "\x85"], ids=["carriage-return", "next-line"])
def test_only_a_line_feed_ends_a_line(end: str) -> None:
    """What merely looks like an end of line cannot hide that something changed."""
    change = compare("x", b"one\ntwo", f"one{end}\ntwo".encode())
    assert sides(change.rows) == [("one", f"one{end}")]


@pytest.mark.parametrize(
    ("old", "new", "numbers"),
    [
        pytest.param(b"\xff", b"text", ["1", "4"], id="not-text"),
        pytest.param(None, b"\xff", ["1"], id="new-and-not-text"),
        pytest.param(b"x\n" * 2001, b"y", ["2,001", "1"], id="too-many-lines"),
        pytest.param(b"x" * 2_097_153, b"y", ["2,097,153", "1"], id="too-many-bytes"),
    ],
)
def test_files_that_cannot_be_compared_have_a_note_with_their_sizes(
    old: bytes | None, new: bytes | None, numbers: list[str]
) -> None:
    change = compare("x", old, new)
    assert re.findall(r"\d[\d,]*\b", change.note) == numbers
    assert change.rows == ()


def test_a_last_line_without_an_end_is_noted() -> None:
    notes = [compare("x", b"a\n", b"a").note, compare("x", b"a", b"b\n").note]
    assert all(notes)
    assert notes[0] != notes[1]
    assert compare("x", b"a\n", b"b\n").note == ""


def test_a_flood_of_changes_is_cut_with_a_note() -> None:
    old, new = "\n".join(f"a{n}" for n in range(1900)), "\n".join(f"b{n}" for n in range(1900))
    change = compare("x", old.encode(), new.encode())
    assert len(change.rows) == 1500
    assert "400" in change.note


@settings(max_examples=settings().max_examples // 2)  # half of the profile's
@given(LINES, LINES)
def test_nothing_is_lost_between_the_sides(old: list[str], new: list[str]) -> None:
    """Every line that differs is in a row, and those of a side are in their order."""
    before, after = "\n".join(old), "\n".join(new)
    change = compare("x", before.encode(), after.encode())
    if before == after:
        assert [row.kind for row in change.rows if row.kind != "same"] == []
        return
    shown_old = [(row.old.number, text_of(row.old)) for row in change.rows if row.old is not None]
    shown_new = [(row.new.number, text_of(row.new)) for row in change.rows if row.new is not None]
    for shown, text in ((shown_old, before), (shown_new, after)):
        lines = text.removesuffix("\n").split("\n") if text else []
        assert shown == sorted(shown)
        assert all(lines[number - 1] == line for number, line in shown)
    for_old = enumerate(before.removesuffix("\n").split("\n") if before else [], 1)
    for_new = enumerate(after.removesuffix("\n").split("\n") if after else [], 1)
    unseen_old = [line for number, line in for_old if number not in dict(shown_old)]
    assert unseen_old == [line for number, line in for_new if number not in dict(shown_new)]
