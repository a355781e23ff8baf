"""What every verb shares: the command after ``--``, checks of arguments, and the table of verbs."""

from __future__ import annotations

import argparse
from importlib import import_module

import pytest

from skillwire.cli.command import COMMAND, check_name, command_words, split_commands, whole_command, whole_number
from skillwire.cli.main import VERBS, run
from skillwire.errors import FormatError


@pytest.mark.parametrize(
    ("targets", "argv", "words", "commands"),
    [
        (0, ["token", "--", "x"], ["token", "--", "x"], []),
        (1, ["list", "./skills"], ["list", "./skills"], []),
        (1, ["show", "refunds", "--", "npx", "a"], ["show", COMMAND, "refunds"], [["npx", "a"]]),
        (1, ["list", "--", "npx", "--", "b"], ["list", COMMAND], [["npx", "--", "b"]]),
        (2, ["diff", "old", "--", "npx"], ["diff", "old", COMMAND], [["npx"]]),
        (2, ["diff", "--", "a", "--", "b"], ["diff", COMMAND, COMMAND], [["a"], ["b"]]),
    ],
)
def test_a_command_is_taken_out_of_the_arguments(
    targets: int, argv: list[str], words: list[str], commands: list[list[str]]
) -> None:
    assert split_commands(argv, targets) == (words, commands)


def test_a_whole_command_keeps_its_own_dashes() -> None:
    assert whole_command(argparse.Namespace(commands=[["a"], ["b", "c"]])) == ["a", "--", "b", "c"]


def test_a_command_needs_words() -> None:
    with pytest.raises(FormatError) as caught:
        command_words([])
    assert caught.value.reference == "command-missing"


@pytest.mark.parametrize("text", ["", "0", "11", "-1", "1.5", "٣", "x"])
def test_a_number_outside_of_its_range_is_refused(text: str) -> None:
    assert whole_number(1, 10)("10") == 10
    with pytest.raises(argparse.ArgumentTypeError):
        whole_number(1, 10)(text)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[2J", "policy"])
def test_a_name_for_the_log_is_one_line_and_not_that_of_a_policy(name: str) -> None:
    check_name("anna", "--by")
    with pytest.raises(FormatError) as caught:
        check_name(name, "--by")
    assert caught.value.reference == "argument-invalid"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_module_and_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_module(f"skillwire.cli.{VERBS[verb]}").add_arguments
    with pytest.raises(SystemExit) as ended:
        run([verb, "--help"])
    assert ended.value.code == 0
    assert f"  skillwire {verb}" in capsys.readouterr().out
