"""When the index is made, for whom, and from what: kept until something changes, and true as long as it is."""

from __future__ import annotations

import json
from base64 import b64decode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from interaction.conftest import Wire
from interaction.test_access import ACCESS, TOKENS, caller, running
from rules import rule
from skillwire import ArchiveCatalog, CombinedCatalog, MemoryCatalog, Mount, Skill, SkillMeta, Skills
from skillwire.server.skills import build_server
from skillwire.skill.archive import pack, unpack
from skillwire.skill.entry import digest_of
from trees import skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from skillwire import Catalog
    from skillwire.types import SkillFile

pytestmark = pytest.mark.anyio
INDEX = "skill://index.json"


class Watched(MemoryCatalog):
    """Counts what is read, and can do something meanwhile."""

    def __init__(self, skills: list[Skill]) -> None:
        super().__init__(skills)
        self.reads: list[str] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def read_file(self, uri: str) -> SkillFile:
        self.reads.append(uri)
        if self.meanwhile is not None:
            await self.meanwhile()
        return await super().read_file(uri)


def skill(name: str, body: str = "Do it.\n", **files: bytes) -> Skill:
    return Skill(name, {"SKILL.md": skill_md(name, body=body), **files})


@asynccontextmanager
async def served(source: Catalog | Skills | Path, **options: Any) -> AsyncIterator[Wire]:
    skills = source if isinstance(source, Skills) else Skills(source, **options)
    async with Client(build_server(skills)) as client:
        yield Wire(client, "modern")


async def read(wire: Wire, uri: str) -> bytes:
    [content] = (await wire.call("resources/read", uri=uri))["contents"]
    return content["text"].encode() if "text" in content else b64decode(content["blob"])


async def index_of(wire: Wire, uri: str = INDEX) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in json.loads(await read(wire, uri))["skills"]}


async def refusal(wire: Wire, uri: str) -> str:
    with pytest.raises(MCPError) as caught:
        await wire.call("resources/read", uri=uri)
    return json.dumps(caught.value.error.model_dump())


@rule("I1", "V5")
async def test_nothing_is_packed_before_the_index_is_read_and_then_once() -> None:
    catalog = Watched([skill("one"), skill("two", more=b"2")])
    async with served(catalog) as wire:
        await wire.call("skills/list")
        assert catalog.reads == []
        first = await index_of(wire)
        assert len(catalog.reads) == 3
        assert await index_of(wire) == first
        assert len(catalog.reads) == 3


@rule("I1", "S1")
async def test_after_a_change_only_what_changed_is_packed_again() -> None:
    catalog = Watched([skill("one"), skill("two"), skill("three")])
    async with served(catalog) as wire:
        before = await index_of(wire)
        catalog.reads.clear()
        catalog.put(skill("two", "Do it well.\n"))
        catalog.remove("three")
        after = await index_of(wire)
        assert catalog.reads == ["skill://two/SKILL.md"]
        assert after["one"] == before["one"]
        assert after["two"]["archives"] != before["two"]["archives"]
        assert list(after) == ["one", "two"]
        catalog.put(skill("two"))
        assert (await index_of(wire))["two"] == before["two"]
        assert len(catalog.reads) == 1


@rule("I1", "R2")
async def test_a_change_while_the_index_is_made_is_not_lost() -> None:
    """What is answered and what is kept are of the state after it."""
    catalog = Watched([skill("one"), skill("two")])

    async def change() -> None:
        catalog.meanwhile = None
        catalog.put(skill("one", "Do it well.\n"))
        catalog.put(skill("three"))

    catalog.meanwhile = change
    async with served(catalog) as wire:
        for _ in range(2):
            index = await index_of(wire)
            assert sorted(index) == ["one", "three", "two"]
            for item in index.values():
                for archive in item["archives"]:
                    assert digest_of(await read(wire, archive["url"])) == archive["digest"]


@rule("I1")
async def test_a_catalog_that_never_rests_is_answered_for_all_the_same() -> None:
    """With the last that was made."""
    catalog = Watched([skill("one"), skill("two")])
    count = 0

    async def change() -> None:
        nonlocal count
        count += 1
        catalog.put(skill("two", f"{count}\n"))

    catalog.meanwhile = change
    async with served(catalog) as wire:
        assert list(await index_of(wire)) == ["one", "two"]


@rule("I2", "R2")
async def test_an_archive_of_a_skill_that_changes_meanwhile_is_of_the_skill_after_it() -> None:
    """Never a mixture."""
    catalog = Watched([skill("one", a=b"1", b=b"1")])

    async def change() -> None:
        if len(catalog.reads) == 2:
            catalog.put(skill("one", a=b"2", b=b"2"))

    catalog.meanwhile = change
    async with served(catalog) as wire:
        files = unpack(await read(wire, "skill://one.zip"), "zip")
    assert (files["a"], files["b"]) == (b"2", b"2")


