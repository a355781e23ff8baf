"""Locks that strangers wrote, that are used elsewhere, that were edited by hand, or that cannot be written."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from e2e.installing import add, change, edit_lock, lock, serving, tree
from rules import rule
from skillwire.cli.main import run
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def touched(tmp_path: Path) -> Path:
    """What is there once a stranger's program has run."""
    return tmp_path / "touched"


def configure(folder: Path, label: str, command: list[str]) -> None:
    servers = {label: {"command": command[0], "args": command[1:]}}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def touching(touched: Path, served: Path) -> list[str]:
    """A server that does something else first."""
    return ["sh", "-c", f'touch {touched}; exec "$@"', "sh", *serving(served)]


def program(path: Path, command: list[str]) -> None:
    path.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in command) + "\n")
    path.chmod(0o755)


@pytest.fixture
def clone(tmp_path: Path, served: Path, touched: Path) -> Path:
    """A stranger's repository, in which every name means their program."""
    (tmp_path / "clone").mkdir()
    configure(tmp_path / "clone", "company", touching(touched, served))
    program(tmp_path / "clone/run", touching(touched, served))
    return tmp_path / "clone"


@rule("A5")
@pytest.mark.parametrize(
    "server",
    [
        pytest.param({"url": "docs"}, id="label-as-url"),
        pytest.param({"label": "docs"}, id="label"),
        pytest.param({"folder": "docs"}, id="label-as-folder"),
        pytest.param({"url": "http:docs"}, id="label-like-a-url"),
    ],
)
def test_no_kind_of_server_in_a_projects_lock_starts_a_program_by_itself(
    server: dict[str, str], served: Path, project: Path, touched: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A word in the place of another is not taken for what it says."""
    assert add(served, "flat", "--agent", "codex") == 0
    edit_lock(project, "flat", server=server)
    shutil.rmtree(project / ".agents")
    for label in ("docs", "http:docs"):
        configure(project, label, touching(touched, served))
        assert run(["add", "--locked"]) in (1, 2)
        assert run(["update", "--check"]) == 2
        assert run(["update", "--yes"]) in (1, 2)
    assert not touched.exists()
    assert "Traceback" not in capsys.readouterr().err


@rule("N1", "A5")
def test_a_label_in_a_persons_own_lock_is_not_what_the_current_folder_says(
    served: Path, home: Path, project: Path, clone: Path, touched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(project, "company", serving(served))
    assert add("company", "flat", "--agent", "cursor", "--global") == 0
    recorded = lock(home / ".config/skillwire")["flat"]["server"]
    assert recorded == {"label": "company", "config": str(project / ".mcp.json")}
    monkeypatch.chdir(clone)
    assert run(["update", "--check", "--global"]) == 0
    assert run(["update", "--global", "--yes"]) == 0
    edit_lock(home / ".config/skillwire", "flat", server={"label": "company"})
    assert run(["update", "--check", "--global"]) == 2
    assert not touched.exists()


@rule("N1", "A5")
def test_a_program_in_a_persons_own_lock_is_not_what_lies_in_the_current_folder(
    served: Path, home: Path, project: Path, clone: Path, touched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path is whole, and what is relative in somebody's configuration is so to the home."""
    program(project / "run", serving(served))
    assert run(["add", "flat", "--agent", "cursor", "--global", "--yes", "--", "./run"]) == 0
    assert lock(home / ".config/skillwire")["flat"]["server"] == {"command": [str(project / "run")]}
    configure(project, "company", ["./run"])
    assert add("company", "windows", "--agent", "cursor", "--global") == 0
    monkeypatch.chdir(clone)
    assert run(["update", "--check", "flat", "--global"]) == 0
    assert run(["update", "--check", "windows", "--global"]) == 2
    assert not touched.exists()


def test_a_header_does_not_go_to_a_label_too(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(served, "flat", "windows", "--agent", "codex") == 0
    edit_lock(project, "flat", server={"url": "https://a.example/mcp"})
    edit_lock(project, "windows", server={"label": "company"})
    assert run(["update", "--check", "--header", "Authorization: Bearer hush"]) == 2
    assert "[header-ambiguous]" in capsys.readouterr().err


# What cannot be recorded is not installed


def test_an_empty_word_of_a_command_is_recorded(served: Path, project: Path) -> None:
    command = ["sh", "-c", 'exec "$@"', "sh", *serving(served), "--prefix", ""]
    assert run(["add", "flat", "--agent", "codex", "--yes", "--", *command]) == 0
    assert lock(project)["flat"]["server"] == {"command": command}
    assert run(["update", "--check"]) == 0


def test_a_folder_that_cannot_be_recorded_is_not_written_to(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(served, "flat", "--agent", "codex") == 0
    before = tree(project)
    capsys.readouterr()
    assert add(served, "windows", "--agent-dir", "./My\u00a0Skills") == 1
    err = capsys.readouterr().err
    assert "[lock-unrecordable]" in err
    assert "fingerprint" not in err  # refused before the question
    assert tree(project) == before
    assert not (project / "My\u00a0Skills").exists()
    assert run(["verify", "--installed"]) == 0


def test_a_folder_whose_name_is_no_text_is_refused(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.rename(served, os.fsencode(project) + b"/sk\xff")
    assert add("sk\udcff", "flat", "--agent", "codex") == 1
    assert "[lock-unrecordable]" in capsys.readouterr().err
    assert sorted(os.listdir(project)) == ["sk\udcff"]


# Edited by hand


def test_it_is_said_which_lock_cannot_be_read_and_where(
    home: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".config/skillwire").mkdir(parents=True)
    for folder in (project, home / ".config/skillwire"):
        (folder / "skills.lock.json").write_text('{\n  "skills": {\n    "fl')
    assert run(["add", "--locked"]) == 2
    assert re.search(r"\./skills\.lock\.json .*line 3, column 5", capsys.readouterr().err)
    assert run(["verify", "--installed", "--global"]) == 2
    assert re.search(r"~/\.config/skillwire/skills\.lock\.json .*line 3", capsys.readouterr().err)


@pytest.mark.parametrize("agent", ["nobody", "../out/skills", "claude-code"], ids=["unknown", "outside", "a-link"])
def test_a_skill_for_an_agent_that_cannot_be_used_spoils_no_other_and_can_be_removed(
    agent: str, served: Path, project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.symlink(home, project / ".claude")
    assert add(served, "flat", "windows", "--agent", "codex") == 0
    edit_lock(project, "flat", agents={agent: "copy", "codex": "copy"})
    (project / ".agents/skills/windows/more.md").write_text("")
    capsys.readouterr()
    assert run(["verify", "--installed"]) == 1
    out = capsys.readouterr().out
    assert "?/flat" in out
    assert re.search(r"\.agents/skills/windows\n +more\.md ", out)
    (project / ".agents/skills/windows/more.md").unlink()
    assert run(["add", "--locked"]) == 1
    assert "skillwire remove flat" in capsys.readouterr().err
    assert run(["remove", "flat"]) == 0
    assert agent in capsys.readouterr().err
    assert os.listdir(project / ".agents/skills") == ["windows"]
    assert run(["add", "--locked"]) == run(["verify", "--installed"]) == 0


def test_an_agent_that_cannot_be_used_with_others_that_stay(served: Path, project: Path) -> None:
    assert add(served, "flat", "--agent", "codex") == 0
    edit_lock(project, "flat", agents={"nobody": "copy", "codex": "copy"})
    assert run(["remove", "flat", "--agent", "nobody"]) == 0
    assert lock(project)["flat"]["agents"] == {"codex": "copy"}
    assert run(["verify", "--installed"]) == 0


# Hints are for the scope in which they are given


def test_hints_in_a_persons_own_scope_stay_there(
    served: Path, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(served, "flat", "--agent", "codex", "--global") == 0
    change(served)
    other = write_tree(tmp_path / "other", {"flat/SKILL.md": skill_md("flat")})
    capsys.readouterr()

    def hint(*words: str) -> str:
        assert run([*words, "--global"]) == 1
        return capsys.readouterr().err

    adding = ("--agent", "cursor", "--yes")
    assert "skillwire update flat --global" in hint("add", str(served), "flat", *adding)
    assert "skillwire remove flat --global" in hint("add", str(other), "flat", *adding)
    shutil.rmtree(home / ".codex")
    assert "skillwire update flat --global" in hint("add", "--locked")
    (served / "flat/SKILL.md").unlink()
    assert "skillwire remove flat --global" in hint("update", "--yes")
