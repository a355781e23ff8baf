"""The hook for pre-commit and the workflow for GitHub Actions do what docs/how-to/check-in-ci.md says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.sessions import blocks_of
from starting import folder_for_path
from trees import skill_md, write_tree

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/check-in-ci.md").read_text()
GIT = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]


def written(title: str) -> str:
    [code] = [block.code for block in blocks_of(PAGE) if block.title == title]
    return code


def commit(folder: Path) -> None:
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "One"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, timeout=60)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{folder_for_path()}:{os.environ['PATH']}", "HOME": str(tmp_path / "home")}


def test_the_hook_checks_changed_skills(tmp_path: Path, environment: dict[str, str]) -> None:
    """With the command of this environment: installing one for the hook would need the network."""
    hooks, project = tmp_path / "hooks", tmp_path / "project"
    hooks.mkdir()
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    commit(hooks)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=hooks, check=True, capture_output=True, text=True
    ).stdout
    config = re.sub(r"repo: .*", f"repo: {hooks}", written(".pre-commit-config.yaml"))
    config = re.sub(r"rev: .*", f"rev: {head.strip()}", config)
    config = config.replace("id: skillwire-check", "id: skillwire-check\n        language: system")
    write_tree(project, {"skills/good/SKILL.md": skill_md("good"), ".pre-commit-config.yaml": config.encode()})
    commit(project)
    command = [sys.executable, "-m", "pre_commit", "run", "--all-files"]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=120)

    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout
    write_tree(project, {"skills/bad/SKILL.md": skill_md("other")})
    subprocess.run(["git", "add", "."], cwd=project, check=True, capture_output=True)
    done = run()
    assert done.returncode == 1
    assert "name-mismatch" in done.stdout
    assert "skills/good" not in done.stdout


def test_the_workflow_checks_and_writes_sarif(tmp_path: Path, environment: dict[str, str]) -> None:
    workflow = written(".github/workflows/skills.yml")
    commands = [line for line in re.findall(r"^ +- run: (.*)$", workflow, re.MULTILINE) if "pip" not in line]
    shutil.copytree(ROOT / "examples/skills", tmp_path / "skills")
    (file,) = re.findall(r"sarif_file: (\S+)\}", workflow)

    def run() -> int:
        return subprocess.run(["sh", "-ec", *commands], cwd=tmp_path, env=environment, timeout=60).returncode

    assert run() == 0
    assert json.loads((tmp_path / file).read_text())["version"] == "2.1.0"
    write_tree(tmp_path / "skills", {"bad/SKILL.md": skill_md("other")})
    assert run() == 1
    [report] = json.loads((tmp_path / file).read_text())["runs"]
    assert [result["ruleId"] for result in report["results"]] == ["name-mismatch"]
