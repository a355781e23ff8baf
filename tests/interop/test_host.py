"""Our host and eight servers that we did not write: skills are shown, approved, loaded, and their files read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from interop.cells import PEERS, SCENARIOS, SETTINGS
from interop.explained import NOTES, disputed, hurt
from interop.honest import LARGE, TRAITS, path_of, skills_of
from interop.hosting import BY_CHOICE, ORIGIN, Visit, hosting, speak, visit_all
from rules import rule
from skillwire.host.results import Refusal

if TYPE_CHECKING:
    from pathlib import Path

    from interop.cells import Record
    from interop.running import Era, PeerServer, Transport

pytestmark = pytest.mark.anyio

SERVERS = [name for name, peer in PEERS["host"].items() if peer.features != SCENARIOS]
GENERATED = ["typescript", "ext-skills", "ext-skills-0.12"]


def promises(peer: str) -> bool:
    """Whether a server says of a skill that is wanted which bytes it has, so that a yes can be bound (A1)."""
    return peer not in ("bare-python", "bare-typescript")


@rule("A1", "O1", "O2", "V1", "V4", "V7", "W1")
@pytest.mark.parametrize("peer", SERVERS)
@pytest.mark.parametrize(("transport", "era"), SETTINGS)
async def test_every_skill_is_approved_loaded_and_read(
    cell: Record,
    peer_server: PeerServer,
    peer: str,
    transport: Transport,
    era: Era,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And what nothing turns out to be promised of is declined, whatever the answer, unless a rule says to ask."""
    is_promised, notes = promises(peer), {} if promises(peer) else {"skills": "nothing-promised"}
    if (peer, era) == ("fastmcp", "legacy"):
        notes = {"skills": "fastmcp-description"}
    cell("host", peer, transport, era, "skills", notes=notes)
    speak(era, monkeypatch)
    served = peer_server(peer)
    if not is_promised and transport == "http":
        declined = await visit_all(served, transport, tmp_path / "declined")
        assert declined.loaded == {}
        assert declined.refused == dict.fromkeys(manuals(served.tree), "not-approved")
    visit = await visit_all(served, transport, tmp_path / "asked", None if is_promised else BY_CHOICE)
    assert visit.refused == {}
    assert visit.read == served.tree
    assert sorted(visit.asked) == sorted(visit.loaded) == manuals(served.tree)
    assert all("Do it." in text and ORIGIN in text for text in visit.loaded.values())


def manuals(tree: dict[str, bytes]) -> list[str]:
    return [f"{skill}/SKILL.md" for skill in skills_of(tree)]


@rule("F4", "F5", "F6", "U7", "N1", "V1", "V4")
@pytest.mark.parametrize("peer", SERVERS)
async def test_honest_skills_come_through_unless_their_server_spoils_them(
    cell: Record, peer_server: PeerServer, peer: str, tmp_path: Path
) -> None:
    """Where bytes are promised, wrong ones never come out."""
    traits = list(dict.fromkeys(TRAITS.values()))
    cell("host", peer, "http", "modern", *traits, notes=NOTES[peer])
    served = peer_server(peer, "disputed")
    is_promised = promises(peer)
    visit = await visit_all(served, "http", tmp_path, None if is_promised else BY_CHOICE)
    wrong = {path for path, data in visit.read.items() if data != served.tree[path]}
    if is_promised:
        assert wrong == set()
    assert hurt(served.tree.keys() - visit.read.keys() | wrong) == disputed(peer)


@rule("E6", "B1")
@pytest.mark.parametrize("peer", SERVERS)
async def test_skills_as_large_as_they_may_be_are_loaded(
    cell: Record, peer_server: PeerServer, peer: str, tmp_path: Path
) -> None:
    """Every file of 15 MiB, and some of 500."""
    cell("host", peer, "http", "modern", "limits", notes=NOTES[peer])
    served = peer_server(peer, "limits")
    paths = [path for path in served.tree if path.startswith("big/") or path.endswith(("0.md", "SKILL.md"))]
    policy = None if promises(peer) else BY_CHOICE
    visit = await visit_all(served, "http", tmp_path, policy, only=paths)
    expected = {path: served.tree[path] for path in paths}
    if peer == "ext-skills-0.12":
        for path in LARGE:
            del expected[path]
            assert visit.refused.pop(path) == "file-unlisted"
    assert visit.refused == {}
    assert visit.read == expected


@rule("V7", "E2")
@pytest.mark.parametrize("peer", GENERATED)
async def test_a_generated_skill_is_declined_and_loaded_by_choice(
    cell: Record, generated_server: PeerServer, peer: str, tmp_path: Path
) -> None:
    """Asked about each time, and never remembered."""
    cell("host", peer, "http", "modern", "generated", notes=NOTES[peer])
    served, uri, visit = generated_server(peer), "skill://generated/SKILL.md", Visit()
    async with hosting(served, "http", tmp_path / "declined", visit) as host:
        declined = await host.load_skill(uri, origin=ORIGIN)
        assert isinstance(declined, Refusal)
    async with hosting(served, "http", tmp_path / "asked", visit, BY_CHOICE) as host:
        found = [path_of(skill.uri) for skill in await host.skills()]
        loaded = [await host.load_skill(uri, origin=ORIGIN) for _ in range(2)]
    if peer == "ext-skills-0.12":  # that generation's entry cannot be told from an invalid one (E2)
        assert (declined.reference, found, visit.asked) == ("entry-invalid", [], [])
        return
    assert (declined.reference, found) == ("not-approved", ["generated/SKILL.md"])
    assert visit.asked == ["generated/SKILL.md"] * 2
    assert ["Read" in getattr(each, "text", "") for each in loaded] == [True, True]
