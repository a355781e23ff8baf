"""A place for a host's memory, a person and an honest server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.adversary import HostileServer
from host.stage import Person
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
def server() -> HostileServer:
    """An honest server over HTTP: ``flat`` with notes beside it."""
    server = HostileServer()
    server.add("flat", {"SKILL.md": skill_md("flat"), "notes.md": b"notes\n"})
    return server
