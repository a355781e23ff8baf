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
def test_without_stdin_no_question_is_asked(project: Path) -> None:
    done = run_with("<&-", project, "add", "./served", "flat", "--agent", "roo")
    assert done.returncode == 2
    assert "[no-terminal" in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(project) == ["served"]


@pytest.mark.parametrize(
    "closed",
    [
        pytest.param(">&-", id="stdout"),
        pytest.param("2>&-", id="stderr"),
        pytest.param("<&- >&- 2>&-", id="all"),
    ],
)
def test_output_to_a_closed_stream_is_lost_and_nothing_else(closed: str, project: Path) -> None:
    done = run_with(closed, project, "list", "./served", "--json")
    assert (done.returncode, done.stderr) == (0, "6 skills\n" if closed == ">&-" else "")
    assert ("flat" in done.stdout) == (closed == "2>&-")


def test_a_tree_for_a_closed_stdout_is_no_error(project: Path) -> None:
    done = run_with(">&-", project, "check", "./served")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_without_stderr_is_seen_by_the_exit_code(project: Path) -> None:
    assert run_with("2>&-", project, "list", "./none").returncode == 2


def test_a_server_without_a_client_ends(project: Path) -> None:
    done = run_with("<&-", project, "serve", "./served")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
