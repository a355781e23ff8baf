"""``decline`` disables a skill until it changes; ``enable`` undoes it (A1, A2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from host.stage import ALLOW, SECONDS, Person, StagedHost, hosting, make_dynamic, reference, rotate
from rules import rule
from skillwire.host.approvals import Policy, Rule
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

URI = "skill://flat/SKILL.md"


def is_shown(host: StagedHost) -> bool:
    return "<name>flat</name>" in host.catalog_prompt()


async def status(host: StagedHost) -> str:
    [skill] = await host.skills()
    return skill.status


@rule("A1", "A2", "V5")
async def test_a_declined_skill_is_not_shown_loaded_or_asked_about_until_it_changes(
    server: HostileServer, state: Path, person: Person
) -> None:
    """Whatever the policy allows, and after a restart."""
    async with hosting(state, {"one": server}, ask=person) as host:
        assert is_shown(host)
        fingerprint = await host.decline("flat", by="ada")
        assert (is_shown(host), await status(host)) == (False, "declined")
        assert "one" in host.catalog_prompt()
        assert reference(await host.load("flat")) == ("skill-declined", "A1")
        assert (person.asked, server.read_uris()) == ([], [])
    async with hosting(state, {"one": server}, ask=person, policy=ALLOW) as host:
        assert not is_shown(host)
        assert reference(await host.load("flat")) == ("skill-declined", "A1")
        assert await host.enable("flat", by="bob", note="fine after all")
        assert not await host.enable("flat")
        assert (is_shown(host), await status(host)) == (True, "unapproved")
        line = (await host.lines())[-1]
        assert (line.what, line.by) == ("enabled", "bob")
        assert line.facts == {"kind": "load", "fingerprint": fingerprint, "note": "fine after all"}
        await host.decline("flat")
        rotate(server, URI, skill_md("flat", body="Better.\n"))
        await host.relist("one")
        assert is_shown(host)
        assert not (await host.load("flat")).is_error


@rule("A1", "A2", "W1")
async def test_a_skill_of_a_folder_is_declined_too(tmp_path: Path, state: Path) -> None:
    """Also while it is acted on, and by another program."""
    folder = write_tree(tmp_path / "skills", {"flat/SKILL.md": skill_md("flat"), "flat/notes.md": b"notes\n"})
    async with StagedHost.open(folders={"mine": folder}, state=state) as host:
        assert not (await host.load("flat")).is_error
        async with StagedHost.open(folders={"mine": folder}, state=state) as other:
            await other.decline("mine:flat")
        assert reference(await host.read("flat", "notes.md")) == ("skill-changed", "A2")
        assert reference(await host.load("flat")) == ("skill-declined", "A1")
        assert (is_shown(host), await status(host)) == (False, "declined")
        await host.enable("flat")
        assert (is_shown(host), await status(host)) == (True, "local")
        assert not (await host.load("flat")).is_error
        await host.decline("flat")
    write_tree(folder, {"flat/notes.md": b"changed\n"})
    async with StagedHost.open(folders={"mine": folder}, state=state) as host:
        assert is_shown(host)


@rule("A1", "A2")
async def test_a_declined_skill_of_a_folder_is_back_when_it_changes_while_the_host_runs(
    tmp_path: Path, state: Path
) -> None:
    """Seen at once by who loads it, and soon by who only looks at the prompt."""
    folder = write_tree(tmp_path / "skills", {"flat/SKILL.md": skill_md("flat"), "flat/notes.md": b"notes\n"})
    async with StagedHost.open(folders={"mine": folder}, state=state) as host:
        await host.decline("flat")
        assert reference(await host.load("flat")) == ("skill-declined", "A1")
        write_tree(folder, {"flat/SKILL.md": skill_md("flat", body="Better.\n")})
        assert "Better." in (await host.load("flat")).text
        assert (is_shown(host), await status(host)) == (True, "local")
        await host.decline("flat")
        assert not is_shown(host)
        write_tree(folder, {"flat/notes.md": b"other\n"})
        await host.until(lambda: is_shown(host))
        write_tree(folder, {"new/SKILL.md": skill_md("new")})
        await host.until(lambda: "<name>new</name>" in host.catalog_prompt())


@rule("V7", "A1")
async def test_a_skill_that_cannot_be_verified_is_declined_by_what_its_entry_says(
    server: HostileServer, state: Path, person: Person
) -> None:
    make_dynamic(server)
    async with hosting(state, {"one": server}, ask=person, policy=Policy([Rule("ask", kind="dynamic")])) as host:
        await host.decline("flat")
        assert (is_shown(host), await status(host)) == (False, "declined")
        assert reference(await host.load("flat")) == ("skill-declined", "A1")
        assert person.asked == []
        server.entries[0]["frontmatter"]["description"] = "Does another thing."
        await host.relist("one")
        assert (is_shown(host), await status(host)) == (True, "dynamic")


@rule("A1")
async def test_what_another_program_declines_is_noticed(server: HostileServer, state: Path) -> None:
    """Without a call on this host."""
    async with hosting(state, {"one": server}) as host:
        target = {"one": f"http://127.0.0.1:{server.port}/mcp"}
        async with StagedHost.open(servers=target, state=state) as other:
            await other.settle(SECONDS)
            await other.decline("flat")
        await host.until(lambda: not is_shown(host))
