"""One ``server`` fixture: a lie is told over HTTP or stdio, in one of the protocol eras."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.adversary import HostileServer
from rotation import rotated_settings
from trees import skill_md

if TYPE_CHECKING:
    from adversarial.adversary import Era, Transport

WEB = [("http", "legacy"), ("http", "modern")]
SETTINGS = [*WEB, ("stdio", "legacy"), ("stdio", "modern")]
NOTES = b"notes\n"


@pytest.fixture(params=rotated_settings(SETTINGS))
def server(request: pytest.FixtureRequest) -> HostileServer:
    """A server with one honest skill, ``skill://flat/SKILL.md``, which has one file beside it."""
    return _with_one_skill(*request.param)


@pytest.fixture(params=rotated_settings(WEB))
def web(request: pytest.FixtureRequest) -> HostileServer:
    """The same, over HTTP only."""
    return _with_one_skill(*request.param)


@pytest.fixture(params=rotated_settings([("legacy",), ("modern",)]))
def process(request: pytest.FixtureRequest) -> HostileServer:
    """The same, over stdio only."""
    return _with_one_skill("stdio", *request.param)


def _with_one_skill(transport: Transport, era: Era) -> HostileServer:
    hostile = HostileServer(transport, era)
    hostile.add("flat", {"SKILL.md": skill_md("flat"), "notes.md": NOTES})
    return hostile
