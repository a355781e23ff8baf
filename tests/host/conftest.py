"""Hosts with short pauses, and a place for their memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.adversary import HostileServer
from host.stage import Person
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses before another attempt are as many as ever, and short; a process that ended is not listened to."""
    monkeypatch.setattr("skillwire.client.connection._FIRST_PAUSE", 0.001)
    monkeypatch.setattr("skillwire.client.connection._LONGEST_PAUSE", 0.05)
    monkeypatch.setattr("skillwire.client.pipes._LISTENING_SECONDS", 0.01)


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
