"""Git repositories as targets of every verb: listed, shown, installed, updated, served."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from e2e.installing import edit_lock, stand_in_a_project
from git_server import Repository, served
from rules import rule
from skillwire.cli.main import run
from skillwire.skill.entry import digest_of
from trees import skill_md, small_tree

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


CHANGED = {"flat/SKILL.md": skill_md("flat", body="Changed.\n")}


def add(target: str, *words: str) -> int:
    return run(["add", target, *words, "--agent", "claude-code", "--yes", "--by", "ada"])


def lock(project: Path) -> dict[str, Any]:
    return json.loads((project / "skills.lock.json").read_text())["skills"]


def installed(project: Path, path: str = "flat/SKILL.md") -> bytes:
    return (project / ".claude" / "skills" / path).read_bytes()


def check(capsys: pytest.CaptureFixture[str], code: int) -> list[dict[str, str]]:
    capsys.readouterr()
    assert run(["update", "--check", "--json"]) == code
    return json.loads(capsys.readouterr().out)["skills"]


@rule("V1", "V3")
def test_a_skill_of_a_repository_is_installed_with_its_url_commit_and_digests(
    repository: Repository, url: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = repository.git("rev-parse", "HEAD")
    assert add(f"{url}@main", "flat") == 0
    assert f"{url}@main at commit {commit[:12]}" in capsys.readouterr().err
    known = lock(project)["flat"]
    assert known["server"] == {"git": f"{url}@main"}
    assert known["commit"] == commit
    assert known["files"] == {"SKILL.md": digest_of(small_tree()["flat/SKILL.md"])}
    assert installed(project) == small_tree()["flat/SKILL.md"]
    assert check(capsys, 0)[0]["state"] == "current"


@rule("V3", "A2")
def test_a_moved_branch_is_outdated_and_an_update_records_its_commit(
    repository: Repository, url: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = repository.git("rev-parse", "HEAD")
    assert add(url, "flat", "windows") == 0
    new = repository.commit(CHANGED)
    states = {row["skill"]: row for row in check(capsys, 1)}
    assert states["flat"] | {"installed": "", "from": ""} == {
        "skill": "flat", "state": "changed", "installed": "", "from": "", "commit": old, "newest": new,
    }  # fmt: skip
    assert states["windows"]["state"] == "current"
    assert run(["update", "--yes", "--by", "ada"]) == 0
    assert "rewritten" not in capsys.readouterr().err
    assert installed(project) == CHANGED["flat/SKILL.md"]
    assert {skill["commit"] for skill in lock(project).values()} == {new}
    assert check(capsys, 0)


@rule("V3")
def test_a_locked_installation_uses_the_commit_of_the_lock(
    repository: Repository, url: str, project: Path
) -> None:
    assert add(url, "flat") == 0
    shutil.rmtree(project / ".claude")
    repository.commit(CHANGED)
    assert run(["add", "--locked"]) == 0
    assert installed(project) == small_tree()["flat/SKILL.md"]


@rule("V3")
def test_a_locked_installation_with_other_digests_writes_nothing(
    repository: Repository, url: str, project: Path
) -> None:
    assert add(url, "flat") == 0
    commit = repository.commit(CHANGED)
    edit_lock(project, "flat", commit=commit)  # a lock that lies about its commit
    shutil.rmtree(project / ".claude")
    assert run(["add", "--locked", "--allow-servers"]) == 1
    assert not (project / ".claude").exists()


def test_a_rewritten_history_is_reported_by_update_and_by_a_locked_installation(
    repository: Repository, url: str, project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = repository.git("rev-parse", "HEAD")
    assert add(f"{url}@main", "flat") == 0
    repository.git("checkout", "--quiet", "--orphan", "new")
    repository.commit(CHANGED)
    repository.git("branch", "--quiet", "--force", "main", "new")
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "--quiet", "--prune=now")
    capsys.readouterr()
    assert run(["update", "--check"]) == 1
    assert f"the commit {old[:12]} in the lock is not in its history" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "home" / ".cache")  # another machine
    shutil.rmtree(project / ".claude")
    assert run(["add", "--locked", "--json"]) == 1
    assert error_of(capsys)["reference"] == "lock-commit-gone"
    assert run(["update", "flat", "--yes", "--by", "ada", "--force"]) == 0
    assert installed(project) == CHANGED["flat/SKILL.md"]


def test_a_local_repository_is_recorded_relative_to_the_lock(
    repository: Repository, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add("git+../repositories/skills#acme", "refunds") == 0
    assert lock(project)["refunds"]["server"] == {"git": "../repositories/skills#acme"}
    assert check(capsys, 0)


@rule("Z1")
def test_a_repository_in_the_lock_of_a_project_needs_the_consent_of_the_user(
    url: str, project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(url, "flat") == 0
    shutil.rmtree(tmp_path / "home" / ".local")  # another user, who has only cloned the project
    shutil.rmtree(project / ".claude")
    capsys.readouterr()
    assert run(["add", "--locked", "--json"]) == 1
    assert error_of(capsys)["reference"] == "server-not-allowed"


@pytest.mark.parametrize(
    "git",
    [
        "ext::id",
        "acme/skills",
        "-x",
        "--upload-pack=id",
        "git+https://example.com/x",
        "a\nb",
        "",
        "https://me:secret@x/y",
    ],
)
def test_a_lock_with_an_address_that_is_not_canonical_is_refused(
    url: str, project: Path, capsys: pytest.CaptureFixture[str], git: str
) -> None:
    assert add(url, "flat") == 0
    edit_lock(project, "flat", server={"git": git})
    capsys.readouterr()
    assert run(["update", "--check", "--allow-servers", "--json"]) == 2
    error = error_of(capsys)
    assert error["reference"] == "lock-invalid"
    assert "secret" not in error["message"]


@pytest.mark.parametrize("git", ["ssh://-oProxyCommand=id/x", "/nowhere/at/all"])
def test_a_lock_with_a_dangerous_address_contacts_nothing(
    url: str, project: Path, capsys: pytest.CaptureFixture[str], git: str
) -> None:
    assert add(url, "flat") == 0
    edit_lock(project, "flat", server={"git": git})
    capsys.readouterr()
    assert run(["update", "--check", "--allow-servers"]) == 2
    assert "git-source-invalid" in capsys.readouterr().err


def test_without_a_terminal_and_a_name_the_error_has_the_commands(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["add", url, "--agent", "claude-code", "--json"]) == 2
    error = error_of(capsys)
    assert error["reference"] == "skill-missing"
    assert f"skillwire list {url}" in error["hint"]


def test_all_skills_of_a_repository_are_added_and_a_repository_without_skills_is_named(
    repository: Repository, url: str, project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(f"{url}#acme", "--all") == 0
    assert "refunds" in lock(project)
    empty = Repository(tmp_path / "empty", {"README.md": b"x"})
    capsys.readouterr()
    assert add(f"{empty.folder}@main", "--all", "--json") == 2
    assert error_of(capsys)["reference"] == "skills-missing"


def test_a_skill_of_a_repository_is_copied_to_a_folder(url: str, project: Path) -> None:
    assert run(["add", url, "flat", "--to", "copies"]) == 0
    assert (project / "copies" / "flat" / "SKILL.md").read_bytes() == small_tree()["flat/SKILL.md"]
