"""An index that lies, and skills among plain resources that lie: I1, I4, V1, V4, V5, B1, B3, E5, O3."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import KIB
from adversarial.expecting import listed, only, refused
from adversarial.speaking import Refusal
from rules import rule
from skillwire.errors import FormatError, LimitError, ProtocolError, VerificationError
from skillwire.skill import digest_of
from skillwire.types import SkillsClient
from trees import skill_md

if TYPE_CHECKING:
    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

INDEX, SKILL, NOTE = "skill://index.json", "skill://flat/SKILL.md", "skill://flat/notes.md"
DATA = skill_md("flat")
FIELDS = {"name": "flat", "description": "Does one thing well."}
NEWER = {"frontmatter": FIELDS, "url": SKILL, "digest": digest_of(DATA)}
OLDER = {"type": "skill-md", "url": SKILL, **FIELDS}

NO_INDEX = {
    "prose": b"I have no such resource, but here is a poem.",
    "nothing": b"",
    "half": b'{"skills": [',
    "a list": b"[]",
    "no skills": b'{"schema": "x"}',
    "skills that are text": b'{"skills": "many"}',
    "depth": b"[" * 60_000,
    "bytes": b"\xff\xfe\xfd",
}


@rule("I1", "B1")
async def test_an_index_that_is_none_is_refused(server: HostileServer) -> None:
    """Where the index was named as the dialect."""
    server.add_index()
    async with server.connect(dialect="index") as client:
        for server.files[INDEX] in NO_INDEX.values():
            with refused(ProtocolError, "index-invalid", "I1"):
                await listed(client)


@rule("I1", "I4")
async def test_an_index_that_is_none_is_not_taken_for_one(server: HostileServer) -> None:
    """Some servers answer every read; the resources are searched instead."""
    server.add_index()
    server.answers["resources/list"] = {"resources": [{"uri": SKILL, "name": "flat", "description": "D"}]}
    async with server.connect() as connected:
        for server.files[INDEX] in NO_INDEX.values():
            client = SkillsClient(connected.connection)
            assert (await only(client)).uri == SKILL
            assert await client.dialect() == "fallback"


@rule("I4")
@pytest.mark.parametrize("code", [-32602, -32603], ids=["unknown", "failed"])
async def test_a_missing_index_is_no_proof(server: HostileServer, code: int) -> None:
    """Whatever the server says for it."""
    server.capabilities = {"resources": {}}
    server.answers["resources/read"] = Refusal(code)
    server.answers["resources/list"] = {"resources": [{"uri": SKILL, "name": "flat", "description": "D"}]}
    async with server.connect() as client:
        assert (await only(client)).gaps == {"manifest", "digest", "size", "frontmatter"}
    assert server.read_uris() == [INDEX]


@rule("B1")
async def test_an_index_above_the_bound_is_refused(server: HostileServer) -> None:
    """In bytes."""
    server.add_index(NEWER, padding="p" * 65 * KIB)
    async with server.connect(dialect="index") as client:
        with refused(LimitError, "file-too-large", "B1"):
            await listed(client)


@rule("B3")
async def test_an_index_with_too_many_entries_is_refused(server: HostileServer) -> None:
    """In entries."""
    server.add_index(*({} for _ in range(101)))
    async with server.connect(dialect="index") as client:
        with refused(LimitError, "listing-too-long", "B3"):
            await listed(client)


LIES: dict[str, tuple[str, Any]] = {
    "no object": ("I1", "flat"),
    "no url": ("I1", {"frontmatter": FIELDS}),
    "another name": ("U3", {**NEWER, "frontmatter": {"name": "other", "description": "D"}}),
    "no description": ("E1", {**NEWER, "frontmatter": {"name": "flat"}}),
    "a broken digest": ("E3", {**NEWER, "digest": "sha256:abc"}),
    "a description that is a number": ("E1", {**OLDER, "description": 7}),
    "a file of the machine": ("O3", {**OLDER, "url": "FILE:/flat/SKILL.md"}),
    "an archive of the machine": ("O3", {**NEWER, "archives": [{"url": "file:///etc/flat.zip"}]}),
    "an archive of the older kind on the machine": ("O3", {"type": "archive", "url": "file:///flat.tar.gz"}),
    "an archive with a broken digest": ("E3", {**NEWER, "archives": [{"url": "flat.zip", "digest": "no"}]}),
}


@rule("I1", "E1", "E3", "U3", "O3")
@pytest.mark.parametrize("lie", LIES)
async def test_an_invalid_entry_of_an_index_is_reported_and_left_out(server: HostileServer, lie: str) -> None:
    """The rest is listed, and nothing of the machine is asked for."""
    rule, item = LIES[lie]
    other = {"url": "skill://other/SKILL.md", "frontmatter": {"name": "other", "description": "D"}}
    server.add_index(item, other)
    async with server.connect() as client:
        assert (await only(client)).name == "other"
        assert [(problem.rule, problem.severity) for problem in client.problems] == [(rule, "error")]
        assert client.problems[0].hint
    assert server.read_uris() == [INDEX, INDEX]


@rule("I1")
async def test_a_template_is_reported_and_left_out(server: HostileServer) -> None:
    """Its skills exist once somebody has filled it in."""
    server.add_index(NEWER, {"type": "mcp-resource-template", "url": "skill://docs/{product}/SKILL.md"})
    async with server.connect() as client:
        assert (await only(client)).name == "flat"
        [problem] = client.problems
        assert (problem.reference, problem.rule, problem.severity) == ("entry-template", "I1", "warning")


@rule("E5")
async def test_a_url_that_an_index_lists_twice_counts_once(server: HostileServer) -> None:
    server.add_index(NEWER, {**NEWER, "frontmatter": {**FIELDS, "description": "Another."}})
    async with server.connect() as client:
        assert (await only(client)).description == FIELDS["description"]
        assert [(problem.reference, problem.rule) for problem in client.problems] == [("entry-repeated", "E5")]


@rule("V5", "I1")
async def test_listing_an_index_reads_the_index_only(server: HostileServer) -> None:
    server.add_index(NEWER)
    async with server.connect() as client:
        await listed(client)
    assert set(server.read_uris()) == {INDEX}


@rule("V1", "V2", "V4", "I1")
async def test_the_digest_in_an_index_holds(server: HostileServer) -> None:
    """Of the SKILL.md; of other files there is none."""
    server.add_index(NEWER)
    async with server.connect() as client:
        entry = await only(client)
        assert entry.gaps == {"manifest", "size"}
        assert (await client.read_skill(entry)).data == DATA
        with refused(VerificationError, "file-unlisted", "V2"):
            await client.read_resource(entry, NOTE)
        server.files[SKILL] = DATA + b"more\n"
        with refused(VerificationError, "digest-mismatch", "V1"):
            await client.read_skill(entry)
        server.add_index({**NEWER, "frontmatter": {**FIELDS, "license": "MIT"}})
        server.files[SKILL] = DATA
        with refused(VerificationError, "frontmatter-mismatch", "V4"):
            await client.read_skill(await only(client))


@rule("V1", "V7")
async def test_an_index_without_digests_promises_nothing(server: HostileServer) -> None:
    """Read by the name that says so, or not at all."""
    server.add_index(OLDER)
    async with server.connect() as client:
        entry = await only(client)
        assert "digest" in entry.gaps
        with refused(VerificationError, "digest-unpromised", "V1"):
            await client.read_skill(entry)
        assert SKILL not in server.read_uris()
        assert (await client.read_unverified(SKILL)).data == DATA


@rule("V3", "V1")
async def test_an_index_that_rotates_is_read_anew(server: HostileServer) -> None:
    """Getting is asking again."""
    server.add_index(NEWER)
    async with server.connect() as client:
        old = await only(client)
        rotated = DATA + b"rotated\n"
        server.files[SKILL] = rotated
        server.add_index({**NEWER, "digest": digest_of(rotated)})
        with refused(VerificationError, "digest-mismatch", "V1"):
            await client.read_skill(old)
        assert (await client.read_skill(await client.get_skill(SKILL))).data == rotated


MANIFESTS: dict[str, tuple[str, Any]] = {
    "no SKILL.md": ("E2", {"files": [{"path": "x", "size": 1, "hash": "0" * 64}]}),
    "a way out": ("U7", {"files": [{"path": "../x", "size": 1, "hash": "0" * 64}]}),
    "no hash": ("E3", {"files": [{"path": "SKILL.md", "size": 1}]}),
}


@rule("I4", "E2", "E3", "U7")
@pytest.mark.parametrize("lie", MANIFESTS)
async def test_a_manifest_that_breaks_a_rule_is_refused(server: HostileServer, lie: str) -> None:
    """The promises of a plain resource are checked like any other."""
    rule, manifest = MANIFESTS[lie]
    server.capabilities = {"resources": {}}
    server.files["skill://flat/_manifest"] = json.dumps(manifest).encode()
    async with server.connect(dialect="fallback") as client:
        with pytest.raises(FormatError) as caught:
            await client.get_skill(SKILL)
    assert caught.value.rule == rule
    assert caught.value.hint


@rule("I4", "V1", "V7")
@pytest.mark.parametrize("data", [b"\xff", b'{"files": []}'], ids=["no-text", "no-files"])
async def test_a_file_that_only_has_the_name_of_a_manifest_is_a_file(server: HostileServer, data: bytes) -> None:
    """It promises nothing, and is read as any other."""
    server.capabilities = {"resources": {}}
    server.files["skill://flat/_manifest"] = data
    async with server.connect(dialect="fallback") as client:
        entry = await client.get_skill(SKILL)
        assert {"manifest", "digest"} <= entry.gaps
        assert (await client.read_unverified("skill://flat/_manifest")).data == data


@rule("I4", "V1")
async def test_a_manifest_that_lies_about_bytes_is_refused(server: HostileServer) -> None:
    """Also for files that were not read yet."""
    files = [{"path": "SKILL.md", "size": len(DATA), "hash": digest_of(DATA)}]
    files.append({"path": "notes.md", "size": 6, "hash": digest_of(b"other\n")})
    server.capabilities = {"resources": {}}
    server.files["skill://flat/_manifest"] = json.dumps({"files": files}).encode()
    async with server.connect(dialect="fallback") as client:
        entry = await client.get_skill(SKILL)
        with refused(VerificationError, "digest-mismatch", "V1"):
            await client.read_resource(entry, NOTE)
        server.files[SKILL] = DATA + b"more\n"
        with refused(VerificationError, "size-mismatch", "V1"):
            await client.get_skill(SKILL)


@rule("N1", "B1", "I1")
@pytest.mark.parametrize("name", ["pay ", "p" * 257], ids=["blank-behind", "long"])
async def test_a_name_that_looks_like_another_or_is_too_long_is_reported_and_not_listed(
    server: HostileServer, name: str
) -> None:
    fields = [{"name": each, "description": "d"} for each in ("pay", name)]
    server.add_index(
        *(
            {"frontmatter": each, "url": f"skill://x/{each['name'].replace(' ', '%20')}/SKILL.md"}
            for each in fields
        )
    )
    async with server.connect() as client:
        assert [entry.name for entry in await listed(client)] == ["pay"]
        assert [problem.reference for problem in client.problems] == ["entry-invalid"]
