"""What every verb shares: the command after ``--``, checks of arguments, and the table of verbs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from skillwire.cli.command import COMMAND, UserName, command_words, split_commands, whole_command
from skillwire.cli.main import VERBS, run
from skillwire.errors import FormatError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("targets", "args", "words", "commands"),
    [
        (0, ["--", "x"], ["--", "x"], []),
        (1, ["./skills"], ["./skills"], []),
        (1, ["refunds", "--", "npx", "a"], [COMMAND, "refunds"], [["npx", "a"]]),
        (1, ["--", "npx", "--", "b"], [COMMAND], [["npx", "--", "b"]]),
        (2, ["old", "--", "npx"], ["old", COMMAND], [["npx"]]),
        (2, ["--", "a", "--", "b"], [COMMAND, COMMAND], [["a"], ["b"]]),
    ],
)
def test_a_command_is_taken_out_of_the_arguments(
    targets: int, args: list[str], words: list[str], commands: list[list[str]]
) -> None:
    assert split_commands(args, targets) == (words, commands)


def test_a_whole_command_keeps_its_own_dashes() -> None:
    assert whole_command(SimpleNamespace(commands=[["a"], ["b", "c"]])) == ["a", "--", "b", "c"]


def test_a_command_needs_words() -> None:
    with pytest.raises(FormatError) as caught:
        command_words([])
    assert caught.value.reference == "command-missing"


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[2J", "policy"])
def test_a_name_for_the_log_is_one_line_and_not_that_of_a_policy(name: str) -> None:
    assert UserName().convert("anna", None, None) == "anna"
    with pytest.raises(FormatError) as caught:
        UserName().convert(name, None, None)
    assert caught.value.reference == "argument-invalid"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_module_and_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_module(f"skillwire.cli.{verb}").command
    assert run([verb, "--help"]) == 0
    assert f"  skillwire {verb}" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_all_verbs_fit_one_screen(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    assert run([]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 24
    assert all(len(line) <= 80 for line in out.splitlines())
    assert all(f"  {verb} " in out for verb in VERBS)
    assert f"{shell}_source" in out


def test_the_hint_about_a_missing_argument_has_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "refunds"]) == 2
    assert "skillwire show TARGET SKILL;" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["connect", "."], "skillwire connect . --agent claude-code"),
        (
            ["connect", "--agent", "cursor", "--", "npx", "a b"],
            "skillwire connect --agent cursor --yes -- npx 'a b'",
        ),
        (["add", ".", "refunds"], "skillwire add . refunds --agent claude-code"),
        (["add", ".", "x", "--agent", "cursor"], "skillwire add . x --agent cursor --yes"),
        (["add", "."], "skillwire add . --all"),
    ],
    ids=["agent", "answer-before-dashes", "agent-of-add", "answer", "skill"],
)
def test_a_hint_repeats_the_typed_command_with_what_is_missing(
    words: list[str],
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(words) == 2
    assert capsys.readouterr().err.rstrip().endswith(f": {command}")


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["serv"], "serve"), (["list", "--tre"], "--tree"), (["origins", "lst"], "list")],
    ids=["verb", "option", "action"],
)
def test_a_typo_gets_a_suggestion(words: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    assert f"hint: did you mean {meant}" in capsys.readouterr().err


def test_a_target_and_a_command_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "./skills", "--", "server"]) == 2
    assert "after --" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "reference"),
    [
        (["list", "--nonsense", "--json"], 2, "usage"),
        (["list", "./nothing-here", "--json"], 2, "target-unknown"),
        (["approvals", "revoke", "nothing", "--json"], 2, "approval-unknown"),
    ],
    ids=["usage", "target", "store"],
)
def test_an_error_is_a_document_on_stdout(
    words: list[str],
    code: int,
    reference: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert run(words) == code
    out, err = capsys.readouterr()
    assert json.loads(out)["error"].keys() == {"reference", "message", "hint"}
    assert json.loads(out)["error"]["reference"] == reference
    assert err == ""


def test_a_json_option_after_the_dashes_is_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["token", "--nonsense", "--", "--json"]) == 2
    assert "[usage]" in capsys.readouterr().err


def test_only_the_module_of_the_used_verb_is_imported() -> None:
    code = (
        "import sys; from skillwire.cli.main import run; run(['--help']);"
        "print(*[name for name in sys.modules if name.startswith('skillwire.cli.')], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert set(done.stderr.split()) == {f"skillwire.cli.{name}" for name in ("main", "command", "printer")}


@pytest.mark.parametrize(
    ("words", "offered"),
    [("skillwire ser", "serve"), ("skillwire approvals de", "decline"), ("skillwire list --tr", "--tree")],
    ids=["verb", "action", "option"],
)
def test_a_shell_completes(words: str, offered: str) -> None:
    environment = {**os.environ, "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-m", "skillwire"],
        env={**environment, "_SKILLWIRE_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert f"plain,{offered}" in done.stdout.splitlines()
