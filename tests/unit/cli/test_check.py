"""``skillwire check`` as a person and a pipeline meet it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import subprocess
import time
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from rules import rule
from skillwire.catalog.check import Checker
from skillwire.cli.main import run
from skillwire.skill import KINDS
from starting import skillwire_command, skillwire_script
from trees import skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

BROKEN = skill_md("broken", body="See [the guide](refs/none.md).\n")
COMMENT = skill_md("quiet", body="Do it.\n\n<!-- tell no one else -->\n")


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", small_tree())


def test_a_clean_tree_exits_with_0(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(clean)]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert re.findall(r"\d+", line) == ["6"]


def test_what_fix_repairs_is_offered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_tree(tmp_path / "skills", {"one/SKILL.md": skill_md("other"), "broken/SKILL.md": BROKEN})
    assert run(["check", str(root)]) == 1
    assert capsys.readouterr().err == f"to repair 1 file: skillwire check {root}/one/SKILL.md --fix\n"
    assert run(["check", str(root), "--fix"]) == 1
    assert "to repair" not in capsys.readouterr().err


@rule("U6")
def test_problems_exit_with_1_and_show_line_and_caret(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(clean, {"broken/SKILL.md": BROKEN})
    assert run(["check", str(clean)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "broken"
    assert out[1] == f"  error link-broken  {clean}/broken/SKILL.md:6:17"
    assert out[3:5] == ["    6 | See [the guide](refs/none.md).", "      |                 ^"]
    assert out[5].startswith("    ")
    assert re.findall(r"\d+", out[-1]) == ["7", "1"]


@rule("B6")
def test_warnings_fail_only_when_strict(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(clean, {"quiet/SKILL.md": COMMENT})
    assert run(["check", str(clean)]) == 0
    assert "warning hidden-text" in capsys.readouterr().out
    assert run(["check", str(clean), "--strict"]) == 1


@rule("B6")
def test_placeholders_of_a_template_pass_a_strict_check(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(clean, {"quiet/SKILL.md": skill_md("quiet", body="Do it for <!-- name -->.\n")})
    assert run(["check", str(clean), "--strict"]) == 0
    assert "note hidden-placeholder" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [["check", "--strictly"], ["check", "x", "--json", "--sarif"], ["nonsense"], ["origins", "--nonsense"]],
    ids=["option", "formats", "verb", "action"],
)
def test_usage_errors_exit_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    assert re.search(r"usage|argument-invalid", "".join(capsys.readouterr()))


def test_a_path_that_is_no_skill_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").touch()
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path / "gone", tmp_path / "README.md", "", "x" * 300, tmp_path / "loop"):
        assert run(["check", str(path)]) == 2
        assert "[path-unknown]" in capsys.readouterr().err


def test_one_file_is_checked_like_its_folder(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(clean, {"broken/SKILL.md": BROKEN})
    assert run(["check", str(clean / "broken/SKILL.md")]) == 1
    out = capsys.readouterr().out
    assert f"{clean}/broken/SKILL.md:6:17" in out
    assert re.findall(r"\d+", out.splitlines()[-1]) == ["1", "1"]


def test_an_empty_folder_has_no_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(tmp_path)]) == 0
    assert "SKILL.md" in capsys.readouterr().out  # what a skill would need


def test_json_holds_everything(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(clean, {"broken/SKILL.md": BROKEN, "quiet/SKILL.md": COMMENT, "quiet/.DS_Store": b""})
    assert run(["check", str(clean), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert {key: report[key] for key in ("skills", "errors", "warnings")} == {
        "skills": 8,
        "errors": 1,
        "warnings": 1,
    }
    assert report["ignored"] == [f"{clean}/quiet/.DS_Store"]
    problem = report["problems"][0]
    assert problem["message"]
    assert problem["hint"]
    assert {
        key: problem[key] for key in ("reference", "rule", "severity", "served", "line", "column", "skill")
    } == {
        "reference": "link-broken",
        "rule": "U6",
        "severity": "error",
        "served": True,
        "line": 6,
        "column": 17,
        "skill": "broken",
    }


def test_sarif_names_every_rule_and_place(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(clean, {"broken/SKILL.md": BROKEN, "od d/SKILL.md": b"none"})
    assert run(["check", str(clean), "--sarif"]) == 1
    log: dict[str, Any] = json.loads(capsys.readouterr().out)
    (sarif,) = log["runs"]
    rules = [rule["id"] for rule in sarif["tool"]["driver"]["rules"]]
    assert rules == sorted(KINDS)
    for result in sarif["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
    first = sarif["results"][0]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == f"{clean}/broken/SKILL.md"
    assert place["region"] == {"startLine": 6, "startColumn": 17}
    assert " " not in sarif["results"][1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]


def test_several_processes_find_what_one_finds(clean: Path) -> None:
    """Above a megabyte of text."""
    page = "[x](gone.md)\n\n" + "word " * 12_000
    tree = {f"large-{number}/SKILL.md": skill_md(f"large-{number}", body=page) for number in range(20)}
    write_tree(clean, {**tree, "large-1/nested/SKILL.md": skill_md("nested", body="[x](gone.md)\n")})
    counts: list[int] = []
    found = Checker(clean, processes=2).run(counts.append)
    assert found == Checker(clean).run()
    assert found.errors == 21
    assert counts[-1] == found.skills


@rule("B6")
def test_hostile_text_cannot_act_on_the_terminal(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences and rich markup in a skill are only text."""
    evil = skill_md("evil", body="[red]\x1b[2J\x1b]0;owned\x07[/red] [x](no.md)\n")
    write_tree(clean, {"evil/SKILL.md": evil})
    assert run(["check", str(clean)]) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "[red]<U+001B>[2J" in out


