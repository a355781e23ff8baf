"""A hostile server behind a ``Catalog``: it rotates, swaps and withdraws while it is read (V1–V4, V7, R2)."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import content
from adversarial.conftest import NOTES
from adversarial.expecting import refused
from adversarial.speaking import Refusal
from rules import rule
from skillwire.errors import NotFoundError, ProtocolError, VerificationError
from skillwire.skill.uri import parse_uri
from skillwire.types import RemoteCatalog
from trees import skill_md

if TYPE_CHECKING:
    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

SKILL, NOTE = "skill://flat/SKILL.md", "skill://flat/notes.md"


def rotate(server: HostileServer, **files: bytes) -> None:
    """The same skill with other bytes, honestly described."""
    server.entries.clear()
    server.add("flat", {"SKILL.md": files.get("skill", skill_md("flat")), "notes.md": files.get("notes", NOTES)})


@rule("V3", "R2")
async def test_a_skill_that_rotates_honestly_is_read_by_its_fresh_entry(server: HostileServer) -> None:
    """One more get, and whoever listens hears of the change."""
    async with server.connect(dialect="extension") as client:
        catalog = RemoteCatalog(client)
        before = (await catalog.list_skills()).items
        rotate(server, notes=b"rotated\n")
        with catalog.changes() as changes:
            assert (await catalog.read_file(NOTE)).data == b"rotated\n"
            assert (await anext(changes)).changed == {SKILL}
        assert await catalog.peek_skill(SKILL) != before[0]
    assert server.methods() == ["skills/list", "resources/read", "skills/get", "resources/read"]


@rule("V3", "V4")
async def test_a_skill_file_that_rotates_honestly_is_read_by_its_fresh_entry(server: HostileServer) -> None:
    """New fields, and an entry that has them."""
    async with server.connect() as client:
        catalog = RemoteCatalog(client)
        await catalog.list_skills()
        rotated = skill_md("flat", "Does another thing.")
        rotate(server, skill=rotated)
        assert (await catalog.read_file(SKILL)).data == rotated


@rule("V1", "R2")
@pytest.mark.parametrize("data", [b"other\n", b"longer than promised\n"], ids=["same-size", "longer"])
async def test_a_skill_that_rotates_without_saying_so_is_refused(server: HostileServer, data: bytes) -> None:
    """The fresh entry is the old one, so there are no bytes for it."""
    async with server.connect(dialect="extension") as client:
        catalog = RemoteCatalog(client)
        await catalog.list_skills()
        server.files[NOTE] = data
        with pytest.raises(VerificationError) as caught:
            await catalog.read_file(NOTE)
        assert (caught.value.rule, caught.value.reference[-8:]) == ("V1", "mismatch")
    assert server.methods() == ["skills/list", "resources/read", "skills/get"]


@rule("V1", "R2")
async def test_a_skill_that_never_stops_rotating_is_refused(server: HostileServer) -> None:
    """Each entry is new, none describes the bytes; it is not chased for ever."""
    numbers = count(1)

    def entry(_: dict[str, Any]) -> dict[str, Any]:
        rotate(server, notes=b"version %d\n" % next(numbers))
        return {"skill": server.entries[0]}

    server.answers["skills/get"] = entry
    server.answers["resources/read"] = lambda params: content(params["uri"], b"version 0\n")
    async with server.connect(dialect="extension") as client:
        catalog = RemoteCatalog(client)
        await catalog.list_skills()
        with pytest.raises(VerificationError):
            await catalog.read_file(NOTE)
    assert server.methods().count("skills/get") == 1


@rule("V4")
@pytest.mark.parametrize("spelled", [SKILL, "skill://flat/SKILL%2Emd"], ids=["plain", "encoded"])
async def test_fields_that_never_match_are_refused(server: HostileServer, spelled: str) -> None:
    """A catalog is no way around it, and neither is another spelling in the list of files."""
    entry = server.entries[0]
    entry["frontmatter"]["allowed-tools"] = "Bash"
    next(file for file in entry["resources"] if file["uri"] == SKILL)["uri"] = spelled
    server.files[spelled] = server.files[SKILL]
    async with server.connect() as client:
        catalog = RemoteCatalog(client)
        await catalog.list_skills()
        with refused(VerificationError, "frontmatter-mismatch", "V4"):
            await catalog.read_file(SKILL)


@rule("V2", "R2")
async def test_a_file_that_no_entry_lists_is_not_there(server: HostileServer) -> None:
    """The entry is asked for once more, the file never."""
    server.files["skill://flat/secret.md"] = b"served all the same\n"
    async with server.connect() as client:
        catalog = RemoteCatalog(client)
        await catalog.list_skills()
        with pytest.raises(NotFoundError):
            await catalog.read_file("skill://flat/secret.md")
    assert server.read_uris() == []


@rule("V2", "V3")
async def test_a_file_that_was_added_is_read_by_the_fresh_entry(server: HostileServer) -> None:
    async with server.connect() as client:
        catalog = RemoteCatalog(client)
        await catalog.list_skills()
        server.entries.clear()
        server.add("flat", {"SKILL.md": skill_md("flat"), "notes.md": NOTES, "new.md": b"new\n"})
        assert (await catalog.read_file("skill://flat/new.md")).data == b"new\n"


@rule("R2", "G1")
async def test_a_skill_that_was_withdrawn_is_not_there(server: HostileServer) -> None:
    """Its bytes are still served, and mean nothing."""
    async with server.connect() as client:
        catalog = RemoteCatalog(client)
        await catalog.list_skills()
        server.entries.clear()
        server.files[NOTE] = b"other\n"
        with pytest.raises(NotFoundError):
            await catalog.read_file(NOTE)


@rule("V3", "G1")
async def test_a_fresh_entry_of_another_skill_is_refused(server: HostileServer) -> None:
    other = server.add("other", {"SKILL.md": skill_md("other")}, listed=False)
    async with server.connect() as client:
        catalog = RemoteCatalog(client)
        await catalog.list_skills()
        server.files[NOTE] = b"other\n"
        server.answers["skills/get"] = {"skill": other}
        with refused(ProtocolError, "entry-other", "G1"):
            await catalog.read_file(NOTE)


@rule("V7")
async def test_dynamic_skills_are_read_only_by_choice(server: HostileServer) -> None:
    """And the choice does not weaken those that can be verified."""
    server.add("made", {"SKILL.md": skill_md("made")})["resources"] = "dynamic"
    async with server.connect() as client:
        with refused(VerificationError, "skill-dynamic", "V7"):
            await RemoteCatalog(client).read_file("skill://made/SKILL.md")
        assert server.read_uris() == []
        lenient = RemoteCatalog(client, allow_unverified=True)
        await lenient.list_skills()
        assert (await lenient.read_file("skill://made/SKILL.md")).data == skill_md("made")
        server.files[NOTE] = b"other\n"
        with refused(VerificationError, "digest-mismatch", "V1"):
            await lenient.read_file(NOTE)


@rule("R2", "B3")
async def test_a_listing_that_fails_leaves_what_was_held(server: HostileServer) -> None:
    """Half a listing is none."""
    async with server.connect() as client:
        catalog = RemoteCatalog(client)
        await catalog.list_skills()
        server.answers["skills/list"] = {"skills": [], "nextCursor": "again"}
        with refused(ProtocolError, "page-repeats", "B3"):
            await catalog.list_skills()
        server.answers["skills/get"] = Refusal()
        assert (await catalog.read_file(NOTE)).data == NOTES


@rule("V5", "A2")
async def test_refresh_tells_what_a_server_changed_without_reading(server: HostileServer) -> None:
    """By digests alone."""
    server.add("kept", {"SKILL.md": skill_md("kept")})
    server.add("gone", {"SKILL.md": skill_md("gone")})
    async with server.connect() as client:
        catalog = RemoteCatalog(client)
        await catalog.list_skills()
        flat, kept, _ = server.entries
        flat["resources"][1]["digest"] = "sha256:" + "0" * 64
        server.entries[:] = [kept, flat]
        server.add("new", {"SKILL.md": skill_md("new")})
        change = await catalog.refresh()
        found = [
            parse_uri(uri).parent.path for uris in (change.added, change.changed, change.removed) for uri in uris
        ]
        assert found == ["new", "flat", "gone"]
    assert server.read_uris() == []
