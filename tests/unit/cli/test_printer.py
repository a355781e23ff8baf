"""What is printed, and where."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from rules import rule
from skillwire.cli.printer import Printer, counted, size_of, visible


def shown(*, terminal: bool, patience: float) -> str:
    stream = StringIO()
    printer = Printer(Console(file=StringIO()), Console(file=stream, force_terminal=terminal, width=80))
    with printer.progress("Checking", "skills", patience) as count:
        for done in range(5):
            count(done)
    return stream.getvalue()


def test_a_bar_appears_on_a_terminal_once_patience_is_over() -> None:
    assert "Checking" in shown(terminal=True, patience=-1)
    assert shown(terminal=True, patience=1000) == ""
    assert shown(terminal=False, patience=-1) == ""


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (5 << 40, "5.0 TiB"),
    ],
)
def test_sizes_are_written_for_people(count: int, text: str) -> None:
    assert size_of(count) == text


def test_counts_agree_with_their_noun() -> None:
    assert [counted(count, "skill") for count in (0, 1, 2000)] == ["0 skills", "1 skill", "2,000 skills"]


@rule("B6")
def test_characters_that_act_on_a_terminal_are_spelled_out() -> None:
    assert visible("a\x1b[31mb\tc\u202ed") == "a<U+001B>[31mb c<U+202E>d"
    assert visible("a\u3164b\u2800c\n\u034f❤\ufe0f") == "a<U+3164>b<U+2800>c\n<U+034F>❤\ufe0f"
