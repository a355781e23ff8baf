"""Servers whose only sign of skills is their instructions: they have ``resources/read`` and no more (I5, U5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adversarial.expecting import listed
from adversarial.speaking import Refusal
from host.stage import hosting
from rotation import every_setting
from rules import rule
from skillwire.host.approvals import Policy, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

SKILL = "skill://flat/SKILL.md"
UNKNOWN = Refusal(-32601, "unknown method")


def only_read(server: HostileServer, capabilities: Any = None) -> None:
    server.capabilities = {"resources": {}} if capabilities is None else capabilities
    server.instructions = f"Before a refund read {SKILL}."
    server.answers |= {"skills/list": UNKNOWN, "skills/get": UNKNOWN, "resources/list": UNKNOWN}


@every_setting
@rule("I5")
async def test_a_skill_that_only_the_instructions_name_is_found_and_read(server: HostileServer) -> None:
    only_read(server)
    async with server.connect(instructions=True) as client:
        [entry] = await listed(client)
        assert (entry.name, entry.uri) == ("flat", SKILL)
        assert (await client.read_unverified(SKILL)).data == server.files[SKILL]


@rule("I5", "K1")
async def test_a_server_that_declares_nothing_is_asked_for_what_its_instructions_name(
    server: HostileServer,
) -> None:
    only_read(server, {})
    async with server.connect(instructions=True) as client:
        assert [entry.name for entry in await listed(client)] == ["flat"]


@rule("I5", "V5")
async def test_without_the_option_such_a_server_shows_no_skills(server: HostileServer) -> None:
    only_read(server)
    async with server.connect() as client:
        assert await listed(client) == []
        assert await client.dialect() is None
    assert SKILL not in server.read_uris()


@rule("I5", "U5")
@pytest.mark.parametrize("data", [None, b"Just words.\n", b"---\nname: other\ndescription: D\n---\n"])
async def test_a_uri_is_no_skill_by_its_scheme_alone(server: HostileServer, data: bytes | None) -> None:
    """The server has to give a SKILL.md of that name."""
    only_read(server)
    del server.files[SKILL]
    if data is not None:
        server.files[SKILL] = data
    async with server.connect(instructions=True) as client:
        assert await listed(client) == []


@rule("I5", "V7")
@pytest.mark.parametrize("instructions", [True, False], ids=["asked for", "by default"])
async def test_a_host_knows_such_skills_if_it_is_told_to_look(
    server: HostileServer, tmp_path: Path, instructions: bool
) -> None:
    """They promise no digests, so that they are loaded by an explicit choice only."""
    only_read(server)
    policy = Policy([Rule("allow", kind="dynamic")])
    async with hosting(tmp_path, {"one": server}, policy=policy, instructions=instructions) as host:
        assert [skill.name for skill in host.names.skills] == (["flat"] if instructions else [])
        assert (await host.load("flat")).is_error is not instructions
