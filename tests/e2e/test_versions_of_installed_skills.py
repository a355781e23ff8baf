"""``update --check``, ``list``, ``show`` and ``add`` know which version they show, and that it was yanked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from e2e.commands import run
from trees import skill_md, write_tree

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path, environment: dict[str, str], registry: dict[str, str]) -> Run:
    """Runs commands in a project. ``acme/refunds`` has the versions 0.1.0 and 0.1.1, which is stable."""
    folder = tmp_path / "project"
    folder.mkdir()

    def at(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = run(environment | {"PWD": str(folder)}, *words, cwd=folder)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done

    assert run(environment, "registry", "login", registry["url"], typed=registry["token"] + "\n").returncode == 0
    at("registry", "namespace", "acme", "--public")
    for body in ("One.\n", "Two.\n"):
        skill = write_tree(tmp_path / "skills", {"refunds/SKILL.md": skill_md("refunds", body=body)}) / "refunds"
        at("publish", str(skill), "--namespace", "acme", "--yes")
    return at


def checked(project: Run, code: int) -> dict[str, Any]:
    """The only skill in ``update --check``."""
    [skill] = json.loads(project("update", "--check", "--json", code=code).stdout)["skills"]
    return {key: skill[key] for key in skill if key not in ("skill", "installed", "from")}


def test_an_installed_version_that_was_yanked_is_reported(project: Run, registry: dict[str, str]) -> None:
    project("add", registry["url"], "refunds", "--agent", "claude-code", "--yes")
    assert checked(project, 0) == {"state": "current", "version": "0.1.1", "current": "0.1.1"}
    project("registry", "yank", "acme/refunds@0.1.1", "--reason", "pays twice")
    yanked = {"state": "yanked", "version": "0.1.1", "yanked": "pays twice"}
    assert checked(project, 1) == {**yanked, "current": "0.1.0"}
    told = project("update", "--check", code=1).stderr
    assert "version 0.1.1 was yanked: pays twice; the current version is 0.1.0" in told
    assert "skillwire update" in told
    project("update", "--yes")
    assert checked(project, 0) == {"state": "current", "version": "0.1.0", "current": "0.1.0"}
    project("registry", "yank", "acme/refunds@0.1.0", "--reason", "too slow")
    assert checked(project, 1) == {"state": "yanked", "version": "0.1.0", "yanked": "too slow"}
    assert "no version replaces it" in project("update", "--check", code=1).stderr


def test_a_newer_version_and_a_deprecated_skill_are_reported(
    project: Run, registry: dict[str, str], tmp_path: Path
) -> None:
    project("add", registry["url"], "refunds", "--agent", "claude-code", "--yes")
    skill = write_tree(tmp_path / "skills", {"refunds/SKILL.md": skill_md("refunds", body="Three.\n")}) / "refunds"
    project("publish", str(skill), "--namespace", "acme", "--yes")
    assert checked(project, 1) == {"state": "changed", "version": "0.1.1", "current": "0.1.2"}
    project("update", "--yes")
    project("registry", "deprecate", "acme/refunds", "--reason", "moved", "--instead", "acme/returns")
    assert checked(project, 0) == {
        "state": "current",
        "version": "0.1.2",
        "current": "0.1.2",
        "deprecated": "moved",
        "instead": "acme/returns",
    }
    deprecated = "this skill is deprecated: moved; use acme/returns instead"
    assert deprecated in project("update", "--check").stderr
    assert deprecated in project("show", registry["url"], "refunds").stdout
    assert "0.1.2" in project("list", registry["url"]).stdout
    assert deprecated in project("add", registry["url"], "refunds", "--agent", "codex", "--yes").stderr


def test_an_exact_version_stays_installed_and_says_that_it_was_yanked(
    project: Run, registry: dict[str, str]
) -> None:
    project("registry", "yank", "acme/refunds@0.1.1", "--reason", "pays twice")
    shown = project("add", registry["url"], "acme/@0.1.1/refunds", "--agent", "claude-code", "--yes").stderr
    assert "this version was yanked: pays twice" in shown
    yanked = {"state": "yanked", "version": "0.1.1", "current": "0.1.1", "yanked": "pays twice"}
    assert checked(project, 1) == yanked
    project("add", "--locked")
