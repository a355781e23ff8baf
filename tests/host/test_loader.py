"""The whole path of a skill, with real servers: fetched, verified, loaded, read (V, W, O, C, U6)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import HostileServer
from adversarial.expecting import refused
from adversarial.speaking import Refusal
from host.stage import ALLOW, SECONDS, Person, StagedHost, hosting, make_dynamic, reference
from rules import rule
from skillwire.errors import StoreError, UpstreamError
from skillwire.host.approvals import Policy, Rule
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

URI = "skill://flat/SKILL.md"


SETTINGS = [("http", "modern"), ("http", "legacy"), ("stdio", "modern"), ("stdio", "legacy")]


@rule("V1", "V4", "W1", "A1", "O2")
@pytest.mark.parametrize(("transport", "era"), SETTINGS, ids=map("-".join, SETTINGS))
async def test_a_skill_is_asked_about_loaded_and_read(
    transport: Any, era: Any, server: HostileServer, state: Path, person: Person
) -> None:
    """From two servers at once, over every transport, in both eras."""
    other = HostileServer(transport, era)
    other.add("team/refunds", {"SKILL.md": skill_md("refunds", body="Pay back.\n"), "docs/limits.md": b"500\n"})
    async with hosting(state, {"one": server, "two": other}, ask=person) as host:
        assert [skill.name for skill in host.names.skills] == ["flat", "refunds"]
        assert other.read_uris() == []
        loaded = await host.load("refunds")
        assert not loaded.is_error, loaded.refusal
        assert 'origin="mcp:two"' in loaded.text
        assert "Pay back." in loaded.text
        read = await host.read("refunds", "docs/limits.md")
        assert "500" in read.text
        assert not (await host.load("flat")).is_error
        assert [(request.kind, request.origin) for request in person.asked] == [("load", "two"), ("load", "one")]
        assert await host.happened() == ["approved", "loaded", "read", "approved", "loaded"]


@rule("V5")
async def test_nothing_is_fetched_before_it_is_needed(server: HostileServer, state: Path) -> None:
    """Not on connecting, listing, showing, approving; then one file at a time."""
    async with hosting(state, {"one": server}, policy=ALLOW) as host:
        host.catalog_prompt()
        await host.skills()
        await host.approve("flat")
        assert server.read_uris() == []
        await host.load("flat")
        assert server.read_uris() == [URI]
        await host.ls("flat")
        assert server.read_uris() == [URI]
        await host.read("flat", "notes.md")
        assert server.read_uris() == [URI, "skill://flat/notes.md"]


@rule("G1", "A1")
async def test_an_unlisted_skill_is_loaded_by_its_uri(server: HostileServer, state: Path, person: Person) -> None:
    """With its origin, in either way; it is asked about like any other."""
    hidden = server.add("unlisted", {"SKILL.md": skill_md("unlisted"), "a.md": b"aaa\n"}, listed=False)
    server.answers["skills/get"] = lambda params: {"skill": hidden} if params["uri"] == hidden["uri"] else None
    async with hosting(state, {"one": server}, ask=person) as host:
        assert reference(await host.load("unlisted")) == ("skill-unknown", "N1")
        loaded = await host.load(hidden["uri"], origin="one")
        assert f'name="one:{hidden["uri"]}"' in loaded.text
        for name in (f"one:{hidden['uri']}", hidden["uri"]):
            assert "aaa" in (await host.read(name, "a.md")).text
        assert not (await host.load(f"one:{hidden['uri']}")).is_error
        assert person.kinds == ["load"]
        host.leave(f"one:{hidden['uri']}")
        assert reference(await host.read(f"one:{hidden['uri']}", "a.md"))[0] == "skill-unknown"
        assert reference(await host.load("skill://no/SKILL.md", origin="one")) == ("not-served", "")
        assert reference(await host.load("skill://no/SKILL.md", origin="two")) == ("origin-unknown", "O1")


@rule("G1", "N1", "A1")
async def test_a_uri_that_one_server_lists_and_another_has_unlisted_is_ambiguous(
    state: Path, person: Person
) -> None:
    """Being listed decides nothing; a name from the list means the listed one."""
    one, two = HostileServer(), HostileServer(era="legacy")
    one.add("flat", {"SKILL.md": skill_md("flat")})
    two.answers["skills/get"] = {"skill": two.add("flat", {"SKILL.md": skill_md("flat")}, listed=False)}
    async with hosting(state, {"one": one, "two": two}, ask=person) as host:
        several = await host.load(URI)
        assert reference(several) == ("origin-ambiguous", "N1")
        assert several.refusal is not None
        assert several.refusal.choices == ("one", "two")
        assert person.asked == []
        assert not (await host.load("flat")).is_error
        for label in ("one", "two"):
            assert f'origin="mcp:{label}"' in (await host.load(URI, origin=label)).text
        two.answers["skills/get"] = Refusal(-32602, "unknown")
        assert 'origin="mcp:one"' in (await host.load(URI)).text


@rule("G1", "N1", "A1")
async def test_an_unlisted_skill_is_loaded_without_its_origin_if_one_server_has_it(
    state: Path, person: Person
) -> None:
    """The prompt names servers that list nothing, so that a model knows whom to ask."""
    one, two = HostileServer(), HostileServer(era="legacy")
    hidden = one.add("unlisted", {"SKILL.md": skill_md("unlisted")}, listed=False)
    entries: dict[str, Any] = {"one": hidden, "two": None}
    for label, server in (("one", one), ("two", two)):
        server.answers["skills/get"] = lambda _, label=label: (
            {"skill": entries[label]} if entries[label] else Refusal(-32602, "unknown")
        )
    async with hosting(state, {"one": one, "two": two}, ask=person) as host:
        assert {"one", "two"} <= set(re.findall(r"\w+", host.catalog_prompt()))
        uri = hidden["uri"]
        loaded = await host.load(uri)
        assert f'name="one:{uri}"' in loaded.text, loaded.text
        host.leave()
        entries["two"] = hidden
        several = await host.load(uri)
        assert reference(several) == ("origin-ambiguous", "N1")
        assert several.refusal is not None
        assert several.refusal.choices == ("one", "two")
        assert "one, two" in several.text
        assert f"two:{uri}" in several.refusal.hint
        assert not (await host.load(f"one:{uri}")).is_error
        assert not (await host.load(uri, origin="one")).is_error
        entries.update(one=None, two=None)
        host.leave()
        assert reference(await host.load(uri)) == ("skill-unknown", "G1")
        assert reference(await host.load("skill://../SKILL.md"))[0] == "uri-invalid"
        assert person.kinds == ["load"]


@rule("U6", "V2")
async def test_references_in_a_skill_are_followed_inside_it(
    server: HostileServer, state: Path, person: Person
) -> None:
    """As authors write them."""
    server.add(
        "team/refunds",
        {"SKILL.md": skill_md("refunds"), "docs/R\u00e9sum\u00e9 1.md": b"cv\n", "docs/deep/x.md": b"xx\n"},
    )
    spellings = {
        "docs/deep/x.md": "xx",
        "./docs/deep/x.md": "xx",
        "docs/../docs/deep/x.md": "xx",
        "docs/deep/x.md#part": "xx",
        "docs/deep/x.md?raw=1": "xx",
        "skill://team/refunds/docs/deep/x.md": "xx",
        "SKILL://team/refunds/docs/deep/x.md": "xx",
        "docs/R\u00e9sum\u00e9 1.md": "cv",
        "docs/R%C3%A9sum%C3%A9%201.md": "cv",
        "SKILL.md": "Do it.",
    }
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("refunds")
        for path, text in spellings.items():
            result = await host.read("refunds", path)
            assert text in result.text, (path, result.refusal)


REFUSED = {
    "nothing.md": ("file-unlisted", "V2"),
    "docs": ("file-unlisted", "V2"),
    "Notes.md": ("file-unlisted", "V2"),
    "../other/SKILL.md": ("link-outside", "U6"),
    "%2e%2e/other/SKILL.md": ("link-outside", "U6"),
    "a/%2e%2e%2f%2e%2e/x": ("link-outside", "U6"),
    "/etc/passwd": ("machine-file", "O3"),
    "skill://other/SKILL.md": ("file-outside", "V2"),
    "skill://flat": ("file-outside", "V2"),
    "github://flat/notes.md": ("file-outside", "V2"),
    "https://example.com/x": ("file-outside", "V2"),
    "mailto:x@example.com": ("file-unknown", "U6"),
    "#part": ("file-unknown", "U6"),
    "": ("file-unknown", "U6"),
}


@rule("U6", "V2", "O3")
async def test_references_that_leave_the_skill_are_refused(server: HostileServer, state: Path) -> None:
    """And reach no server."""
    async with hosting(state, {"one": server}, policy=ALLOW) as host:
        await host.load("flat")
        for path, expected in REFUSED.items():
            assert reference(await host.read("flat", path)) == expected, path
            assert server.read_uris() == [URI], path


@rule("O3", "U6")
@pytest.mark.parametrize(
    "path", ["github://flat/x.md", "skill://other/x.md", "skill://flat"], ids=["scheme", "path", "root"]
)
async def test_a_dynamic_skill_cannot_read_outside_of_itself(
    path: str, server: HostileServer, state: Path
) -> None:
    """There is no list to look in, and the place still counts, scheme and all."""
    make_dynamic(server)
    async with hosting(state, {"one": server}, policy=Policy([Rule("allow", kind="dynamic")])) as host:
        await host.load("flat")
        assert reference(await host.read("flat", path)) == ("cross-origin", "O3")
        assert not (await host.read("flat", "notes.md")).is_error
        assert server.read_uris() == [URI, "skill://flat/notes.md"]


@rule("W3", "D1", "O2")
async def test_a_directory_is_listed_from_the_manifest(server: HostileServer, state: Path, person: Person) -> None:
    """No server is asked, whatever it would say; the names are tagged."""
    server.capabilities["extensions"] = {"io.modelcontextprotocol/skills": {"directoryRead": True}}
    server.add("tree", {"SKILL.md": skill_md("tree"), "docs/a.md": b"", "docs/deep/b.md": b"", "docs.md": b""})
    async with hosting(state, {"one": server}, ask=person) as host:
        assert reference(await host.ls("tree")) == ("skill-not-loaded", "W2")
        await host.load("tree")
        listed = (await host.ls("tree")).text
        assert "\nSKILL.md\ndocs.md\ndocs/\n" in listed
        assert 'origin="mcp:one"' in listed
        for path in ("docs", "/docs/", "docs/"):
            assert "\na.md\ndeep/\n" in (await host.ls("tree", path)).text
        for path in ("nothing", "doc", "docs/a.md", "..", "docs/../..", "SKILL.md"):
            assert reference(await host.ls("tree", path)) == ("directory-unknown", "W3")
    assert "resources/directory/read" not in server.methods()


@rule("C1", "A1", "V1")
async def test_a_skill_is_loaded_while_its_server_is_away(
    server: HostileServer, state: Path, person: Person
) -> None:
    """From the cache, and it says so; what is not there is refused."""
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
    async with StagedHost.open(servers={"one": ["/no/such/command"]}, state=state, ask=person) as host:
        await host.settle(SECONDS)
        loaded = await host.load_skill("flat")
        assert getattr(loaded, "offline", None) is True
        assert "\nnote: " in (await host.load("flat")).text
        assert reference(await host.read("flat", "notes.md")) == ("server-away", "C1")
        assert person.kinds == ["load"]
        assert [line.facts.get("offline") for line in await host.lines() if line.what == "loaded"] == [
            False,
            True,
            True,
        ]


@rule("O2", "A5")
async def test_a_folder_of_the_persons_own_needs_no_yes(tmp_path: Path, state: Path) -> None:
    """And says in the context that it is local."""
    folder = write_tree(tmp_path / "mine", {"a/SKILL.md": skill_md("a"), "a/n.md": b"nn\n"})
    async with StagedHost.open(folders=[folder], state=state) as host:
        assert 'origin="local:local"' in (await host.load("a")).text
        assert "nn" in (await host.read("a", "n.md")).text
        assert await host.gate("Bash") is None
        assert [status.status for status in await host.skills()] == ["local"]
        assert host.cache is not None
        assert host.cache.usage().files == 0


@rule("C2")
async def test_the_cache_lies_where_no_host_looks_for_skills(tmp_path: Path) -> None:
    """A state folder inside a folder of skills, or above one, is refused before anything is kept."""
    folder = write_tree(tmp_path / "mine", {"a/SKILL.md": skill_md("a")})
    before = everything_in(tmp_path)
    for state in (folder, folder / "state", tmp_path / "skills" / "state"):
        with refused(StoreError, "cache-misplaced", "C2"):
            async with StagedHost.open(folders=[folder], state=state):
                pytest.fail("it was opened")
    assert everything_in(tmp_path) == before


def everything_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@rule("C2", "C3")
async def test_the_cache_holds_no_file_that_a_host_would_take_for_a_skill(
    server: HostileServer, state: Path, person: Person
) -> None:
    """Whatever a server calls its files; a folder of it is never an origin of skills."""
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        await host.read("flat", "notes.md")
    kept = [path.name for path in (state / "cache").rglob("*") if path.is_file()]
    assert len(kept) == 2
    assert not any("SKILL" in name or "notes" in name or "." in name for name in kept)
    async with StagedHost.open(folders=[state / "cache" / "o-one"], state=state.with_name("other")) as host:
        assert host.names.skills == ()


@rule("O1", "G1")
async def test_an_origin_that_cannot_be_asked_now_is_no_unknown_skill(server: HostileServer, state: Path) -> None:
    async with StagedHost.open(servers={"one": ["/no/such/command"]}, state=state) as host:
        await host.settle(SECONDS)
        assert reference(await host.load(URI, origin="one")) == ("server-away", "C1")
        with pytest.raises(UpstreamError):
            await host.find(f"one:{URI}")
