"""A project, a home and a folder of skills, for the tests that ask for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from e2e.installing import stand_in_a_project
from starting import skillwire_command
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


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a process whose home is empty."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "SKILLWIRE_"))}
    return {**kept, "HOME": str(tmp_path)}


@pytest.fixture
def registry(tmp_path: Path, environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """A registry that serves, with its address and the token of its first administrator."""
    command = [
        *skillwire_command(),
        "registry",
        "--http",
        "127.0.0.1:0",
        "--json",
        "--state",
        str(tmp_path / "server"),
    ]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        text = b""
        while not text.rstrip().endswith(b"}"):
            line = process.stdout.readline()
            assert line, "it ended"
            text += line
        yield json.loads(text)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
