"""What is printed, and where."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from rules import rule
from skillwire.cli.printer import Printer, counted, program, runnable, size_of, visible


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


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (".venv/bin/skillwire", ".venv/bin/skillwire"),
        ("/elsewhere/bin/skillwire", "/elsewhere/bin/skillwire"),
        ("skillwire", "skillwire"),
        ("/usr/bin/pytest", "skillwire"),
    ],
    ids=["here", "elsewhere", "on-the-path", "another-program"],
)
def test_a_printed_command_is_one_that_can_be_typed(
    typed: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.argv", [typed])
    program.cache_clear()
    try:
        assert runnable("see: skillwire list ./skillwire/x") == f"see: {shown} list ./skillwire/x"
        assert runnable("the skillwire.toml of skillwire") == "the skillwire.toml of skillwire"
    finally:
        program.cache_clear()


def test_a_digest_is_short_on_a_terminal_and_whole_in_a_pipe() -> None:
    digest = "sha256:" + "0123456789abcdef" * 4
    pipe, terminal = (Printer(Console(file=StringIO(), force_terminal=is_one)) for is_one in (False, True))
    assert terminal.digest(digest) == "sha256:0123456789ab…"
    assert pipe.digest(digest) == digest
    assert pipe.digest("") == terminal.digest("") == "no digest"


def test_a_question_removes_the_spinner() -> None:
    stream = StringIO()
    printer = Printer(Console(file=StringIO()), Console(file=stream, force_terminal=True, width=80))
    with printer.progress("Connecting", "skills", 1000):
        printer.stop_waiting()
        assert "Connecting" not in stream.getvalue()
