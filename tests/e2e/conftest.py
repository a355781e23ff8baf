"""A project, a home and a folder of skills, for whoever asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.installing import stand_in_a_project
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own; the present folder is ``project``."""
    return stand_in_a_project(tmp_path, monkeypatch)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Where one stands."""
    return tmp_path / "project"


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """Skills to add."""
    return write_tree(tmp_path / "served", small_tree())
