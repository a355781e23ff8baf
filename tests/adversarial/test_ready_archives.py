"""Archives as nobody should pack them, given to a server to serve: I2, I3, B5.

Each is refused with words that name the file, before and while serving, and costs nothing but itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from adversarial.adversary import MIB
from adversarial.expecting import memory_below
from adversarial.packing import COLLIDING, ROOTLESS, SKILL, TOO_MUCH, tar, zipped
from adversarial.test_archives import made
from interaction.conftest import Wire
from rules import rule
from skillwire import ArchiveCatalog, CombinedCatalog, Limits, MemoryCatalog, Mount, Skill, Skills
from skillwire.server.skills import build_server
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
PACKED, GOOD = "skill://packed/SKILL.md", "skill://good/SKILL.md"
HONEST = {"tar.gz": tar, "zip": zipped}
SMALL = Limits(max_skill_bytes=300_000, max_resources=50)


def put(path: Path, data: bytes) -> None:
    path.write_bytes(data)


async def check(folder: Path, lie: str, reference: str) -> None:
    """The lie at the start; then in the place of an honest archive, and an honest one in its place again."""
    for form, data in made(lie).items():
        path = folder / f"bad.{form}"
        put(path, data)
        archive = ArchiveCatalog(path, limits=SMALL)
        good = MemoryCatalog([Skill("good", {"SKILL.md": skill_md("good")})])
        catalog = CombinedCatalog([Mount(archive, "bad"), Mount(good, "own")])
        async with Client(build_server(Skills(catalog, watch=False))) as client:
            wire = Wire(client, "modern")
            await _is_left_out(wire, catalog, reference, path.name)
            put(path, HONEST[form](SKILL))
            await archive.refresh()
            assert [entry["uri"] for entry in (await wire.call("skills/list"))["skills"]] == [PACKED, GOOD]
            await wire.call("resources/read", uri=f"skill://packed.{form}")
            put(path, data)
            await archive.refresh()
            await _is_left_out(wire, catalog, reference, path.name)


async def _is_left_out(wire: Wire, catalog: CombinedCatalog, reference: str, name: str) -> None:
    [problem] = await catalog.problems()
    assert (problem.reference, problem.file, problem.refuses) == (reference, name, True)
    assert problem.message
    assert problem.hint
    assert [entry["uri"] for entry in (await wire.call("skills/list"))["skills"]] == [GOOD]
    for uri in (PACKED, "skill://packed.zip", "skill://packed.tar.gz", "skill://packed/special"):
        with pytest.raises(MCPError) as caught:
            await wire.call("resources/read", uri=uri)
        assert caught.value.error.code == -32602
    index = (await wire.call("resources/read", uri="skill://index.json"))["contents"][0]["text"]
    assert "packed" not in index
    assert GOOD in index


@rule("I2", "I3", "B5")
@pytest.mark.parametrize("lie", ["a symbolic link", "half an archive", *COLLIDING, *ROOTLESS])
async def test_an_archive_with_a_trick_is_not_served(tmp_path: Path, lie: str) -> None:
    await check(tmp_path, lie, "archive-refused")


@rule("I3", "B1")
@pytest.mark.parametrize("lie", TOO_MUCH)
async def test_an_archive_that_swells_is_not_served(tmp_path: Path, lie: str) -> None:
    """In bounded memory."""
    made(lie)
    with memory_below(12 * MIB):
        await check(tmp_path, lie, "archive-too-large")
