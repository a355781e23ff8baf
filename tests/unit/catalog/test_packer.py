"""I2: skills of any catalog as archives: what is packed, what is remembered, what is left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire import CombinedCatalog, MemoryCatalog, Mount, Skill, Skills, connect
from skillwire.catalog.packer import FORMS, Packer
from skillwire.catalog.visibility import VisibleCatalog
from skillwire.errors import NotFoundError, VerificationError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.server.skills import build_server
from skillwire.skill.archive import unpack
from skillwire.skill.entry import DYNAMIC, digest_of
from skillwire.types import Partial, RemoteCatalog, SkillFile
from trees import skill_md

if TYPE_CHECKING:
    from skillwire import Catalog

pytestmark = pytest.mark.anyio
ONE, TWO = "skill://one/SKILL.md", "skill://acme/two/SKILL.md"


class Counting(MemoryCatalog):
    reads = 0

    async def read_file(self, uri: str) -> SkillFile:
        self.reads += 1
        return await super().read_file(uri)


def catalog(**files: bytes) -> Counting:
    two = {"SKILL.md": skill_md("two"), "a b/\u00e9.md": b"more"}
    return Counting([Skill("one", {"SKILL.md": skill_md("one"), **files}), Skill("acme/two", two)])


@rule("I2")
async def test_an_archive_hashes_to_its_digest_and_holds_the_files() -> None:
    skills, packer = catalog(), Packer()
    entry = await skills.get_skill(TWO)
    digests = await packer.digests(skills, entry)
    assert list(digests) == list(FORMS)
    for form, digest in digests.items():
        data = await packer.archive(skills, entry, form)
        assert data is not None
        assert digest_of(data) == digest
        assert unpack(data, form) == {"SKILL.md": skill_md("two"), "a b/\u00e9.md": b"more"}


@rule("I2")
async def test_digests_are_remembered_by_what_a_skill_holds() -> None:
    """Wherever it is, and whatever else changes."""
    skills, packer = catalog(), Packer()
    first = await packer.digests(skills, await skills.get_skill(TWO))
    reads = skills.reads
    skills.put(Skill("elsewhere/two", {"SKILL.md": skill_md("two"), "a b/\u00e9.md": b"more"}))
    again = await packer.digests(skills, await skills.get_skill("skill://elsewhere/two/SKILL.md"))
    assert (again, skills.reads) == (first, reads)
    skills.put(Skill("acme/two", {"SKILL.md": skill_md("two"), "a b/e.md": b"more"}))
    assert await packer.digests(skills, await skills.get_skill(TWO)) != first


@rule("I2")
async def test_a_large_skill_is_packed_like_a_small_one() -> None:
    """In a thread, which is nobody's business."""
    skills, packer = catalog(large=bytes(1_000_000)), Packer()
    entry = await skills.get_skill(ONE)
    digests = await packer.digests(skills, entry)
    assert digest_of(await packer.archive(skills, entry, "tar.gz") or b"") == digests["tar.gz"]


@rule("I3")
@pytest.mark.parametrize(
    "limits",
    [
        replace(DEFAULT_LIMITS, max_archive_bytes=100),
        replace(DEFAULT_LIMITS, max_archive_bytes=1200),
        replace(DEFAULT_LIMITS, max_resources=1),
    ],
    ids=["skill-too-large", "archive-too-large", "too-many-files"],
)
async def test_a_skill_over_the_limits_for_unpacking_is_not_packed(limits: object) -> None:
    skills, packer = catalog(more=bytes(1000)), Packer(limits)  # pyright: ignore
    entry = await skills.get_skill(ONE)
    assert await packer.digests(skills, entry) == {}
    assert [await packer.archive(skills, entry, form) for form in FORMS] == [None, None]


@rule("E2", "V7")
async def test_a_skill_without_a_complete_manifest_is_not_packed() -> None:
    """A dynamic skill, some files of one, and one without digests."""
    skills, packer = catalog(), Packer()
    entry = await skills.get_skill(ONE)
    for resources in (DYNAMIC, Partial(entry.files), (entry.files[0]._replace(digest=None),)):
        unpromised = replace(entry, resources=resources)
        assert await packer.digests(skills, unpromised) == {}
        assert await packer.archive(skills, unpromised, "zip") is None
    assert skills.reads == 0


@rule("R2", "V1")
async def test_files_that_differ_from_the_entry_are_not_packed() -> None:
    """And nothing is remembered of it."""
    skills, packer = catalog(), Packer()
    entry = await skills.get_skill(ONE)
    skills.put(Skill("one", {"SKILL.md": skill_md("one", body="Other.\n")}))
    assert await packer.digests(skills, entry) == {}
    with pytest.raises(VerificationError):
        await packer.archive(skills, entry, "zip")
    skills.remove("one")
    with pytest.raises(NotFoundError):
        await packer.archive(skills, entry, "zip")
    skills.put(Skill("one", {"SKILL.md": skill_md("one")}))
    assert len(await packer.digests(skills, entry)) == 2


@rule("V5")
@pytest.mark.parametrize("around", [False, True], ids=["alone", "combined"])
async def test_a_remote_skill_is_not_fetched_for_an_archive(around: bool) -> None:
    """An index of a gateway would otherwise read every file of every upstream."""
    skills, packer = catalog(), Packer()
    async with connect(build_server(Skills(skills))) as client:
        remote: Catalog = RemoteCatalog(client)
        if around:
            remote = VisibleCatalog(CombinedCatalog([Mount(remote, "there")]), ["one", "acme"])
        [entry] = [entry async for entry in remote.entries() if entry.uri == ONE]
        assert not entry.gaps
        assert await packer.digests(remote, entry) == {}
        assert await packer.archive(remote, entry, "zip") is None
    assert skills.reads == 0


@rule("I2")
async def test_a_local_skill_is_packed_whatever_stands_around_it() -> None:
    skills = catalog()
    around = VisibleCatalog(CombinedCatalog([Mount(skills, "here")]), ["one", "acme"])
    for uri in (ONE, TWO):
        expected = await Packer().digests(skills, await skills.get_skill(uri))
        assert await Packer().digests(around, await around.get_skill(uri)) == expected


@rule("B3")
async def test_what_is_remembered_is_bounded() -> None:
    skills, packer = catalog(), Packer(replace(DEFAULT_LIMITS, max_entries=1))
    one, two = await skills.get_skill(ONE), await skills.get_skill(TWO)
    for entry, reads in ((one, 1), (one, 1), (two, 3), (one, 4)):
        await packer.digests(skills, entry)
        assert skills.reads == reads
