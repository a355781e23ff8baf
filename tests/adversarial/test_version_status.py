"""What a server states about versions is bounded, only text, and nothing else of its ``_meta`` is kept (R4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import KIB, SMALL
from adversarial.expecting import listed, refused
from rules import rule
from skillwire.errors import LimitError
from skillwire.skill.version_status import VERSION, VERSIONS, VersionStatus, version_status
from trees import skill_md

if TYPE_CHECKING:
    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

FLAT = "skill://flat/SKILL.md"
ODD: dict[str, tuple[Any, VersionStatus]] = {
    "text": ({"number": "1.0.0", "yanked": "why"}, VersionStatus("1.0.0", yanked="why")),
    "no text": ({"number": 1, "yanked": ["why"], "instead": None}, VersionStatus()),
    "too long": ({"number": "1.0.0", "yanked": "y" * 3_000}, VersionStatus("1.0.0")),
    "no object": ("1.0.0", VersionStatus()),
    "unknown": ({"number": "1.0.0", "approved": "yes"}, VersionStatus("1.0.0")),
}


@rule("R4")
@pytest.mark.parametrize(("stated", "kept"), ODD.values(), ids=ODD)
async def test_only_short_text_is_kept(server: HostileServer, stated: Any, kept: VersionStatus) -> None:
    meta = {VERSION: stated, "io.github.skillwire/snapshot": "now", "com.example/x": "y"}
    server.answers["skills/list"] = {"skills": server.entries, "_meta": {**meta, VERSIONS: {FLAT: stated}}}
    server.answers["skills/get"] = {"skill": server.entries[0], "_meta": meta}
    async with server.connect(dialect="extension") as client:
        [entry] = await listed(client)
        for each in (entry, await client.get_skill(FLAT)):
            assert version_status(each) == kept
            assert set(each.meta.meta) <= {VERSION}


@rule("B1", "R4")
async def test_it_counts_to_the_bytes_of_the_listing(server: HostileServer) -> None:
    server.entries.clear()
    for number in range(20):
        server.add(f"s{number}", {"SKILL.md": skill_md(f"s{number}")})
    much = {entry["uri"]: {"yanked": "y" * 1_000} for entry in server.entries}
    server.answers["skills/list"] = {"skills": server.entries, "_meta": {VERSIONS: much}}
    async with server.connect(dialect="extension", limits=replace(SMALL, max_listing_bytes=16 * KIB)) as client:
        with refused(LimitError, "listing-too-long", "B3"):
            await listed(client)
