"""Nobody's files are lost: a person's own in a skill's folder, the source itself, what a killed process was at."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from e2e.installing import add, change, lock, tree
from e2e.killing import killed_at
from e2e.terminal import Terminal
from skillwire.cli.main import run
from trees import files_of, small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

TWO = ("--agent", "codex", "--agent", "claude-code")


pytestmark = pytest.mark.usefixtures("home")


def left(project: Path) -> list[str]:
    """What killed processes left."""
    return [str(path.relative_to(project)) for path in project.rglob(".skillwire-*")]


# A person's own


@pytest.mark.parametrize(
    "path", [".env", "node_modules/x.js"], ids=["file", "folder"]
)  # neither would be served: they are found all the same
def test_files_that_somebody_put_beside_a_skill_are_not_lost(
    path: str, served: Path, project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(served, "flat", "--agent", "codex") == 0
    mine = project / ".agents/skills/flat" / path
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    assert run(["verify", "--installed"]) == 1
    change(served)
    for words in (["update", "--yes"], ["remove", "flat"]):
        assert run(words) == 1
        assert path.split("/")[0] in capsys.readouterr().err
        assert mine.read_text() == "mine"
    assert run(["remove", "flat", "--force"]) == 0
    [kept] = (home / ".local/state/skillwire/backups").iterdir()
    assert (kept / path).read_text() == "mine"


@pytest.mark.parametrize(
    "where",
    [("--agent", "openclaw"), ("--agent-dir", "./skills"), ("--agent-dir", "skills/x")],
    ids=["agent", "the-same", "inside"],
)
def test_a_skill_is_not_installed_into_where_it_comes_from(
    where: tuple[str, str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To remove it would remove the original."""
    write_tree(project / "skills", small_tree())
    before = tree(project)
    for name in ("flat", "release"):
        assert add("./skills", name, *where) == 1
        assert "[folder-inside]" in capsys.readouterr().err
    assert add("skills", "flat", "--agent", "codex", "--agent", "openclaw") == 1
    assert tree(project) == before


def test_an_agent_whose_folder_leads_elsewhere_is_shown_so_and_others_can_be_chosen(
    served: Path, project: Path, home: Path
) -> None:
    os.symlink(home, project / ".claude")
    (project / ".goose").mkdir()
    with Terminal("add", str(served), "flat") as terminal:
        shown = terminal.question()
        assert re.search(r"1  claude-code .*\.claude/skills", shown)
        assert "2  goose" in shown
        terminal.type("2\n")
        assert ".goose/skills" in terminal.question()
        terminal.type("y\n")
        code, out = terminal.end()
    assert code == 0, terminal.seen
    assert out.split()[1:] == [".goose/skills/flat"]


def test_what_is_said_to_be_written_is_what_is_written(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "moved"))
    assert add(served, "flat", "--agent", "claude-code", "--global") == 0
    assert capsys.readouterr().out.split()[1:] == [f"{tmp_path}/moved/skills/flat"]


# Killed


@pytest.mark.parametrize(
    "words",
    [
        ["add", "SERVED", "windows", "--agent", "goose", "--yes"],
        ["add", "--locked"],
        ["update", "--yes"],
        ["remove", "windows"],
    ],
    ids=lambda words: words[0],
)
def test_half_of_a_skill_is_none_and_the_next_command_takes_it_away(
    words: list[str], served: Path, project: Path
) -> None:
    assert add(served, "windows", "--agent", "goose") == 0
    assert killed_at("os.fsync", 2, "add", str(served), "odd-names", *TWO, "--yes") == -9
    assert left(project)
    assert [path for path in project.rglob("SKILL.md") if ".goose" not in path.parts] == []
    run([str(served) if word == "SERVED" else word for word in words])
    assert left(project) == []


def test_a_skill_that_was_put_but_not_recorded_is_whole_and_can_be_added_again(
    served: Path, project: Path
) -> None:
    assert killed_at("os.rename", 2, "add", str(served), "flat", "--agent", "codex", "--yes") == -9
    assert add(served, "windows", "--agent", "codex") == 0
    assert tree(project / ".agents/skills/flat") == files_of(small_tree(), "flat")
    assert add(served, "flat", "--agent", "codex") == 0
    assert left(project) == []
    assert run(["remove", "flat"]) == 0
    assert os.listdir(project / ".agents/skills") == ["windows"]


@pytest.mark.parametrize("number", range(1, 6), ids=lambda number: f"rename-{number}")
def test_an_update_that_is_killed_between_folders_is_taken_back(
    number: int, served: Path, project: Path, home: Path
) -> None:
    """Two renames for each of two folders, then the lock."""
    assert add(served, "flat", *TWO) == 0
    before = tree(project)
    change(served)
    assert killed_at("os.rename", number, "update", "--yes") == -9
    assert run(["add", "--locked"]) == 0
    assert tree(project) == before
    kept = [path.read_bytes() for path in (home / ".local/state/skillwire/backups").glob("*/SKILL.md")]
    assert kept == [(served / "flat/SKILL.md").read_bytes()] * ((number - 1) // 2)
    assert run(["update", "--yes"]) == 0
    assert tree(project / ".claude/skills") == {"flat/SKILL.md": (served / "flat/SKILL.md").read_bytes()}


@pytest.mark.parametrize("number", [1, 2], ids=["first-folder", "second-folder"])
def test_an_update_that_is_killed_once_it_is_recorded_is_done(number: int, served: Path, project: Path) -> None:
    assert add(served, "flat", *TWO) == 0
    change(served)
    assert killed_at("shutil.rmtree", number, "update", "--yes") == -9
    assert left(project)
    assert run(["add", "--locked"]) == 0
    assert left(project) == []
    for folder in (".agents", ".claude"):
        assert tree(project / folder / "skills/flat") == tree(served / "flat")


@pytest.mark.parametrize("number", [1, 2, 3], ids=["first-folder", "second-folder", "lock"])
def test_a_removal_that_is_killed_before_it_is_recorded_is_taken_back(
    number: int, served: Path, project: Path
) -> None:
    assert add(served, "flat", *TWO) == 0
    before = tree(project)
    assert killed_at("os.rename", number, "remove", "flat") == -9
    assert run(["add", "--locked"]) == 0
    assert tree(project) == before


def test_a_removal_that_is_killed_once_it_is_recorded_is_done(served: Path, project: Path) -> None:
    """The lock names none of these folders any more."""
    assert add(served, "flat", *TWO, "--link") == 0
    assert killed_at("shutil.rmtree", 1, "remove", "flat") == -9
    assert lock(project) == {}
    assert left(project)
    assert run(["remove", "flat"]) == 2
    assert tree(project).keys() == {"skills.lock.json"}
    assert left(project) == []
