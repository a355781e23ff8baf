"""Skills as a static site: its layout, equal bytes, what it refuses, and which folders it replaces."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire import DirectoryCatalog, MemoryCatalog, Skill
from skillwire.catalog.contract import SkillFile
from skillwire.catalog.static_site import MOST_IN_ROOT, write_site
from skillwire.errors import FormatError, UpstreamError
from skillwire.skill import digest_of
from skillwire.skill.archive import unpack_tree
from trees import files_of, skill_md, small_tree
from trees import write_tree as write_skills

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def catalog_of(*names: str) -> MemoryCatalog:
    return MemoryCatalog([Skill(name, {"SKILL.md": skill_md(name.rpartition("/")[2])}) for name in names])


@rule("V1")
async def test_each_skill_has_an_index_and_an_archive_of_its_files(tmp_path: Path) -> None:
    tree = small_tree()
    root = write_skills(tmp_path / "skills", tree)
    (root / "flat/SKILL.md").chmod(0o755)
    site = await write_site(DirectoryCatalog(root), tmp_path / "site")
    found = bytes_below(tmp_path / "site")
    for path, digest in site.archives.items():
        index = json.loads(found[f"{path}/.well-known/agent-skills/index.json"])
        assert index == json.loads(found[f"{path}/.well-known/skills/index.json"])
        [entry] = index["skills"]
        assert (entry["name"], entry["digest"]) == (path.rpartition("/")[2], digest)
        name = entry["url"].removeprefix("../agent-skills/")
        data = found[f"{path}/.well-known/agent-skills/{name}"]
        assert digest_of(data) == digest
        packed = unpack_tree(data, "zip")
        assert packed.files == files_of(tree, path)
        assert packed.executables == ({"SKILL.md"} if path == "flat" else set())
    everything = json.loads(found[".well-known/agent-skills/index.json"])["skills"]
    assert [entry["digest"] for entry in everything] == [site.archives[path] for path in sorted(site.archives)]
    for entry in everything:
        assert entry["url"].removeprefix("../../") in found


async def test_the_same_skills_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        root = write_skills(tmp_path / name, small_tree())
        await write_site(DirectoryCatalog(root), tmp_path / f"site-{name}")
    assert bytes_below(tmp_path / "site-one") == bytes_below(tmp_path / "site-two")


async def test_many_skills_have_no_index_at_the_root(tmp_path: Path) -> None:
    names = [f"skill-{number}" for number in range(MOST_IN_ROOT + 1)]
    await write_site(catalog_of(*names), tmp_path / "site")
    assert not (tmp_path / "site/.well-known").exists()
    await write_site(catalog_of(*names[1:]), tmp_path / "site")
    assert (tmp_path / "site/.well-known/skills/index.json").exists()
    assert not (tmp_path / "site" / names[0]).exists()


async def test_only_what_an_export_has_written_is_replaced(tmp_path: Path) -> None:
    site = tmp_path / "site"
    await write_site(catalog_of("flat"), site)
    await write_site(catalog_of("other"), site)
    before = bytes_below(site)
    for foreign in (site / "CNAME", site / "other/notes.txt"):
        foreign.write_text("mine")
        with pytest.raises(FormatError) as caught:
            await write_site(catalog_of("flat"), site)
        assert caught.value.reference == "export-folder-foreign"
        foreign.unlink()
    assert bytes_below(site) == before
    (site / ".skillwire-site.json").write_text("[")
    with pytest.raises(FormatError):
        await write_site(catalog_of("flat"), site)
    assert sorted(os.listdir(tmp_path)) == ["site"]


@rule("Z2")
@pytest.mark.parametrize("place", ["node_modules/site", ".git/site", "file", "."])
async def test_folders_that_tools_run_and_the_current_one_are_refused(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError):
        await write_site(catalog_of("flat"), tmp_path / place)
    assert os.listdir(tmp_path) == ["file"]


@rule("Z3")
async def test_no_site_is_or_contains_a_repository(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        await write_site(catalog_of("HEAD/x", "objects/x", "refs/x"), tmp_path / "site")
    assert caught.value.rule == "Z3"
    inside = Skill("flat", {"SKILL.md": skill_md("flat"), "a/HEAD": b"", "a/objects/x": b"", "a/refs/x": b""})
    site = await write_site(
        MemoryCatalog([inside, *[Skill("other", {"SKILL.md": skill_md("other")})]]), tmp_path / "b"
    )
    assert list(site.archives) == ["other"]
    assert {error.rule for error in site.refused.values()} == {"Z3"}


class Failing(MemoryCatalog):
    """Fails, or lies, for the second skill."""

    error: Exception | None = None

    async def read_file(self, uri: str) -> SkillFile:
        if "second" in uri:
            if self.error is not None:
                raise self.error
            return SkillFile(uri, b"other bytes")
        return await super().read_file(uri)


@rule("V1")
async def test_a_skill_that_is_not_what_it_claims_is_refused(tmp_path: Path) -> None:
    failing = Failing([Skill(name, {"SKILL.md": skill_md(name)}) for name in ("first", "second")])
    site = await write_site(failing, tmp_path / "site")
    assert list(site.archives) == ["first"]
    assert [error.rule for error in site.refused.values()] == ["V1"]


async def test_a_place_that_does_not_answer_changes_nothing(tmp_path: Path) -> None:
    failing = Failing([Skill(name, {"SKILL.md": skill_md(name)}) for name in ("first", "second")])
    site = tmp_path / "site"
    await write_site(catalog_of("flat"), site)
    before = bytes_below(site)
    failing.error = UpstreamError("connection-lost", "gone", "try again")
    with pytest.raises(UpstreamError):
        await write_site(failing, site)
    assert bytes_below(site) == before
    assert os.listdir(tmp_path) == ["site"]
