"""A project, a home and a folder of skills, for the tests that ask for them."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from e2e.installing import stand_in_a_project
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def same_signals() -> Iterator[None]:
    """Some commands set signal handlers. A test that runs one in this process leaves them unchanged."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own; the current folder is ``project``."""
    return stand_in_a_project(tmp_path, monkeypatch)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The current folder."""
    return tmp_path / "project"


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """Skills to add."""
    return write_tree(tmp_path / "served", small_tree())
