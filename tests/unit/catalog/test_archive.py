"""I2, I3: a ready-made archive as a catalog of one skill."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest

from archives import pack_tar_gz, pack_zip
from rules import rule
from skillwire import ArchiveCatalog, CombinedCatalog, DirectoryCatalog, Mount, SkillMeta
from skillwire.bootstrap import read_folders
from skillwire.catalog.archive import local_catalog
from skillwire.catalog.visibility import VisibleCatalog
from skillwire.errors import FormatError, NotFoundError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.entry import digest_of
from skillwire.types import Change
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire import Catalog

pytestmark = pytest.mark.anyio

PATIENCE = 60
FILES = {"SKILL.md": skill_md("packed"), "refs/a.md": b"a", "inner/SKILL.md": skill_md("inner"), "inner/b": b"b"}
PACKED, INNER = "skill://packed/SKILL.md", "skill://packed/inner/SKILL.md"
PACK = {"zip": pack_zip, "tar.gz": pack_tar_gz, "tgz": pack_tar_gz}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "any name.zip"
    path.write_bytes(pack_zip(FILES))
    return path


@pytest.fixture(params=PACK)
def archive_of_any_form(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"any name.{request.param}"
    path.write_bytes(PACK[request.param](FILES))
    return path


def put(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def bytes_of(path: Path) -> bytes:
    return path.read_bytes()


async def listed(catalog: Catalog) -> list[str]:
    return [entry.uri async for entry in catalog.entries()]


async def problems(catalog: Catalog) -> list[tuple[str, str]]:
    return [(problem.reference, problem.file) for problem in await catalog.problems()]


@rule("I2")
async def test_an_archive_is_served_as_its_files_would_be(archive_of_any_form: Path, tmp_path: Path) -> None:
    """The skill's path is its name; a skill inside is one too."""
    write_tree(tmp_path / "folder" / "packed", FILES)
    folder, catalog = DirectoryCatalog(tmp_path / "folder"), ArchiveCatalog(archive_of_any_form)
    assert [entry async for entry in catalog.entries()] == [entry async for entry in folder.entries()]
    for uri in await listed(catalog):
        assert await catalog.get_skill(uri) == await folder.get_skill(uri)
        for file in (await catalog.get_skill(uri)).files:
            assert (await catalog.read_file(file.uri)).data == (await folder.read_file(file.uri)).data
    names = [child.name async for child in catalog.children("skill://packed")]
    assert names == [child.name async for child in folder.children("skill://packed")]
    assert await problems(catalog) == []


@rule("I2")
async def test_the_archive_itself_goes_with_its_skill_only(archive_of_any_form: Path) -> None:
    archive = archive_of_any_form
    catalog = ArchiveCatalog(archive)
    ready = await catalog.ready_archive(PACKED)
    assert ready is not None
    assert ready.data == bytes_of(archive)
    assert ready.digest == digest_of(ready.data)
    assert ready.form == ("zip" if archive.suffix == ".zip" else "tar.gz")
    assert await catalog.ready_archive(INNER) is None
    assert await catalog.ready_archive("skill://nothing/SKILL.md") is None


@rule("I2", "N1")
async def test_catalogs_around_it_pass_the_archive_on(archive: Path) -> None:
    """Under the path that is seen, to those who may see it."""
    combined = CombinedCatalog([Mount(ArchiveCatalog(archive), "label", prefix="acme")])
    around = "skill://acme/packed/SKILL.md"
    assert await combined.ready_archive(around) is not None
    assert await combined.ready_archive(PACKED) is None
    assert await VisibleCatalog(combined, ["acme"]).ready_archive(around) is not None
    assert await VisibleCatalog(combined, ["other"]).ready_archive(around) is None


@rule("I2")
async def test_a_folder_has_no_archive(tmp_path: Path) -> None:
    catalog = DirectoryCatalog(write_tree(tmp_path, {"packed/SKILL.md": skill_md("packed")}))
    assert await catalog.ready_archive(PACKED) is None


@rule("S1", "R2")
async def test_a_file_that_is_replaced_is_read_again(archive: Path) -> None:
    catalog = ArchiveCatalog(archive)
    before = await catalog.get_skill(PACKED)
    put(archive, pack_zip({**FILES, "refs/a.md": b"other"}))
    assert await catalog.get_skill(PACKED) == before
    assert (await catalog.read_file("skill://packed/refs/a.md")).data == b"a"
    assert await catalog.refresh() == Change(changed=frozenset([PACKED]))
    assert (await catalog.read_file("skill://packed/refs/a.md")).data == b"other"
    put(archive, pack_zip({"SKILL.md": skill_md("renamed")}))
    change = await catalog.refresh()
    assert change == Change(frozenset(["skill://renamed/SKILL.md"]), removed=frozenset([PACKED, INNER]))
    assert await catalog.ready_archive(PACKED) is None
    assert not await catalog.refresh()


@rule("I2")
async def test_the_same_files_packed_differently_are_a_change_too(tmp_path: Path) -> None:
    """Whoever promised the archive's digest has to hear of it."""
    path = tmp_path / "a.zip"
    path.write_bytes(pack_zip(FILES))
    catalog = ArchiveCatalog(path)
    catalog.load()
    path.write_bytes(pack_zip(dict(reversed(FILES.items()))))
    assert await catalog.refresh() == Change(changed=frozenset([PACKED]))


