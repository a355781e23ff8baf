"""Servers that declare the extension and implement a draft of it, in both eras (I1, I4, K1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.adversary import EXTENSION
from adversarial.expecting import listed, refused
from adversarial.speaking import Refusal
from host.stage import ALLOW, hosting
from rotation import every_setting
from rules import rule
from skillwire.errors import ProtocolError
from skillwire.skill import digest_of
from skillwire.types import RemoteCatalog

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

SKILL = "skill://flat/SKILL.md"
UNKNOWN = Refusal(-32601, "unknown method")


def speak_draft(server: HostileServer) -> None:
    """The extension is declared, its methods are not there, an index is."""
    entry = server.entries[0]
    item = {"url": SKILL, "frontmatter": entry["frontmatter"], "digest": digest_of(server.files[SKILL])}
    server.add_index(item)
    server.capabilities = {"resources": {}, "extensions": {EXTENSION: {}}}
    server.answers |= {"skills/list": UNKNOWN, "skills/get": UNKNOWN}


@every_setting
@rule("I1", "K1")
async def test_a_server_of_a_draft_lists_and_reads_by_its_index(server: HostileServer) -> None:
    speak_draft(server)
    async with server.connect() as client:
        [entry] = await listed(client)
        assert (await client.read_skill(entry)).uri == entry.uri
        assert await client.dialect() == "index"


@every_setting
@rule("I1", "G1")
async def test_a_skill_of_a_draft_is_got_though_nothing_was_listed(server: HostileServer) -> None:
    speak_draft(server)
    async with server.connect() as client:
        assert (await client.get_skill(SKILL)).name == "flat"
    async with server.connect() as client:
        assert (await RemoteCatalog(client).read_file(SKILL)).data == server.files[SKILL]


@every_setting
@rule("I1", "K1")
async def test_a_host_loads_a_skill_of_a_draft(server: HostileServer, tmp_path: Path) -> None:
    speak_draft(server)
    async with hosting(tmp_path, {"one": server}, policy=ALLOW) as host:
        assert host.state("one") == "complete"
        assert not (await host.load("flat")).is_error


@rule("I4", "K1")
async def test_a_draft_without_an_index_is_searched_for_skills(server: HostileServer) -> None:
    speak_draft(server)
    del server.files["skill://index.json"]
    server.answers["resources/list"] = {"resources": [{"uri": SKILL, "name": "flat"}]}
    async with server.connect() as client:
        assert [entry.name for entry in await listed(client)] == ["flat"]


@rule("K1", "L2")
async def test_a_server_that_only_gets_skills_still_speaks_the_extension(server: HostileServer) -> None:
    """It has no listing; its methods are not those of a draft."""
    server.answers["skills/list"] = UNKNOWN
    async with server.connect() as client:
        with refused(ProtocolError, "method-unknown"):
            await listed(client)
        assert (await client.get_skill(SKILL)).is_complete
