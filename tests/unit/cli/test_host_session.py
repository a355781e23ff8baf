"""What the verbs of a host share: where the memory is, what is a time, how a stranger's text is shown."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from rules import rule
from skillwire.cli.command import Seconds, Size
from skillwire.cli.host_session import state_of
from skillwire.cli.main import run
from skillwire.cli.printer import line, utc_text


@pytest.mark.parametrize(
    ("variable", "place"),
    [
        ("", "{home}/.local/state/skillwire"),
        ("/elsewhere", "/elsewhere/skillwire"),
        ("relative", "{home}/.local/state/skillwire"),  # the XDG specification ignores those
    ],
    ids=["not-set", "absolute", "relative"],
)
def test_the_memory_is_where_the_person_keeps_state(
    variable: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", variable)
    assert state_of(SimpleNamespace(state=None)) == Path(place.format(home=tmp_path))
    assert state_of(SimpleNamespace(state=Path("given"))) == Path("given")


@pytest.mark.parametrize("text", ["-1", "nan", "soon", "1e9"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Seconds().convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "count"), [("0", 0), ("100", 100), ("1k", 1024), ("1.5 MiB", 3 << 19), ("2GB", 2 << 30)]
)
def test_sizes_are_read_as_people_write_them(text: str, count: int) -> None:
    assert Size().convert(text, None, None) == count


@pytest.mark.parametrize(
    "text", ["-1", "1 M M", "1e3", "9" * 4000], ids=["negative", "two-units", "exponent", "too-long"]
)
def test_an_invalid_size_is_a_usage_error(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cache", "prune", "--max", text]) == 2
    assert "Traceback" not in capsys.readouterr().err


@rule("B6")
def test_a_strangers_text_is_one_line_that_does_nothing() -> None:
    assert line("a\n\n  b\x1b[2J\u2028c\rd") == "a b<U+001B>[2J c d"


def test_a_time_for_programs_is_in_utc() -> None:
    assert utc_text(0.5) == "1970-01-01T00:00:00.500Z"


@pytest.mark.parametrize("words", [["origins", "none"], ["origins", "add", "x"], ["log", "-n", "x"]], ids=" ".join)
def test_usage_errors_exit_with_2(words: list[str]) -> None:
    assert run(words) == 2


@rule("A1")
def test_a_memory_that_others_can_write_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They could approve in the person's name."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    for words in (
        ["log"],
        ["approvals"],
        ["approvals", "revoke", "x"],
        ["list", "--origins"],
        ["origins", "list"],
    ):
        assert run([*words, "--state", str(shared)]) == 2
        assert "[store-unsafe]" in capsys.readouterr().err
