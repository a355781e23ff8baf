"""The real command in a new process, over stdio and HTTP: the one end-to-end check in ``make test``."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from e2e.talking import PATIENCE, Talking
from rules import rule
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SKILLWIRE = [sys.executable, "-m", "skillwire"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", small_tree())


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    """The address of ``skillwire serve`` over HTTP."""
    with Talking("serve", str(folder), "--http", "0", new=True) as server:
        yield server.wait_for_talk(r"http://127\.0\.0\.1:\d+/mcp").group()
        assert server.end() == 0


def skillwire(home: Path, *words: str) -> str:
    environment = {**os.environ, "HOME": str(home)}
    done = subprocess.run([*SKILLWIRE, *words], capture_output=True, text=True, timeout=PATIENCE, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@rule("L1", "R1", "V1")
def test_skills_are_verified_over_stdio(folder: Path, tmp_path: Path) -> None:
    server = [*SKILLWIRE, "serve", str(folder)]
    assert skillwire(tmp_path, "verify", "--strict", "--", *server)


@rule("L1", "R1", "V1")
def test_skills_are_listed_over_http(url: str, tmp_path: Path) -> None:
    assert "acme/billing/refunds" in skillwire(tmp_path, "list", url)
