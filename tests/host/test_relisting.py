"""A server that reports changes all the time is listed seldom (B4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest

from adversarial.adversary import SMALL, HostileServer
from host.stage import ALLOW, hosting
from rules import rule
from skillwire.types import RemoteCatalog
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.adversary import Era

pytestmark = pytest.mark.anyio

CHANGED = "notifications/resources/list_changed"
PATIENT = replace(SMALL, relist_seconds=600.0)


def speaking_of_changes(era: Era) -> HostileServer:
    server = HostileServer("stdio", era)
    server.add("flat", {"SKILL.md": skill_md("flat")})
    return server


@rule("B4", "S1")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_host_does_not_relist_as_often_as_a_server_likes(era: Era, state: Path) -> None:
    """What comes after the flood on the same line is answered, so that the flood was heard."""
    server = speaking_of_changes(era)
    async with hosting(state, {"one": server}, limits=PATIENT, policy=ALLOW) as host:
        listings = server.methods().count("skills/list")
        for _ in range(100):
            await server.notify(CHANGED)
        assert not (await host.load("flat")).is_error
        assert server.methods().count("skills/list") == listings


@rule("B4", "S1")
async def test_a_catalog_that_follows_does_not_relist_as_often_as_a_server_likes() -> None:
    server = speaking_of_changes("legacy")
    async with server.connect(limits=PATIENT) as client, anyio.create_task_group() as group:
        group.start_soon(RemoteCatalog(client).follow)
        await server.until(lambda: server.methods().count("skills/list") == 2)
        for _ in range(100):
            await server.notify(CHANGED)
        for _ in range(5):
            await client.get_skill("skill://flat/SKILL.md")
        assert server.methods().count("skills/list") == 2
        group.cancel_scope.cancel()