@rule("I1")
async def test_many_who_ask_at_once_wait_for_one_index() -> None:
    catalog = Watched([skill(f"s{number}") for number in range(20)])
    seen: list[Any] = []

    async def ask(wire: Wire) -> None:
        seen.append(await index_of(wire))

    async with served(catalog) as wire, anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(ask, wire)
    assert len(seen) == 5
    assert len(catalog.reads) == 20


@rule("I1")
async def test_others_are_answered_while_a_large_index_is_made() -> None:
    """Packing yields."""
    catalog = Watched([skill(f"s{number}") for number in range(300)])
    order: list[str] = []

    async def ask(wire: Wire) -> None:
        await index_of(wire)
        order.append("index")

    async with served(catalog) as wire, anyio.create_task_group() as group:
        started = anyio.Event()

        async def begun() -> None:
            started.set()

        catalog.meanwhile = begun
        group.start_soon(ask, wire)
        await started.wait()
        await wire.call("skills/get", uri="skill://s7/SKILL.md")
        order.append("get")
    assert order == ["get", "index"]


@rule("I1", "E2", "V7")
async def test_a_dynamic_skill_promises_nothing() -> None:
    """Neither digest nor archives."""
    skills = Skills(MemoryCatalog([skill("plain")]))

    @skills.skill("today", dynamic=True)
    def today() -> dict[str, str]:
        return {"SKILL.md": skill_md("today").decode()}

    async with served(skills) as wire:
        index = await index_of(wire)
        assert set(index["today"]) == {"name", "type", "description", "url", "frontmatter"}
        assert (await refusal(wire, "skill://today.zip")).replace("today", "doday") == await refusal(
            wire, "skill://doday.zip"
        )


@rule("I1", "G1")
async def test_an_unlisted_skill_is_in_no_index_and_can_be_had_packed() -> None:
    hidden = Skill("hidden", {"SKILL.md": skill_md("hidden")}, SkillMeta(listed=False))
    async with served(MemoryCatalog([skill("shown"), hidden])) as wire:
        assert list(await index_of(wire)) == ["shown"]
        assert unpack(await read(wire, "skill://hidden.tar.gz"), "tar.gz") == hidden.files


@rule("I2", "R2")
async def test_a_file_of_a_skill_wins_over_an_archive() -> None:
    """And then the index names no such archive."""
    outer = Skill(
        "outer", {"SKILL.md": skill_md("outer"), "inner/SKILL.md": skill_md("inner"), "inner.zip": b"mine"}
    )
    async with served(MemoryCatalog([outer])) as wire:
        index = await index_of(wire)
        assert [archive["url"] for archive in index["inner"]["archives"]] == ["skill://outer/inner.tar.gz"]
        assert await read(wire, "skill://outer/inner.zip") == b"mine"
        assert unpack(await read(wire, "skill://outer/inner.tar.gz"), "tar.gz") == {"SKILL.md": skill_md("inner")}
        assert unpack(await read(wire, "skill://outer.zip"), "zip") == outer.files


@rule("I3")
async def test_a_file_that_cannot_be_in_an_archive_costs_the_archives_only() -> None:
    """A name that others would take for a drive."""
    async with served(MemoryCatalog([skill("odd", **{"C:x": b"x"}), skill("plain")])) as wire:
        index = await index_of(wire)
        assert "archives" not in index["odd"]
        assert index["odd"]["digest"] == digest_of(skill_md("odd"))
        assert len(index["plain"]["archives"]) == 2
        await refusal(wire, "skill://odd.zip")


@rule("I2", "V1")
async def test_a_source_that_lies_costs_the_archives_of_that_skill_only() -> None:
    """Nothing is packed that does not match its entry."""

    class Lying(MemoryCatalog):
        async def read_file(self, uri: str) -> SkillFile:
            file = await super().read_file(uri)
            return file._replace(data=b"other") if uri.endswith("/swapped") else file

    async with served(Lying([skill("liar", swapped=b"x"), skill("plain")])) as wire:
        index = await index_of(wire)
        assert "archives" not in index["liar"]
        assert len(index["plain"]["archives"]) == 2
        assert "-32603" in await refusal(wire, "skill://liar.zip")


@rule("I1", "U5")
async def test_skills_of_another_scheme_have_the_index_in_both_places() -> None:
    """The well-known one, and one beside them."""
    async with served(MemoryCatalog([skill("one")], scheme="repo"), scheme="repo") as wire:
        index = await index_of(wire)
        assert index == await index_of(wire, "repo://index.json")
        assert index["one"]["url"] == "repo://one/SKILL.md"
        assert [archive["url"] for archive in index["one"]["archives"]] == ["repo://one.tar.gz", "repo://one.zip"]
        assert unpack(await read(wire, "repo://one.zip"), "zip") == {"SKILL.md": skill_md("one")}
        await refusal(wire, "skill://one.zip")


