"""Files that are not what their entry says: V1, V2, V4, V5, V7, B1, R1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import KIB, MIB
from adversarial.conftest import NOTES
from adversarial.expecting import listed, memory_below, only, refused
from rotation import every_setting
from rules import rule
from skillwire.errors import FormatError, LimitError, ProtocolError, VerificationError
from skillwire.skill import digest_of
from trees import skill_md

if TYPE_CHECKING:
    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

SKILL, NOTE = "skill://flat/SKILL.md", "skill://flat/notes.md"


@rule("V1", "V4")
async def test_what_an_honest_server_serves_is_returned_byte_for_byte(server: HostileServer) -> None:
    """The lies below are refused for what they are, not because nothing works."""
    async with server.connect() as client:
        entry = await only(client)
        assert (await client.read_skill(entry)).data == skill_md("flat")
        assert (await client.read_resource(entry, NOTE)).data == NOTES
        assert (await client.read_skill_uri(NOTE)).data == NOTES
        assert server.read_uris() == [SKILL, NOTE, NOTE]


@rule("V1")
@pytest.mark.parametrize("uri", [SKILL, NOTE], ids=["SKILL.md", "notes.md"])
async def test_bytes_of_another_digest_are_refused(server: HostileServer, uri: str) -> None:
    """The size is right, a byte is not."""
    server.files[uri] = server.files[uri][:-2] + b"!\n"
    async with server.connect() as client:
        entry = await only(client)
        with refused(VerificationError, "digest-mismatch", "V1"):
            await (client.read_skill(entry) if uri == SKILL else client.read_resource(entry, uri))
        with refused(VerificationError, "digest-mismatch", "V1"):
            await client.read_skill_uri(uri)


@rule("V1", "E3")
@pytest.mark.parametrize("wrong", [-1, 1])
async def test_a_size_that_is_not_the_bytes_is_refused(server: HostileServer, wrong: int) -> None:
    server.entries[0]["resources"][1]["size"] += wrong
    async with server.connect() as client:
        with refused(VerificationError, "size-mismatch", "V1"):
            await client.read_resource(await only(client), NOTE)


@rule("V1", "B1")
async def test_more_bytes_than_promised_are_refused_before_they_are_decoded(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base64 is never turned into bytes."""
    decoded: list[object] = []
    monkeypatch.setattr(
        "skillwire.client.dialects.contract.b64decode", lambda *given, **_: decoded.append(given) or b""
    )
    server.files[NOTE] = b"\xff" * 60 * KIB
    async with server.connect() as client:
        with refused(VerificationError, "size-mismatch", "V1"):
            await client.read_resource(await only(client), NOTE)
    assert not decoded


@rule("B1")
@pytest.mark.parametrize("data", [b"\xff" * 65 * KIB, b"a" * 65 * KIB], ids=["base64", "text"])
async def test_a_file_above_the_bound_is_refused_however_it_is_sent(server: HostileServer, data: bytes) -> None:
    """Also where nothing is promised."""
    server.files[NOTE] = data
    async with server.connect() as client:
        with refused(LimitError, "file-too-large", "B1"):
            await client.read_unverified(NOTE)


@rule("B1")
@pytest.mark.parametrize("size", [64 * KIB + 1, 10**400], ids=["one-more", "no-machine-number"])
async def test_a_file_that_claims_too_much_is_not_even_asked_for(server: HostileServer, size: int) -> None:
    """1 TiB is refused for its entry alone."""
    server.entries[0]["resources"][1]["size"] = size
    async with server.connect() as client:
        entry = await only(client)
        assert entry.size > size
        with refused(LimitError, "file-too-large", "B1"):
            await client.read_resource(entry, NOTE)
    assert server.read_uris() == []


@rule("V2")
@pytest.mark.parametrize(
    ("uri", "reference"),
    [
        ("skill://flat/secret.md", "file-unlisted"),
        ("skill://flatter/SKILL.md", "file-outside"),
        ("other://flat/notes.md", "file-outside"),
    ],
)
async def test_a_file_that_no_entry_lists_is_not_even_asked_for(
    server: HostileServer, uri: str, reference: str
) -> None:
    server.files[uri] = b"served all the same\n"
    async with server.connect() as client:
        with refused(VerificationError, reference, "V2"):
            await client.read_resource(await only(client), uri)
    assert server.read_uris() == []


@rule("V2", "U7", "O3")
@pytest.mark.parametrize("uri", ["skill://flat/%2e%2e/x", "file:///etc/passwd"], ids=["way-up", "file"])
async def test_a_way_out_of_the_skill_is_not_even_asked_for(server: HostileServer, uri: str) -> None:
    """Whoever writes it, a model included."""
    async with server.connect() as client:
        entry = await only(client)
        for ask in (client.read_resource(entry, uri), client.read_skill_uri(uri)):
            with refused(FormatError, "uri-invalid", "O3" if uri.startswith("file") else ""):
                await ask
    assert server.read_uris() == []


FIELDS: dict[str, dict[str, Any]] = {
    "added": {"license": "MIT"},
    "changed": {"description": "Does two things."},
    "removed": {"count": None, "flag": None},
    "true-for-1": {"count": True},
}


