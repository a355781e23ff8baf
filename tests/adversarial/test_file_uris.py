"""A ``file:`` URI that a server offers names a file of that server, never one of this machine (O3, P4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.adversary import SMALL
from adversarial.expecting import only, refused
from adversarial.named_servers import speak_sep2076
from rules import rule
from skillwire.errors import FormatError, LimitError, NotFoundError

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio


@rule("O3", "P4")
async def test_a_file_uri_is_read_from_the_server_that_offers_it(server: HostileServer, tmp_path: Path) -> None:
    """The same path on this machine holds something else, and nobody looks at it."""
    local = tmp_path / "notes.md"
    local.write_text("of this machine")
    server.files[local.as_uri()] = b"of the server"
    async with server.connect(dialect="extension") as client:
        assert (await client.read_unverified(local.as_uri())).data == b"of the server"
        del server.files[local.as_uri()]
        with refused(NotFoundError, "not-served"):
            await client.read_unverified(local.as_uri())
    assert server.read_uris() == [local.as_uri()] * 2


@rule("P4", "O3")
async def test_a_file_of_a_named_skill_may_have_a_file_uri(server: HostileServer) -> None:
    """It is in the answer and can be read on request; it is no part of the entry, which is cached and shown."""
    uri = "file:///srv/notes.md"
    speak_sep2076(server)
    server.files[uri] = b"of the server"
    server.answers["skills/get"] = {"instructions": "Do.", "files": [{"name": "notes", "uri": uri}]}
    async with server.connect(dialect="sep-2076") as client:
        name = (await client.list_all()).entries[0].name
        skill = await client.get_named(name)
        [file] = skill.files
        assert (await client.read_unverified(file["uri"])).data == b"of the server"
        assert (await client.get_skill(f"named://{name}/SKILL.md")).files == ()


@rule("O3", "V2")
@pytest.mark.parametrize("uri", ["file:///etc/passwd", "FILE:///etc/passwd"])
async def test_a_file_uri_is_never_a_file_of_a_skill(server: HostileServer, uri: str) -> None:
    """Reads that are verified refuse it before the server is asked."""
    server.files[uri] = b"x"
    async with server.connect(dialect="extension") as client:
        entry = await only(client)
        with refused(FormatError, "uri-invalid", "O3"):
            await client.read_resource(entry, uri)
        with refused(FormatError, "uri-invalid", "O3"):
            await client.read_skill_uri(uri)
    assert server.read_uris() == []


@rule("O3", "B1")
async def test_a_file_uri_has_the_bounds_of_every_other(server: HostileServer) -> None:
    server.files["file:///large"] = b"x" * (SMALL.max_file_bytes + 1)
    async with server.connect(dialect="extension") as client:
        with refused(LimitError, "file-too-large", "B1"):
            await client.read_unverified("file:///large")
        with pytest.raises(FormatError):
            await client.read_unverified("file:///" + "x" * SMALL.max_uri_length)
    assert server.read_uris() == ["file:///large"]