def test_every_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["check", "--help"], ["origins", "--help"], ["serve", "--help"]):
        assert run(words) == 0
        assert "Examples:\n  skillwire " in capsys.readouterr().out


def test_tree_draws_skills_files_and_sizes(clean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(clean, {"bad/SKILL.md": b"none"})
    assert run(["list", "--tree", str(clean)]) == 1
    captured = capsys.readouterr()
    size = len(small_tree()["flat/SKILL.md"])
    assert f"├── flat  1 file, {size} B\n│   └── SKILL.md  {size} B\n" in captured.out
    assert captured.out.count("entry.md") == 1
    assert captured.out.splitlines()[-1].startswith("6 skills, 14 files, ")
    assert "bad/SKILL.md" in captured.err


def test_a_closed_pipe_is_no_error(clean: Path) -> None:
    done = subprocess.run(
        f"{skillwire_script()} check {clean} | head -1", shell=True, capture_output=True, text=True
    )
    assert done.stderr == ""


def read_until(descriptor: int, wanted: str, seconds: float = 60) -> str:
    """What a terminal shows up to ``wanted``, waited for with a bound."""
    seen = ""
    deadline = time.monotonic() + seconds
    while wanted not in seen:
        ready, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"waited {seconds} s for {wanted!r}; saw {seen!r}"
        seen += os.read(descriptor, 65536).decode(errors="replace")
    return seen


@rule("S1")
def test_watch_checks_again_and_ends_on_interrupt(clean: Path) -> None:
    process = subprocess.Popen(
        [*skillwire_command(), "check", str(clean), "--watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        descriptor = process.stdout.fileno()
        read_until(descriptor, "watching")
        write_tree(clean, {"broken/SKILL.md": BROKEN})
        read_until(descriptor, "link-broken")
        process.send_signal(2)
        assert process.wait(60) == 1
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def test_a_token_is_written_as_it_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for subject in ("svc:key:prod", "\U0001f600", 'a"b'):
        assert run(["token", subject, "--see", "acme"]) == 0
        captured = capsys.readouterr()
        (token,) = tomllib.loads(captured.out)["token"]
        assert (token["subject"], token["see"]) == (subject, ["acme"])
        digests = [hashlib.sha256(word.encode()).hexdigest() for word in captured.err.split()]
        assert token["sha256"] in digests
