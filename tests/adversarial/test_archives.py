"""Packed skills as a server should not pack them, through the index dialect: I2, I3, B5, V1."""

from __future__ import annotations

import stat
import tarfile
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import MIB
from adversarial.expecting import memory_below, only, refused
from adversarial.packing import COLLIDING, REFUSED, ROOTLESS, SKILL, TOO_MUCH, tar, zipped
from rules import rule
from skillwire.errors import FormatError, LimitError, VerificationError
from skillwire.skill import digest_of

if TYPE_CHECKING:
    from adversarial.adversary import HostileServer
    from skillwire import SkillwireError

pytestmark = pytest.mark.anyio

MEDIA = {"tar.gz": "application/gzip", "zip": "application/zip"}
PACKED = "skill://packed/SKILL.md"


@cache
def made(lie: str) -> dict[str, bytes]:
    """The same lie in every form; some take a moment to make."""
    return {form: make() for form, make in {**REFUSED, **COLLIDING, **TOO_MUCH, **ROOTLESS}[lie].items()}


def serve(server: HostileServer, data: bytes, form: str, **changed: Any) -> None:
    """An index with one packed skill, honest about the archive's digest."""
    url = f"skill://packed.{form}"
    server.files[url] = data
    packed = {"url": url, "mimeType": MEDIA[form], "digest": digest_of(data), **changed}
    frontmatter = {"name": "packed", "description": "Does one thing well."}
    server.add_index({"frontmatter": frontmatter, "archives": [packed]})


async def unpack(server: HostileServer, lie: str, kind: type[SkillwireError], reference: str, rule: str) -> None:
    """Every way to the content of an archive, in every form of the lie; listing reads none."""
    async with server.connect(dialect="index") as client:
        for form, data in made(lie).items():
            serve(server, data, form)
            entry = await only(client)
            assert f"skill://packed.{form}" not in server.read_uris()
            for ask in (client.get_skill(entry.uri), client.read_unverified(PACKED)):
                with refused(kind, reference, rule):
                    await ask


@rule("I3")
@pytest.mark.parametrize("lie", REFUSED)
async def test_an_archive_that_could_reach_elsewhere_is_refused(server: HostileServer, lie: str) -> None:
    """Every way to refuse one is in ``unit/skill/test_archive.py``; here, what becomes of the refusal."""
    await unpack(server, lie, FormatError, "archive-refused", "I3")


@rule("I3", "B5")
@pytest.mark.parametrize("lie", COLLIDING)
async def test_names_that_a_disk_takes_for_one_are_refused(server: HostileServer, lie: str) -> None:
    await unpack(server, lie, FormatError, "archive-refused", "B5")


@rule("I3", "B1")
@pytest.mark.parametrize("lie", TOO_MUCH)
async def test_an_archive_that_swells_is_refused(server: HostileServer, lie: str) -> None:
    """Members, bytes, ratio, headers; in bounded memory and time."""
    made(lie)
    with memory_below(6 * MIB):
        await unpack(server, lie, LimitError, "archive-too-large", "I3")


@rule("I2")
@pytest.mark.parametrize("lie", ROOTLESS)
async def test_an_archive_without_a_skill_at_its_root_is_refused(server: HostileServer, lie: str) -> None:
    await unpack(server, lie, FormatError, "archive-refused", "I2")


@rule("V1", "I2")
async def test_an_archive_of_another_digest_is_refused(server: HostileServer) -> None:
    """Before it is unpacked."""
    serve(server, tar(SKILL), "tar.gz", digest=digest_of(b"another"))
    async with server.connect() as client:
        for wanted in (client.get_skill(PACKED), client.read_unverified(PACKED)):
            with refused(VerificationError, "digest-mismatch", "V1"):
                await wanted


@rule("B1")
async def test_an_archive_above_the_bound_is_refused(server: HostileServer) -> None:
    """As it is, before it is unpacked."""
    serve(server, b"\xff" * 70_000, "zip")
    async with server.connect() as client:
        with refused(LimitError, "file-too-large", "B1"):
            await client.get_skill(PACKED)


@rule("I2")
async def test_an_archive_of_another_kind_is_refused(server: HostileServer) -> None:
    """Neither the type nor the suffix is known, and it is not even asked for."""
    url = "skill://packed.rar"
    server.files[url] = b"Rar!"
    frontmatter = {"name": "packed", "description": "D"}
    packed = {"url": url, "mimeType": "application/vnd.rar", "digest": digest_of(b"Rar!")}
    server.add_index({"frontmatter": frontmatter, "url": PACKED, "archives": [packed]})
    async with server.connect() as client:
        with refused(FormatError, "archive-unknown", "I2"):
            await client.get_skill(PACKED)
    assert url not in server.read_uris()