@rule("R1")
async def test_the_servers_own_files_are_read_as_before() -> None:
    """A path like an archive's, of another scheme or without a skill, is none of ours."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("own")

    @server.resource("skill://own.zip", mime_type="application/zip")
    def own() -> bytes:
        return b"own"

    Skills(MemoryCatalog([skill("one")])).attach(server)
    async with Client(server) as client:
        wire = Wire(client, "modern")
        assert await read(wire, "skill://own.zip") == b"own"
        assert list(await index_of(wire)) == ["one"]


@rule("I1", "I2")
@pytest.mark.parametrize("form", ["zip", "tar.gz"])
async def test_a_skill_that_came_packed_goes_out_as_it_came(tmp_path: Path, form: str) -> None:
    """As an archive for the older generation, with the newer one's fields beside it."""
    from archives import pack_tar_gz, pack_zip

    files = {"SKILL.md": skill_md("packed"), "references/a.md": b"a" * 1000}
    theirs = pack_zip(files) if form == "zip" else pack_tar_gz(files)
    (tmp_path / f"any-name.{form}").write_bytes(theirs)
    other = "zip" if form == "tar.gz" else "tar.gz"
    both = {form: theirs, other: pack(files, other)}
    async with served(tmp_path / f"any-name.{form}") as wire:
        item = (await index_of(wire))["packed"]
        assert (item["type"], item["url"]) == ("archive", "skill://packed.zip")
        assert item["digest"] == digest_of(both["zip"])
        assert item["frontmatter"] == {"name": "packed", "description": "Does one thing well."}
        assert {archive["url"]: archive["digest"] for archive in item["archives"]} == {
            f"skill://packed.{form}": digest_of(data) for form, data in both.items()
        }
        for kind, data in both.items():
            assert await read(wire, f"skill://packed.{kind}") == data
        assert await read(wire, "skill://packed/references/a.md") == b"a" * 1000


@rule("I1")
async def test_a_packed_skill_too_large_for_older_readers_is_offered_file_by_file(tmp_path: Path) -> None:
    """As an archive they would drop it; 20 files are their limit."""
    files = {"SKILL.md": skill_md("packed"), **{f"{number}.md": b"" for number in range(20)}}
    (tmp_path / "packed.zip").write_bytes(pack(files, "zip"))
    async with served(tmp_path / "packed.zip") as wire:
        item = (await index_of(wire))["packed"]
        assert (item["type"], item["url"]) == ("skill-md", "skill://packed/SKILL.md")
        assert item["digest"] == digest_of(files["SKILL.md"])
        assert len(item["archives"]) == 2


@rule("I2", "S1")
async def test_an_archive_repacked_on_disk_changes_the_index(tmp_path: Path) -> None:
    """The same files, other bytes around them."""
    from archives import pack_zip

    path = tmp_path / "packed.zip"
    files = {"SKILL.md": skill_md("packed"), "a": b"a" * 1000}
    path.write_bytes(pack_zip(files))
    archive = ArchiveCatalog(path)
    catalog = CombinedCatalog(
        [Mount(archive, "label", prefix="acme"), Mount(MemoryCatalog([skill("one")]), "own")]
    )
    async with served(catalog, watch=False) as wire:
        before = await index_of(wire)
        path.write_bytes(pack(files, "zip"))
        assert await archive.refresh()
        after = await index_of(wire)
        assert after["one"] == before["one"]
        assert after["packed"]["digest"] != before["packed"]["digest"]
        assert digest_of(await read(wire, "skill://acme/packed.zip")) == after["packed"]["digest"]


@rule("I1", "I2")
async def test_each_caller_has_the_index_of_what_it_may_see(tmp_path: Path, mode: str) -> None:
    """What one may not see answers like what does not exist, packed or not."""
    root = write_tree(tmp_path / "skills", small_tree())
    async with running(root, ACCESS) as url:
        seen: dict[str, list[str]] = {}
        for subject, token in TOKENS.items():
            async with caller(url, token, mode) as wire:
                seen[subject] = list(await index_of(wire))
        assert seen == {
            "all": ["refunds", "release", "changelog", "flat", "odd-names", "windows"],
            "billing": ["refunds", "flat"],
            "nobody": [],
        }
        async with caller(url, TOKENS["billing"], mode) as wire:
            assert unpack(await read(wire, "skill://flat.zip"), "zip") == {"SKILL.md": skill_md("flat")}
            for form in ("zip", "tar.gz"):
                hidden = await refusal(wire, f"skill://acme/release.{form}")
                missing = await refusal(wire, f"skill://acme/zelease.{form}")
                assert hidden.replace("release", "zelease") == missing
            write_tree(root, {"flat/SKILL.md": skill_md("flat", body="Do it well.\n")})
            with anyio.fail_after(20):
                while True:  # the watch of the folder has to see it
                    [archive] = [a for a in (await index_of(wire))["flat"]["archives"] if a["url"].endswith("zip")]
                    if digest_of(await read(wire, "skill://flat.zip")) == archive["digest"]:
                        files = unpack(await read(wire, "skill://flat.zip"), "zip")
                        if files["SKILL.md"].endswith(b"well.\n"):
                            break
                    await anyio.lowlevel.checkpoint()
