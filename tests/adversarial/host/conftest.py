"""One hostile origin: over HTTP in the stateless era and over stdio in the one before, or over HTTP only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.host.origin import HostileOrigin

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


@pytest.fixture(params=[("http", "modern"), ("stdio", "legacy")], ids="-".join)
def evil(request: pytest.FixtureRequest) -> HostileOrigin:
    return HostileOrigin(*request.param)


@pytest.fixture
def web() -> HostileOrigin:
    return HostileOrigin()
