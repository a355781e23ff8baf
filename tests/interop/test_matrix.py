"""The page about interoperability is what the last written run found: complete, and every remark is explained."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from interop import page
from interop.cells import PEERS, Cell
from interop.explained import EXPLANATIONS
from interop.gathering import Gathered
from interop.matrix import differences
from interop.running import HERE

if TYPE_CHECKING:
    from pathlib import Path

A_CELL = Cell("server", "inspector", "http", "modern", "skills")


def test_the_page_is_what_the_results_say() -> None:
    assert page.PAGE.read_text() == page.render(page.load())


def test_no_cell_is_missing() -> None:
    assert Gathered(page.load()).missing == []
    assert "not run here" not in page.PAGE.read_text()


def test_every_explanation_is_needed() -> None:
    absent = {why for peers in PEERS.values() for peer in peers.values() for why in peer.absent.values()}
    assert {cell.note for cell in page.load() if cell.note} | absent == EXPLANATIONS.keys()


def test_a_run_that_differs_is_told() -> None:
    known = page.load()
    assert differences(Gathered(known), is_whole=True) == []
    other = A_CELL._replace(note="inspector-kept")
    assert differences(Gathered(known - {A_CELL} | {other}), is_whole=True) == [
        "not in the matrix: server inspector http modern skills inspector-kept",
        "in the matrix, but not run: server inspector http modern skills ",
    ]
    assert differences(Gathered({A_CELL}), is_whole=False) == []


def test_a_peer_that_was_not_run_is_missing() -> None:
    cells = {cell for cell in page.load() if cell.peer != "fast-agent"}
    assert "server fast-agent stdio modern" in Gathered(cells).missing
    assert "not run here: needs Python 3.12" in page.render(cells)


@pytest.mark.parametrize("is_ci", [False, True])
def test_without_node_tests_are_skipped_loudly_and_fail_in_ci(tmp_path: Path, is_ci: bool) -> None:
    """The folder of peers as it is on a machine without npm: nothing is installed in it."""
    tests = tmp_path / "tests"
    shutil.copytree(HERE, tests / "interop", ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    shutil.copytree(HERE.parent / "starting", tests / "starting")
    for name in ("trees.py", "rules.py", "rotation.py"):
        shutil.copy(HERE.parent / name, tests)
    (tests / "conftest.py").write_text('pytest_plugins = ["rules", "rotation"]\n')
    shutil.copy(page.ROOT / "pyproject.toml", tmp_path)
    env = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST")}
    wanted = "tests/interop/test_inspector.py::test_three_pages_of_skills_verify"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:xdist", wanted],
        cwd=tmp_path,
        env={**env, "PATH": os.path.dirname(sys.executable), **({"CI": "true"} if is_ci else {})},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
    )
    assert done.returncode == (1 if is_ci else 0), done.stdout
    assert "NODE PEERS ARE NOT INSTALLED: npm is missing; install Node.js" in done.stdout
    assert ("1 error" if is_ci else "1 skipped") in done.stdout