@rule("I3")
async def test_a_file_that_goes_bad_is_not_served_until_it_is_fixed(archive: Path) -> None:
    """Whole or not at all, and the problem names the file."""
    good = bytes_of(archive)
    catalog = ArchiveCatalog(archive)
    catalog.load()
    put(archive, good[:-30])
    assert (await catalog.refresh()).removed == {PACKED, INNER}
    assert await problems(catalog) == [("archive-refused", archive.name)]
    assert await listed(catalog) == []
    with pytest.raises(NotFoundError):
        await catalog.read_file(PACKED)
    assert await catalog.ready_archive(PACKED) is None
    os.unlink(archive)
    await catalog.refresh()
    assert await problems(catalog) == [("unreadable", archive.name)]
    put(archive, good)
    assert (await catalog.refresh()).added == {PACKED, INNER}
    assert await problems(catalog) == []


@rule("S1")
async def test_a_watch_sees_that_a_file_is_replaced(archive: Path) -> None:
    """Deployments rename."""
    catalog = ArchiveCatalog(archive)
    with anyio.fail_after(PATIENCE), catalog.changes() as changes:
        async with anyio.create_task_group() as group:
            group.start_soon(catalog.follow)
            assert (await anext(changes)).added == {PACKED, INNER}
            fresh = archive.with_name("fresh")
            fresh.write_bytes(pack_zip({**FILES, "refs/a.md": b"other"}))
            fresh.rename(archive)
            assert (await anext(changes)).changed == {PACKED}
            group.cancel_scope.cancel()


@rule("F1", "F2", "F3", "F7")
@pytest.mark.parametrize(
    ("skill_md", "reference", "file"),
    [
        pytest.param(b"no frontmatter", "frontmatter-missing", "any/SKILL.md", id="no-frontmatter"),
        pytest.param(b"---\nname: 7\ndescription: d\n---\n", "name-missing", "any/SKILL.md", id="name-not-text"),
        pytest.param(
            b"---\nname: Not Good\ndescription: d\n---\n", "name-invalid", "Not Good/SKILL.md", id="name-invalid"
        ),
        pytest.param(b"---\nname: ../x\ndescription: d\n---\n", "name-invalid", "any/SKILL.md", id="name-unsafe"),
    ],
)
async def test_a_packed_skill_that_breaks_a_rule_is_reported_like_any(
    tmp_path: Path, skill_md: bytes, reference: str, file: str
) -> None:
    (tmp_path / "any.zip").write_bytes(pack_zip({"SKILL.md": skill_md}))
    catalog = ArchiveCatalog(tmp_path / "any.zip")
    assert await listed(catalog) == []
    assert (reference, file) in await problems(catalog)


@rule("B1", "I3")
async def test_an_archive_larger_than_we_read_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(pack_zip(FILES))
    catalog = ArchiveCatalog(tmp_path / "a.zip", limits=replace(DEFAULT_LIMITS, max_archive_bytes=50))
    assert await listed(catalog) == []
    assert await problems(catalog) == [("archive-too-large", "a.zip")]


@rule("I2")
async def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    """And a missing one when it is asked for."""
    with pytest.raises(FormatError):
        ArchiveCatalog(tmp_path / "a.tar")
    with pytest.raises(NotFoundError) as caught:
        ArchiveCatalog(tmp_path / "a.zip").load()
    assert caught.value.reference == "archive-missing"
    assert str(tmp_path) not in str(caught.value)


async def test_a_path_is_a_folder_or_an_archive(tmp_path: Path, archive: Path) -> None:
    """A folder may be called like an archive."""
    assert isinstance(local_catalog(archive), ArchiveCatalog)
    (tmp_path / "folder.zip").mkdir()
    assert isinstance(local_catalog(tmp_path / "folder.zip"), DirectoryCatalog)
    assert isinstance(local_catalog(tmp_path), DirectoryCatalog)


@rule("I2", "N1")
async def test_folders_and_archives_are_served_together(tmp_path: Path, archive: Path) -> None:
    """A prefix and globs apply to both; one that is refused costs itself only."""
    root = write_tree(tmp_path / "skills", {"flat/SKILL.md": skill_md("flat")})
    (tmp_path / "bad.zip").write_bytes(b"x")
    paths = [str(root), str(archive), str(tmp_path / "bad.zip")]
    quiet = lambda: nullcontext(lambda _: None)  # noqa: E731
    plain = read_folders(paths, quiet)
    assert await listed(plain) == ["skill://flat/SKILL.md", INNER.replace("/inner", ""), INNER]
    assert await problems(plain) == [("archive-refused", "bad.zip")]
    prefixed = read_folders(paths, quiet, prefix="acme", unlisted=["acme/packed/inner"])
    assert await listed(prefixed) == ["skill://acme/flat/SKILL.md", "skill://acme/packed/SKILL.md"]
    assert (await prefixed.get_skill("skill://acme/packed/inner/SKILL.md")).name == "inner"


@rule("R3")
async def test_metadata_applies_to_packed_skills(archive: Path) -> None:
    catalog = ArchiveCatalog(archive, describe=lambda path, _: SkillMeta(listed=path != "packed"))
    assert await listed(catalog) == [INNER]
    assert not (await catalog.get_skill(PACKED)).listed
