"""A folder as a catalog: what it finds, what it refuses, and how it keeps up with the disk."""

from __future__ import annotations

import os
import shutil
import threading
from typing import TYPE_CHECKING

import anyio
import pytest

from rules import rule
from skillwire import DirectoryCatalog
from skillwire.errors import NotFoundError
from skillwire.skill import digest_of
from trees import skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire import SkillEntry

pytestmark = pytest.mark.anyio

PATIENCE = 60


async def paths_in(catalog: DirectoryCatalog) -> list[str]:
    return [entry.path async for entry in catalog.entries()]


def current(catalog: DirectoryCatalog, path: str) -> SkillEntry:
    record = catalog.snapshot().record(path)
    assert record is not None
    return record.entry


@rule("F1", "L2", "E4")
async def test_skills_are_found_at_any_depth_and_nested(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/b/c/d/deep/SKILL.md": skill_md("deep"), "a/b/c/d/deep/in/SKILL.md": skill_md("in")})
    catalog = DirectoryCatalog(tmp_path)
    assert await paths_in(catalog) == ["a/b/c/d/deep", "a/b/c/d/deep/in"]
    assert [file.uri for file in current(catalog, "a/b/c/d/deep").files] == [
        "skill://a/b/c/d/deep/SKILL.md",
        "skill://a/b/c/d/deep/in/SKILL.md",
    ]


@rule("U3")
async def test_a_folder_that_is_itself_a_skill_is_served_under_its_name(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "solo", {"SKILL.md": skill_md("solo"), "refs/a.md": b"a"})
    catalog = DirectoryCatalog(root)
    assert await paths_in(catalog) == ["solo"]
    assert (await catalog.read_file("skill://solo/refs/a.md")).data == b"a"
    (root / "refs/a.md").write_bytes(b"changed")
    assert (await catalog.read_file("skill://solo/refs/a.md")).data == b"changed"


@rule("D1")
async def test_an_empty_directory_is_an_empty_page(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/SKILL.md": skill_md("a")})
    (tmp_path / "a/empty").mkdir()
    assert list((await DirectoryCatalog(tmp_path).read_directory("skill://a/empty")).items) == []


async def test_the_error_for_a_missing_folder_does_not_contain_its_path(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        DirectoryCatalog(tmp_path / "gone").load()
    assert caught.value.reference == "folder-unknown"
    assert str(tmp_path) not in str(caught.value)


async def test_files_to_ignore_are_not_served_and_are_reported(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "a/SKILL.md": skill_md("a"),
            "a/.git/config": b"x",
            "a/__pycache__/m.pyc": b"x",
            "a/.DS_Store": b"x",
            "a/notes.md~": b"x",
            "a/.env": b"SECRET=1",
            "a/.gitignore": b"kept",
            ".git/SKILL.md": skill_md("git"),
        },
    )
    catalog = DirectoryCatalog(tmp_path)
    assert await paths_in(catalog) == ["a"]
    assert [file.uri for file in current(catalog, "a").files] == ["skill://a/.gitignore", "skill://a/SKILL.md"]
    ignored = ["a/.DS_Store", "a/.env", "a/.git", "a/__pycache__", "a/notes.md~"]
    assert await catalog.ignored() == [".git", *ignored]


@rule("E4", "U6")
async def test_links_are_never_followed(tmp_path: Path) -> None:
    """Out of the tree is an error, inside it a warning; the rest of the skill is served."""
    outside = write_tree(tmp_path / "outside", {"secret.txt": b"secret", "evil/SKILL.md": skill_md("evil")})
    root = write_tree(tmp_path / "skills", {"a/SKILL.md": skill_md("a"), "a/real.md": b"real"})
    (root / "a/out.txt").symlink_to(outside / "secret.txt")
    (root / "a/up.txt").symlink_to("../../outside/secret.txt")
    (root / "a/in.md").symlink_to("real.md")
    (root / "a/folder").symlink_to(outside)
    (root / "evil").symlink_to(outside / "evil")
    catalog = DirectoryCatalog(root)
    assert await paths_in(catalog) == ["a"]
    assert [file.uri for file in current(catalog, "a").files] == ["skill://a/SKILL.md", "skill://a/real.md"]
    found = {problem.file: problem.reference for problem in await catalog.problems()}
    assert found == {
        "a/folder": "link-escape",
        "a/in.md": "link-skipped",
        "a/out.txt": "link-escape",
        "a/up.txt": "link-escape",
    }
    for name in ("out.txt", "in.md", "folder/secret.txt"):
        with pytest.raises(NotFoundError):
            await catalog.read_file(f"skill://a/{name}")


@rule("R2", "U6")
@pytest.mark.parametrize("swapped", ["a/refs", "a", "a/refs/one.md"], ids=["folder", "skill", "file"])
async def test_a_folder_swapped_for_a_link_after_the_scan_leads_nowhere(tmp_path: Path, swapped: str) -> None:
    """Between check and read nothing is trusted by name, even if the bytes would match."""
    tree = {"a/SKILL.md": skill_md("a"), "a/refs/one.md": b"one"}
    root = write_tree(tmp_path / "skills", tree)
    outside = write_tree(tmp_path / "outside", tree)
    catalog = DirectoryCatalog(root)
    catalog.load()
    (root / swapped).rename(tmp_path / "aside")
    (root / swapped).symlink_to(outside / swapped)
    with pytest.raises(NotFoundError):
        await catalog.read_file("skill://a/refs/one.md")


@rule("R2")
async def test_a_changed_file_is_never_served_against_an_old_entry(tmp_path: Path) -> None:
    """Without any watching."""
    write_tree(tmp_path, small_tree())
    catalog = DirectoryCatalog(tmp_path)
    before = await catalog.get_skill("skill://acme/release/SKILL.md")
    place = tmp_path / "acme/release/changelog/templates/entry.md"
    place.write_bytes(b"-  ")  # same size, another content
    uri = "skill://acme/release/changelog/templates/entry.md"
    with catalog.changes() as changes, anyio.fail_after(PATIENCE):
        assert (await catalog.read_file(uri)).data == b"-  "
        assert (await anext(changes)).changed == {
            "skill://acme/release/SKILL.md",
            "skill://acme/release/changelog/SKILL.md",
        }
    after = await catalog.get_skill("skill://acme/release/SKILL.md")
    assert after != before
    assert (uri, digest_of(b"-  "), 3) in [file[:3] for file in after.files]


@rule("R2")
async def test_a_deleted_file_is_not_found_and_leaves_the_entry(tmp_path: Path) -> None:
    write_tree(tmp_path, small_tree())
    catalog = DirectoryCatalog(tmp_path)
    catalog.load()
    (tmp_path / "acme/release/notes.md").unlink()
    with pytest.raises(NotFoundError):
        await catalog.read_file("skill://acme/release/notes.md")
    uris = [file.uri for file in current(catalog, "acme/release").files]
    assert "skill://acme/release/notes.md" not in uris


async def test_a_deleted_skill_is_gone_and_its_neighbours_stay(tmp_path: Path) -> None:
    write_tree(tmp_path, small_tree())
    catalog = DirectoryCatalog(tmp_path)
    catalog.load()
    shutil.rmtree(tmp_path / "flat")
    with pytest.raises(NotFoundError):
        await catalog.read_file("skill://flat/SKILL.md")
    assert "flat" not in await paths_in(catalog)
    assert "windows" in await paths_in(catalog)


@rule("R2")
async def test_reads_agree_with_the_entry_while_files_change(tmp_path: Path) -> None:
    """A writer rewrites one file, in place and by rename, as fast as it can."""
    write_tree(tmp_path, {"a/SKILL.md": skill_md("a"), "a/data.txt": b"0" * 4000})
    catalog = DirectoryCatalog(tmp_path)
    catalog.load()
    stop = threading.Event()

    def write() -> None:
        count = 0
        while not stop.is_set():
            count += 1
            place = tmp_path / "a/data.txt"
            if count % 2:
                place.write_bytes(str(count % 10).encode() * (3000 + count % 2000))
            else:
                (tmp_path / "other").write_bytes(b"n" * (count % 5000))
                (tmp_path / "other").replace(place)

    writer = threading.Thread(target=write)
    writer.start()
    agreed = 0
    try:
        with anyio.fail_after(PATIENCE):
            while agreed < 100:
                try:
                    file = await catalog.read_file("skill://a/data.txt")
                except Exception as error:
                    assert getattr(error, "reference", "") == "file-changing"  # noqa: PT017
                    continue
                claimed = {item.uri: item for item in current(catalog, "a").files}[file.uri]
                assert (claimed.digest, claimed.size) == (digest_of(file.data), len(file.data))
                agreed += 1
    finally:
        stop.set()
        writer.join()


@rule("S1")
async def test_a_refresh_reads_only_what_is_named(tmp_path: Path) -> None:
    """Work in proportion to what changed. What was not named is still as it was."""
    write_tree(tmp_path, {"a/SKILL.md": skill_md("a"), "b/SKILL.md": skill_md("b")})
    catalog = DirectoryCatalog(tmp_path)
    catalog.load()
    (tmp_path / "a/SKILL.md").write_bytes(skill_md("a", "New."))
    (tmp_path / "b/SKILL.md").write_bytes(skill_md("b", "New."))
    change = await catalog.refresh(["a/SKILL.md"])
    assert change.changed == {"skill://a/SKILL.md"}
    assert current(catalog, "b").description == "Does one thing well."
    assert (await catalog.refresh()).changed == {"skill://b/SKILL.md"}


@rule("R2")
@pytest.mark.parametrize("keep_times", [False, True], ids=["new-times", "old-times"])
async def test_an_unchanged_stamp_is_trusted_only_when_it_proves_something(
    tmp_path: Path, keep_times: bool
) -> None:
    """A rewrite that keeps size and times is still seen by a read."""
    place = write_tree(tmp_path, {"a/SKILL.md": skill_md("a"), "a/x.txt": b"one"}) / "a/x.txt"
    os.utime(place, (1_000_000, 1_000_000))
    catalog = DirectoryCatalog(tmp_path)
    catalog.load()
    place.write_bytes(b"two")
    if keep_times:
        os.utime(place, (1_000_000, 1_000_000))
    assert (await catalog.read_file("skill://a/x.txt")).data == b"two"
    assert current(catalog, "a").files[1].digest == digest_of(b"two")


async def test_a_plain_file_outside_every_skill_changes_nothing(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/SKILL.md": skill_md("a"), "README.md": b"x"})
    catalog = DirectoryCatalog(tmp_path)
    catalog.load()
    before = catalog.snapshot().keys
    assert not await catalog.refresh(["README.md"])
    assert catalog.snapshot().keys is before


@rule("F1", "E4")
async def test_a_folder_becomes_a_skill_and_stops_being_one(tmp_path: Path) -> None:
    """The enclosing entry comes and goes, the nested skill stays."""
    write_tree(tmp_path, {"outer/inner/SKILL.md": skill_md("inner"), "outer/x.txt": b"x"})
    catalog = DirectoryCatalog(tmp_path)
    assert await paths_in(catalog) == ["outer/inner"]
    (tmp_path / "outer/SKILL.md").write_bytes(skill_md("outer"))
    assert (await catalog.refresh(["outer/SKILL.md"])).added == {"skill://outer/SKILL.md"}
    assert len(current(catalog, "outer").files) == 3
    (tmp_path / "outer/SKILL.md").unlink()
    assert (await catalog.refresh(["outer/SKILL.md"])).removed == {"skill://outer/SKILL.md"}
    assert await paths_in(catalog) == ["outer/inner"]


async def test_the_root_becomes_a_skill(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "solo", {"inner/SKILL.md": skill_md("inner")})
    catalog = DirectoryCatalog(root)
    assert await paths_in(catalog) == ["inner"]
    (root / "SKILL.md").write_bytes(skill_md("solo"))
    await catalog.refresh(["SKILL.md"])
    assert await paths_in(catalog) == ["solo", "solo/inner"]
    (root / "SKILL.md").unlink()
    await catalog.refresh(["SKILL.md"])
    assert await paths_in(catalog) == ["inner"]


@rule("F7", "S1")
async def test_a_skill_is_fixed_while_the_folder_is_served(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/SKILL.md": b"no frontmatter", "b/SKILL.md": skill_md("b")})
    catalog = DirectoryCatalog(tmp_path)
    assert await paths_in(catalog) == ["b"]
    assert [problem.reference for problem in await catalog.problems()] == ["frontmatter-missing"]
    (tmp_path / "a/SKILL.md").write_bytes(skill_md("a"))
    assert (await catalog.refresh(["a/SKILL.md"])).added == {"skill://a/SKILL.md"}
    assert list(await catalog.problems()) == []


@rule("B5")
async def test_a_collision_that_comes_and_goes_moves_both_sides(tmp_path: Path) -> None:
    write_tree(tmp_path, {"Team/one/SKILL.md": skill_md("one")})
    catalog = DirectoryCatalog(tmp_path)
    assert await paths_in(catalog) == ["Team/one"]
    write_tree(tmp_path, {"team/one/SKILL.md": skill_md("one")})
    assert (await catalog.refresh(["team"])).removed == {"skill://Team/one/SKILL.md"}
    assert await paths_in(catalog) == []
    assert {problem.reference for problem in await catalog.problems()} == {"path-collision"}
    shutil.rmtree(tmp_path / "team")
    assert (await catalog.refresh(["team"])).added == {"skill://Team/one/SKILL.md"}


@rule("B5", "S1")
async def test_a_folder_renamed_in_case_only_is_no_collision_with_itself(tmp_path: Path) -> None:
    """One leaves and the other comes in one batch of events."""
    write_tree(tmp_path, {"Team/one/SKILL.md": skill_md("one")})
    catalog = DirectoryCatalog(tmp_path)
    catalog.load()
    (tmp_path / "Team").rename(tmp_path / "team")
    change = await catalog.refresh(["Team", "team"])
    assert (change.removed, change.added) == ({"skill://Team/one/SKILL.md"}, {"skill://team/one/SKILL.md"})
    assert await paths_in(catalog) == ["team/one"]


@rule("U7", "S1", "B1")
@pytest.mark.parametrize(
    "folder", ["ba\\d", ".git", "/".join(["d"] * 70)], ids=["bad-name", "ignored", "too-deep"]
)
async def test_a_refresh_finds_nothing_that_a_whole_scan_would_not(tmp_path: Path, folder: str) -> None:
    """Bad names, ignored names and depth are refused on the way down, too."""
    write_tree(tmp_path, {"a/SKILL.md": skill_md("a")})
    catalog = DirectoryCatalog(tmp_path)
    catalog.load()
    write_tree(tmp_path, {f"{folder}/refunds/SKILL.md": skill_md("refunds")})
    for path in (f"{folder}/refunds/SKILL.md", f"{folder}/refunds", folder):
        assert not await catalog.refresh([path])
    assert await paths_in(catalog) == ["a"]


@rule("S1")
async def test_changes_on_disk_are_seen_by_watching(tmp_path: Path) -> None:
    """With the operating system's events."""
    write_tree(tmp_path, {"a/SKILL.md": skill_md("a")})
    catalog = DirectoryCatalog(tmp_path)
    catalog.load()
    with anyio.fail_after(PATIENCE), catalog.changes() as changes:
        async with anyio.create_task_group() as group:
            group.start_soon(catalog.follow)
            write_tree(tmp_path, {"b/SKILL.md": skill_md("b")})  # perhaps before the watch stands
            assert "skill://b/SKILL.md" in (await anext(changes)).added
            (tmp_path / "a/SKILL.md").write_bytes(skill_md("a", "New."))
            assert "skill://a/SKILL.md" in (await anext(changes)).changed
            shutil.rmtree(tmp_path / "b")
            assert "skill://b/SKILL.md" in (await anext(changes)).removed
            group.cancel_scope.cancel()


async def test_many_readers_load_the_folder_once(tmp_path: Path) -> None:
    write_tree(tmp_path, small_tree())
    catalog = DirectoryCatalog(tmp_path)
    results: list[int] = []

    async def read() -> None:
        results.append(len((await catalog.list_skills()).items))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(read)
    assert results == [6] * 20
