"""Fixtures of the desk tests: a state folder, and a correct server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.adversary import HostileServer
from desks import ASKING
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def server() -> HostileServer:
    """An honest server over HTTP: ``flat`` with notes beside it."""
    server = HostileServer()
    server.add("flat", {"SKILL.md": skill_md("flat"), "notes.md": b"notes\n"})
    return server


@pytest.fixture
def asking() -> HostileServer:
    """A server with one skill, which asks for tools and wants to run code."""
    server = HostileServer()
    server.add("asking", ASKING)
    return server