@rule("V4")
@pytest.mark.parametrize("lie", FIELDS)
async def test_frontmatter_that_is_not_the_files_is_refused(server: HostileServer, lie: str) -> None:
    """Field by field, with JSON's types; every way to the file is closed."""
    data = skill_md("flat", extra="count: 1\nflag: true\n")
    server.entries.clear()
    frontmatter = server.add("flat", {"SKILL.md": data})["frontmatter"]
    for field, value in FIELDS[lie].items():
        frontmatter[field] = value
        if value is None:
            del frontmatter[field]
    async with server.connect() as client:
        entry = await only(client)
        for ask in (client.read_skill(entry), client.read_resource(entry, SKILL), client.read_skill_uri(SKILL)):
            with refused(VerificationError, "frontmatter-mismatch", "V4"):
                await ask


@rule("V4")
async def test_one_and_one_point_zero_are_the_same_number(server: HostileServer) -> None:
    """Numbers are compared as JSON's, which has one kind."""
    server.entries.clear()
    server.add("flat", {"SKILL.md": skill_md("flat", extra="count: 1\n")})["frontmatter"]["count"] = 1.0
    async with server.connect() as client:
        assert b"count: 1\n" in (await client.read_skill(await only(client))).data


@rule("V4")
async def test_a_skill_file_without_frontmatter_is_refused(server: HostileServer) -> None:
    """The digest is right, and there is nothing to compare."""
    data = b"# no frontmatter\n"
    server.files[SKILL] = data
    server.entries[0]["resources"][0] |= {"digest": digest_of(data), "size": len(data)}
    async with server.connect() as client:
        with refused(VerificationError, "frontmatter-mismatch", "V4"):
            await client.read_skill(await only(client))


@rule("V5")
async def test_nothing_is_fetched_ahead_of_need(server: HostileServer) -> None:
    """Not on connecting, not on listing, not on getting."""
    async with server.connect() as client:
        entry = await only(client)
        await client.get_skill(entry.uri)
        await client.catalog.refresh()
    assert server.read_uris() == []
    assert set(server.methods()) == {"skills/list", "skills/get"}


@rule("V7")
async def test_a_dynamic_skill_is_read_only_by_the_name_that_says_so(server: HostileServer) -> None:
    server.entries[0]["resources"] = "dynamic"
    async with server.connect() as client:
        entry = await only(client)
        for ask in (client.read_skill(entry), client.read_resource(entry, NOTE), client.read_skill_uri(NOTE)):
            with refused(VerificationError, "skill-dynamic", "V7"):
                await ask
        assert server.read_uris() == []
        assert (await client.read_unverified(NOTE)).data == NOTES


@rule("V1", "V3")
async def test_a_file_that_rotates_between_listing_and_reading_is_refused(server: HostileServer) -> None:
    """A fresh entry is the way out, and it is another one."""
    async with server.connect() as client:
        old = await only(client)
        server.entries.clear()
        server.add("flat", {"SKILL.md": skill_md("flat"), "notes.md": b"rotated\n"})
        with refused(VerificationError, "size-mismatch", "V1"):
            await client.read_resource(old, NOTE)
        fresh = await client.get_skill(old.uri)
        assert fresh != old
        assert (await client.read_resource(fresh, NOTE)).data == b"rotated\n"


CONTENTS: dict[str, list[Any]] = {
    "base64 of another alphabet": [{"uri": NOTE, "blob": "!!!!"}],
    "another file": [{"uri": "skill://flat/SKILL.md", "text": NOTES.decode()}],
    "nothing": [],
}


@rule("R1", "B1")
@pytest.mark.parametrize("lie", CONTENTS)
async def test_content_that_cannot_be_the_file_is_refused(server: HostileServer, lie: str) -> None:
    """Broken base64, broken text, somebody else's content."""
    server.answers["resources/read"] = {"contents": CONTENTS[lie]}
    async with server.connect() as client:
        with refused(ProtocolError, "content-invalid", "R1"):
            await client.read_resource(await only(client), NOTE)


@rule("R1", "B1")
async def test_text_that_is_not_unicode_is_refused(server: HostileServer) -> None:
    """A lone surrogate, as JSON can escape it."""
    server.answers["resources/read"] = {"contents": [{"uri": NOTE, "text": "note\ud800\n"}]}
    async with server.connect() as client:
        with refused(ProtocolError, "message-invalid", "B1"):
            await client.read_resource(await only(client), NOTE)
        del server.answers["resources/read"]
        assert (await client.read_unverified(NOTE)).data == NOTES


@rule("R1")
@every_setting
@pytest.mark.parametrize(
    "answer", [{}, {"contents": [{"uri": NOTE, "text": 1}]}], ids=["no-contents", "text-is-a-number"]
)
async def test_an_answer_of_another_shape_is_refused(web: HostileServer, answer: dict[str, Any]) -> None:
    """The SDK notices in one era, skillwire in the other."""
    web.answers["resources/read"] = answer
    said = ("content-invalid", "R1") if web.era == "modern" else ("answer-invalid", "")
    async with web.connect() as client:
        with refused(ProtocolError, *said):
            await client.read_resource(await only(client), NOTE)


@rule("V4", "B1")
async def test_a_frontmatter_that_swells_is_refused_in_bounded_memory(server: HostileServer) -> None:
    """Aliases are not unfolded."""
    laughs = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 9))
    data = f"---\nname: flat\ndescription: D\nx0: &x0 lol\n{laughs}---\n".encode()
    server.files[SKILL] = data
    server.entries[0]["resources"][0] |= {"digest": digest_of(data), "size": len(data)}
    async with server.connect() as client:
        entry = (await listed(client))[0]
        with memory_below(MIB), refused(VerificationError, "frontmatter-mismatch", "V4"):
            await client.read_skill(entry)
