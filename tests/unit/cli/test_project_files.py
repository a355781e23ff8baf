"""A project that somebody else wrote: what its files may not do on this machine (Z1, Z2)."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from e2e.installing import add, edit_lock, stand_in_a_project, tree
from rules import rule
from skillwire.cli.main import run
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return stand_in_a_project(tmp_path, monkeypatch)


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    return tmp_path / "project"


@pytest.fixture
def served(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "served", small_tree())


# Folders (Z2)


def cloned(project: Path, home: Path, folder: str) -> None:
    """The project as another person gets it: its lock names ``folder``, and this machine knows nothing of it."""
    edit_lock(project, "flat", agents={folder: "copy"})
    shutil.rmtree(project / ".claude")
    shutil.rmtree(home / ".local", ignore_errors=True)


@rule("Z2")
@pytest.mark.parametrize("folder", ["./.git/hooks", "./.venv/lib/site-packages", "./src", "./tools/skills"])
def test_a_lock_adds_no_folders(
    project: Path, home: Path, served: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(served, "flat", "--agent", "claude-code") == 0
    cloned(project, home, folder)
    (project / folder).mkdir(parents=True)
    for words in (["ci"], ["ci", "--force"]):
        assert run(words) == 1
        assert "rule Z2]" in capsys.readouterr().err
    assert list(tree(project)) == ["skills.lock.json"]


@rule("Z2")
def test_a_folder_that_the_user_typed_is_used_from_then_on(project: Path, home: Path, served: Path) -> None:
    assert add(served, "flat", "--agent", "claude-code") == 0
    cloned(project, home, "./tools/skills")
    assert run(["ci", "--agent-dir", "./tools/skills"]) == 0
    assert (project / "tools/skills/flat/SKILL.md").is_file()
    for words in (["verify", "--installed"], ["ci"], ["remove", "flat"]):
        assert run(words) == 0
    assert not (project / "tools/skills/flat").exists()


@rule("Z2")
def test_the_hint_for_an_unknown_folder_works_as_printed(
    project: Path, home: Path, served: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(served, "flat", "--agent", "claude-code") == 0
    cloned(project, home, "./tools/skills")
    assert run(["ci"]) == 1
    hint = capsys.readouterr().err.partition("skillwire ci ")[2].splitlines()[0]
    assert run(["ci", *hint.split()]) == 0


@rule("Z2")
def test_a_link_in_a_project_does_not_turn_an_agents_folder_into_another(
    project: Path, home: Path, served: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "src").mkdir()
    (project / ".claude").mkdir()
    os.symlink("../src", project / ".claude/skills")
    assert add(served, "flat", "--agent", "claude-code") == 1
    assert "[folder-not-allowed, rule Z2]" in capsys.readouterr().err
    assert os.listdir(project / "src") == []


FORBIDDEN = {
    "git": (".git/skills", ""),
    "git in capitals": (".GIT/skills", ""),
    "git module": ("sub/.git/modules", ""),
    "mercurial": (".hg/x", ""),
    "environment by name": (".venv/skills", ""),
    "environment by its file": ("env/skills", "env/pyvenv.cfg"),
    "node": ("web/node_modules/x", ""),
    "packages": ("lib/python3.13/site-packages", ""),
}


@rule("Z2")
@pytest.mark.parametrize(("folder", "sign"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
@pytest.mark.parametrize("scope", ["--project", "--global"])
def test_repositories_and_environments_are_refused_even_if_typed(
    project: Path, served: Path, folder: str, sign: str, scope: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if sign:
        write_tree(project, {sign: b""})
    assert add(served, "flat", "--agent-dir", folder, scope) != 0
    assert "[folder-forbidden, rule Z2]" in capsys.readouterr().err
    assert list(tree(project)) == ([sign] if sign else [])


@rule("Z2")
def test_a_bare_repository_is_refused_too(project: Path, served: Path) -> None:
    write_tree(project / "store", {"HEAD": b"", "objects/x": b"", "refs/x": b""})
    assert add(served, "flat", "--agent-dir", "store/hooks") == 2
    assert not (project / "store/hooks").exists()