@rule("I2")
@pytest.mark.parametrize("form", MEDIA)
async def test_an_archive_whose_type_lies_is_refused(server: HostileServer, form: str) -> None:
    """The type says how to read it, whatever it is."""
    other = {"tar.gz": "zip", "zip": "tar.gz"}[form]
    serve(server, {"tar.gz": tar, "zip": zipped}[other](SKILL), form)
    async with server.connect() as client:
        with refused(FormatError, "archive-refused", "I3"):
            await client.get_skill(PACKED)


@rule("I2", "I3", "V1", "V4")
@pytest.mark.parametrize("form", MEDIA)
async def test_an_honest_archive_is_read_and_its_files_are_promised(server: HostileServer, form: str) -> None:
    """Setuid bits are dropped, folders are no files; a field that differs is still a mismatch."""
    files = [SKILL, ("docs/guide.md", b"guide\n"), ("bin/run", b"#!\n")]
    header = tarfile.TarInfo("empty/")
    header.type = tarfile.DIRTYPE
    data = tar(*files, headers=(header,)) if form == "tar.gz" else zipped(*files, mode=stat.S_IFREG | 0o6755)
    serve(server, data, form)
    async with server.connect() as client:
        entry = await client.get_skill(PACKED)
        assert entry.gaps == frozenset()
        assert [file.uri for file in entry.files] == [
            "skill://packed/SKILL.md",
            "skill://packed/bin/run",
            "skill://packed/docs/guide.md",
        ]
        assert (await client.read_skill(entry)).data == SKILL[1]
        assert (await client.read_resource(entry, "skill://packed/docs/guide.md")).data == b"guide\n"
        assert server.read_uris().count(f"skill://packed.{form}") == 1
        with refused(VerificationError, "file-unlisted", "V2"):
            await client.read_resource(entry, "skill://packed/docs")


@rule("V1", "V4")
async def test_an_archive_that_contradicts_its_index_is_refused(server: HostileServer) -> None:
    """The index promises a SKILL.md, the archive holds another."""
    url, data = "skill://packed.zip", zipped(SKILL)
    server.files[url] = data
    frontmatter = {"name": "packed", "description": "Does something else."}
    packed = {"url": url, "mimeType": MEDIA["zip"], "digest": digest_of(data)}
    server.add_index({"frontmatter": frontmatter, "archives": [packed]})
    async with server.connect() as client:
        with refused(VerificationError, "frontmatter-mismatch", "V4"):
            await client.read_skill(await client.get_skill(PACKED))


@rule("I2", "V1", "V7")
async def test_an_archive_without_a_digest_promises_nothing_and_is_fetched_anew(server: HostileServer) -> None:
    """Getting is asking again; its files are read by the name that says so."""
    url = "skill://packed.tar.gz"
    frontmatter = {"name": "packed", "description": "Does one thing well."}
    server.files[url] = tar(SKILL)
    server.add_index({"frontmatter": frontmatter, "archives": [{"url": url, "mimeType": "application/gzip"}]})
    async with server.connect() as client:
        entry = await client.get_skill(PACKED)
        assert entry.gaps == {"manifest", "digest"}
        with refused(VerificationError, "digest-unpromised", "V1"):
            await client.read_skill(entry)
        server.files[url] = tar(SKILL, ("new.md", b"new\n"))
        assert len((await client.get_skill(PACKED)).files) == 2
        assert (await client.read_unverified("skill://packed/new.md")).data == b"new\n"


@rule("V1", "I2")
@pytest.mark.parametrize("promised", [True, False], ids=["archive-digest", "no-archive-digest"])
async def test_a_skill_file_that_is_packed_differently_is_refused(server: HostileServer, promised: bool) -> None:
    """The index gives the digest of the SKILL.md, and the archive holds other bytes."""
    data = tar(SKILL)
    server.files |= {"skill://packed.tar.gz": data, PACKED: SKILL[1] + b"honest\n"}
    packed = {"url": "skill://packed.tar.gz", "mimeType": "application/gzip"}
    if promised:
        packed["digest"] = digest_of(data)
    frontmatter = {"name": "packed", "description": "Does one thing well."}
    digest = digest_of(SKILL[1] + b"honest\n")
    server.add_index({"frontmatter": frontmatter, "url": PACKED, "digest": digest, "archives": [packed]})
    async with server.connect() as client:
        listed_entry = await only(client)
        with refused(VerificationError, "digest-mismatch", "V1"):
            await client.read_skill(listed_entry)
        with refused(VerificationError, "digest-mismatch", "V1"):
            await client.read_skill(await client.get_skill(PACKED))
