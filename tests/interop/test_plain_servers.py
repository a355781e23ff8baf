"""Our client and servers without the extension: resources registered by hand with the bare SDKs, and an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from interop.cells import DIAGONAL, SETTINGS
from interop.explained import NOTES, disputed, hurt
from interop.honest import TRAITS, path_of, skills_of
from rules import rule
from skillwire.client.connect import connect
from skillwire.client.remote import RemoteCatalog
from skillwire.errors import SkillwireError, VerificationError
from skillwire.skill import format_uri

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from interop.cells import Record
    from interop.running import Era, PeerServer, Served, Transport
    from skillwire.client.skills import SkillsClient

pytestmark = pytest.mark.anyio

BARE = ["bare-python", "bare-typescript"]
PEERS = [*BARE, "index"]


def connected(served: Served, transport: Transport, era: Era) -> AbstractAsyncContextManager[SkillsClient]:
    target = served.url if transport == "http" else served.command
    return connect(target, mode="legacy" if era == "legacy" else "auto")


async def read_by_choice(client: SkillsClient, served: Served, only: list[str] | None = None) -> dict[str, bytes]:
    """Every file on disk, verified where something is promised; those that were refused are left out."""
    catalog, read = RemoteCatalog(client, allow_unverified=True), dict[str, bytes]()
    for path in only or served.tree:
        try:
            read[path] = (await catalog.read_file(format_uri(path))).data
        except SkillwireError:
            continue
    return read


@rule("I1", "I2", "I4", "V7")
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize(("transport", "era"), SETTINGS)
async def test_skills_are_found_and_read_by_choice(
    cell: Record, peer_server: PeerServer, peer: str, transport: Transport, era: Era
) -> None:
    """Nothing that is not promised is taken for verified."""
    cell("client", peer, transport, era, "skills", notes={"skills": "nothing-promised"} if peer in BARE else {})
    served = peer_server(peer)
    async with connected(served, transport, era) as client:
        assert await client.dialect() == ("index" if peer == "index" else "fallback")
        entries = [entry async for entry in client.list_skills()]
        assert sorted(entry.path for entry in entries) == skills_of(served.tree)
        assert not client.problems
        if peer in BARE:
            for entry in entries:
                with pytest.raises(VerificationError) as caught:
                    await client.read_skill(await client.get_skill(entry.uri))
                assert caught.value.reference == "digest-unpromised"
        assert await read_by_choice(client, served) == served.tree


@rule("I1", "I2", "V1")
@pytest.mark.parametrize(("transport", "era"), DIAGONAL)
async def test_what_an_index_promises_is_verified(
    cell: Record, peer_server: PeerServer, transport: Transport, era: Era
) -> None:
    """A manual by its digest, and every file of an archive."""
    cell("client", "index", transport, era, "skills")
    served = peer_server("index")
    async with connected(served, transport, era) as client:
        for uri in map(format_uri, (f"{skill}/SKILL.md" for skill in skills_of(served.tree))):
            entry = await client.get_skill(uri)
            assert (await client.read_skill(entry)).data == served.tree[path_of(uri)]
            assert entry.is_complete == (len(entry.files) > 1)
            for file in entry.files:
                assert (await client.read_resource(entry, file.uri)).data == served.tree[path_of(file.uri)]


@rule("F4", "F5", "F6", "U7", "E5", "R2")
@pytest.mark.parametrize("peer", PEERS)
async def test_honest_skills_come_through_unless_their_server_spoils_them(
    cell: Record, peer_server: PeerServer, peer: str
) -> None:
    cell("client", peer, "http", "modern", *dict.fromkeys(TRAITS.values()), notes=NOTES[peer])
    served = peer_server(peer, "disputed")
    async with connected(served, "http", "modern") as client:
        assert sorted([entry.path async for entry in client.list_skills()]) == skills_of(served.tree)
        read = await read_by_choice(client, served)
    wrong = {path for path, data in read.items() if data != served.tree[path]}
    assert hurt(served.tree.keys() - read.keys() | wrong) == disputed(peer)


@rule("I1", "I4")
@pytest.mark.parametrize("peer", PEERS)
async def test_230_skills_are_listed(cell: Record, peer_server: PeerServer, peer: str) -> None:
    cell("client", peer, "http", "modern", "pages")
    served = peer_server(peer, "wide")
    async with connected(served, "http", "modern") as client:
        assert sorted([entry.path async for entry in client.list_skills()]) == skills_of(served.tree)


@rule("E6", "B1")
@pytest.mark.parametrize("peer", PEERS)
async def test_skills_as_large_as_they_may_be_are_read(cell: Record, peer_server: PeerServer, peer: str) -> None:
    """Every file of 15 MiB, and some of 500."""
    cell("client", peer, "http", "modern", "limits")
    served = peer_server(peer, "limits")
    paths = [path for path in served.tree if path.startswith("big/") or path.endswith(("0.md", "SKILL.md"))]
    async with connected(served, "http", "modern") as client:
        assert await read_by_choice(client, served, paths) == {path: served.tree[path] for path in paths}
