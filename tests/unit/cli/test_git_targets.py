"""Git repositories as targets of every verb: listed, shown, installed, updated, served."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from e2e.installing import stand_in_a_project
from git_server import Repository, served
from skillwire.cli.main import run
from trees import small_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    stand_in_a_project(tmp_path, monkeypatch)
    return tmp_path / "project"


@pytest.fixture
def repository(tmp_path: Path, project: Path) -> Repository:
    return Repository(tmp_path / "repositories" / "skills", small_tree())


@pytest.fixture
def url(repository: Repository) -> Iterator[str]:
    with served(repository.folder.parent) as url:
        yield f"{url}/skills/.git"


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    return json.loads(capsys.readouterr().out)


def error_of(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return json.loads(capsys.readouterr().out)["error"]


def test_a_repository_is_listed_shown_read_and_verified(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", f"{url}@main#acme", "--json"]) == 0
    assert "skill://billing/refunds/SKILL.md" in capsys.readouterr().out
    assert run(["show", url, "flat", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["uri"] == "skill://flat/SKILL.md"
    assert run(["read", url, "flat"]) == 0
    assert capsys.readouterr().out.encode() == small_tree()["flat/SKILL.md"]
    assert run(["verify", url, "--strict"]) == 0


def test_a_folder_comes_before_a_repository_of_the_same_name(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "acme" / "skills").mkdir(parents=True)
    assert run(["list", "acme/skills", "--json"]) == 0
    assert printed(capsys)["skills"] == []


@pytest.mark.parametrize(
    ("target", "reference", "words"),
    [
        ("acme/skills", "git-unreachable", ["no folder here", "https://github.com/acme/skills"]),
        ("nothing", "server-unknown", ["no file or folder", "no server has the label"]),
        ("./nothing", "target-unknown", ["is not a folder, an archive or a repository"]),
        ("https://me:secret@example.com/x.git", "git-password", []),
    ],
)
def test_an_error_names_everything_that_was_tried(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    target: str,
    reference: str,
    words: list[str],
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # no request leaves this machine
    assert run(["list", target, "--json"]) == 2
    error = error_of(capsys)
    assert error["reference"] == reference
    assert [word for word in words if word not in error["message"]] == []
    assert "secret" not in json.dumps(error)
