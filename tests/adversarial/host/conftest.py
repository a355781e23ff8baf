"""One hostile origin: over HTTP in the stateless era and over stdio in the one before, or over HTTP only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.host.origin import HostileOrigin
from rotation import rotated_settings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture(params=rotated_settings([("http", "modern"), ("stdio", "legacy")]))
def evil(request: pytest.FixtureRequest) -> HostileOrigin:
    return HostileOrigin(*request.param)


@pytest.fixture
def web() -> HostileOrigin:
    return HostileOrigin()
