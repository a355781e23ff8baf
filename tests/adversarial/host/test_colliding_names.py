"""Names that are one to a disk, or to an eye: B5, N1, E5, C1, C3."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adversarial.expecting import refused
from adversarial.host.origin import CANARY, HostileOrigin, assert_nothing_got_out, assert_refused
from host.stage import ALLOW, NO, Person, StagedHost
from rules import rule
from skillwire.catalog.export import write_skill
from skillwire.catalog.verification import read_verified
from skillwire.client.remote import RemoteCatalog
from skillwire.errors import FormatError
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

PAIRS = {
    "case": ("notes.md", "NOTES.md"),
    "Unicode form": ("caf\u00e9.md", "cafe\u0301.md"),
    "a folder": ("docs/a.md", "Docs/a.md"),
}


@rule("B5", "C1", "C3")
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
async def test_files_that_a_disk_would_take_for_one_are_two_here(
    web: HostileOrigin, state: Path, pair: tuple[str, str]
) -> None:
    """The cache has no name that a server chose, so that neither replaces the other."""
    web.add("pair", {"SKILL.md": skill_md("pair"), pair[0]: b"first\n", pair[1]: b"second\n"})
    async with web.host(state, policy=ALLOW) as host:
        await host.load("pair")
        for _ in range(2):
            assert "first" in (await host.read("pair", pair[0])).text
            assert "second" in (await host.read("pair", pair[1])).text
        assert host.cache is not None
        assert (host.cache.usage().files, host.cache.verify()) == (3, [])
        names = [name for _, _, names in os.walk(state / "cache") for name in names]
        assert len({name.casefold() for name in names}) == 3


@rule("B5")
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
async def test_files_that_a_disk_would_take_for_one_are_not_written_to_one(
    web: HostileOrigin, tmp_path: Path, pair: tuple[str, str]
) -> None:
    """Before anything is written."""
    web.add("pair", {"SKILL.md": skill_md("pair"), pair[0]: b"first\n", pair[1]: b"second\n"})
    async with web.connect() as client:
        catalog = RemoteCatalog(client)
        entry = await client.get_skill("skill://pair/SKILL.md")
        files = await read_verified(catalog, entry)
        with refused(FormatError, "path-collision", "B5"):
            write_skill(files, tmp_path / "pulled")
    assert os.listdir(tmp_path) == []


@rule("B5")
async def test_files_that_collide_in_a_folder_are_refused(tmp_path: Path, state: Path) -> None:
    """A folder's skill would be another on another disk."""
    tree = {"a/SKILL.md": skill_md("a"), "a/x.md": b"1", "a/X.md": b"2", "b/SKILL.md": skill_md("b")}
    folder = write_tree(tmp_path / "mine", tree)
    async with StagedHost.open(folders=[folder], state=state) as host:
        assert host.state("local") == "partial"
        assert [skill.name for skill in host.names.skills] == ["b"]


@rule("N1", "O2")
@pytest.mark.parametrize("name", ["OWN", "o\u1e81n", "\u043ewn"], ids=["case", "accent", "alphabet"])
async def test_a_skill_whose_name_looks_like_a_local_one_is_shown_with_its_origin(
    web: HostileOrigin, state: Path, name: str
) -> None:
    """Whether the case, the accent or the alphabet is another."""
    web.add(name, {"SKILL.md": skill_md(name, body=f"{CANARY}\n")})
    web.entries[-1]["uri"] = web.entries[-1]["resources"][0]["uri"]
    web.speak_index()  # the extension has no such names (F2)
    async with web.host(state, person=Person(NO)) as host:
        assert f"evil:{name}" in {skill.name for skill in host.names.skills}
        mine = await host.load("mine:own")
        assert 'origin="local:mine"' in mine.text
        theirs = await host.load(f"evil:{name}")
        assert_refused(theirs, "not-approved", "A1")
        await assert_nothing_got_out(host, state, mine, theirs)


@rule("A1", "E5", "U4")
@pytest.mark.parametrize("other", ["SKILL://flat/SKILL.md", "skill://fl%61t/SKILL.md"], ids=["scheme", "encoded"])
async def test_an_approval_of_one_spelling_is_none_of_another(web: HostileOrigin, state: Path, other: str) -> None:
    """An address that differs is asked about, also where it means the same."""
    person = Person()
    async with web.host(state, person=person) as host:
        await host.load("flat")
        person.answers[:] = [NO]
        web.entries.clear()
        web.add("flat", {"SKILL.md": skill_md("flat", body=f"{CANARY}\n")})
        web.entries[0]["uri"] = other
        await host.relist("evil")
        shown = [skill.name for skill in host.names.skills if skill.origin.label == "evil"]
        result = await host.load(shown[0])
        assert_refused(result, "not-approved", "A1")
        await assert_nothing_got_out(host, state, result)


@rule("C3", "O1")
async def test_labels_that_differ_in_case_share_nothing(state: Path) -> None:
    """Removing one server leaves the content of the other."""
    one, two = HostileOrigin(), HostileOrigin()
    async with one.serving() as first, two.serving() as second:
        servers = {"acme": first, "ACME": second}
        async with StagedHost.open(servers=servers, state=state, policy=ALLOW) as host:
            await host.calm(*servers)
            await host.load("acme:flat")
            await host.load("ACME:flat")
            assert host.cache is not None
            await host.remove_origin("acme")
            assert host.cache.usage().by_origin.keys() == {"ACME"}
