"""A process whose streams were closed before it began: it does what it can, and says so where it can."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rules import rule
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_tree(tmp_path / "project/served", small_tree())
    return tmp_path / "project"


def run_with(closed: str, project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run with what a shell calls ``<&-``, ``>&-`` or ``2>&-``, in a home of its own."""
    environment = {**os.environ, "HOME": str(project.parent), "XDG_STATE_HOME": str(project.parent / "state")}
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "skillwire", *words],
        cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


@rule("A1")
@pytest.mark.parametrize(
    "words",
    [
        ["add", "./served", "flat", "--agent", "roo"],
        ["update"],
        ["connect", "--agent", "cursor", "--url", "http://127.0.0.1:9/mcp"],
    ],
    ids=lambda words: words[0],
)
def test_nobody_can_be_asked_where_nobody_can_answer(words: list[str], project: Path) -> None:
    done = run_with("<&-", project, *words)
    assert done.returncode == 2
    assert "[nobody-to-ask" in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(project) == ["served"]


@pytest.mark.parametrize(
    "words", [["list", "./served", "--json"], ["tree", "./served"]], ids=lambda words: words[0]
)
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_what_nobody_reads_is_lost_and_nothing_else(closed: str, words: list[str], project: Path) -> None:
    done = run_with(closed, project, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("flat" in done.stdout) == (closed == "2>&-")


def test_an_error_that_nobody_hears_is_one_all_the_same(project: Path) -> None:
    assert run_with("2>&-", project, "list", "./none").returncode == 2


def test_a_server_without_a_client_ends(project: Path) -> None:
    done = run_with("<&-", project, "serve", "./served")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
