"""One ``server`` fixture: a lie is told over HTTP or stdio, in one of the protocol eras, or to short reads."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from adversarial.adversary import HostileServer
from rotation import settings
from trees import skill_md

if TYPE_CHECKING:
    from adversarial.adversary import Era, Transport

ERAS = [("http", "legacy"), ("http", "modern")]
WEB = [*ERAS, ("http", "modern", "short")]
SETTINGS = [*WEB, ("stdio", "legacy"), ("stdio", "modern")]
NOTES = b"notes\n"
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that runs in every setting, ``make test`` runs one; the others are slow."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        setting = item.get_closest_marker("setting")
        if setting and item.get_closest_marker("every_setting") and item.path.is_relative_to(HERE):
            cases[item.nodeid.replace(setting.args[0], "", 1)].append(item)
    for case, variants in cases.items():
        chosen = crc32(case.encode()) % len(variants)
        for item in variants[:chosen] + variants[chosen + 1 :]:
            item.add_marker("slow")


@pytest.fixture(params=settings(SETTINGS))
def server(request: pytest.FixtureRequest) -> HostileServer:
    """A server with one honest skill, ``skill://flat/SKILL.md``, which has one file beside it."""
    return _with_one_skill(*request.param)


@pytest.fixture(params=settings(WEB))
def web(request: pytest.FixtureRequest) -> HostileServer:
    """The same, over HTTP only."""
    return _with_one_skill(*request.param)


@pytest.fixture(params=settings(ERAS))
def in_era(request: pytest.FixtureRequest) -> HostileServer:
    """The same, for what depends on the era and not on the transport."""
    return _with_one_skill(*request.param)


@pytest.fixture(params=settings([("legacy",), ("modern",)]))
def process(request: pytest.FixtureRequest) -> HostileServer:
    """The same, over stdio only."""
    return _with_one_skill("stdio", *request.param)


def _with_one_skill(transport: Transport, era: Era, *short: str) -> HostileServer:
    hostile = HostileServer(transport, era, short_reads=bool(short))
    hostile.add("flat", {"SKILL.md": skill_md("flat"), "notes.md": NOTES})
    return hostile
