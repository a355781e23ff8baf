"""``skillwire add`` of a Git repository at a terminal: the picker, the page and the question."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from e2e.terminal import Terminal
from git_server import Repository, served
from skillwire.cli.main import run
from trees import small_tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("home")
def test_a_skill_is_picked_from_a_repository_and_approved(tmp_path: Path, project: Path) -> None:
    repository = Repository(tmp_path / "repositories" / "skills", small_tree())
    commit = repository.git("rev-parse", "HEAD")
    with (
        served(repository.folder.parent) as url,
        Terminal("add", f"{url}/skills/.git", "--agent", "cursor") as user,
    ):
        offered = user.question()
        assert f"skills in {url}/skills/.git" in offered
        number = next(row.split()[0] for row in offered.splitlines() if " flat: " in row)
        user.type(f"{number}\n")
        assert f"{url}/skills/.git at commit {commit[:12]}" in user.question()
        user.type("y\n")
        code, out = user.end()
    assert code == 0
    assert out.startswith("wrote ")
    skills = json.loads((project / "skills.lock.json").read_text())["skills"]
    assert {name: skill["commit"] for name, skill in skills.items()} == {"flat": commit}


@pytest.mark.usefixtures("home", "project")
def test_in_a_new_account_every_agent_is_offered(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repositories" / "skills", small_tree())
    with Terminal("add", f"git+{repository.folder}") as user:
        offered = user.question()
        assert "  (Claude Code: .claude/skills)" in offered
        assert "  (Codex: .agents/skills)" in offered
        user.type("\n")
        code, _ = user.end()
    assert code == 2
    assert "[agent-missing]" in user.seen


@pytest.mark.usefixtures("home")
def test_an_agent_is_connected_to_a_server_of_a_repository(tmp_path: Path, project: Path) -> None:
    """The server is started and responds before its command is written."""
    repository = Repository(tmp_path / "repositories" / "skills", small_tree())
    target = f"git+{repository.folder}@main"
    assert run(["connect", target, "--agent", "cursor", "--yes"]) == 0
    entry = json.loads((project / ".cursor" / "mcp.json").read_text())["mcpServers"]["skillwire"]
    assert entry["args"][-2:] == ["serve", target]
