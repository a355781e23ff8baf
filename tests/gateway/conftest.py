"""Gateways with short pauses, and a place for their memory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from skillwire.gateway.breaker import Breaker

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses before another attempt are as many as ever, and short."""
    monkeypatch.setattr("skillwire.client.connection._FIRST_PAUSE", 0.001)
    monkeypatch.setattr("skillwire.client.connection._LONGEST_PAUSE", 0.05)
    monkeypatch.setattr("skillwire.client.pipes._LISTENING_SECONDS", 0.01)
    monkeypatch.setattr("skillwire.gateway.link.Breaker", partial(Breaker, first_rest=0.01, longest_rest=0.05))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"
