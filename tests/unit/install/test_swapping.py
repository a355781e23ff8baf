"""Folders that change together or not at all, and what a killed process leaves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from skillwire.errors import FormatError, StoreError
from skillwire.install.folder import check_free, check_paths, compare, look
from skillwire.install.swapping import swapping, tidy
from skillwire.skill.digest import digest_of

if TYPE_CHECKING:
    from pathlib import Path

NEW = {"SKILL.md": b"new\n", "a/b.md": b"b\n"}
DIGESTS = {path: digest_of(data) for path, data in NEW.items()}


def nothing() -> None:
    pass


def put(folder: Path, files: dict[str, bytes] = NEW) -> None:
    with swapping() as swap:
        swap.put(folder, "flat", files)
        swap.commit(nothing)


def test_a_folder_appears_whole_and_nothing_else_does(tmp_path: Path) -> None:
    put(tmp_path / "deep/skills")
    assert os.listdir(tmp_path / "deep/skills") == ["flat"]
    assert compare(look(tmp_path / "deep/skills", "flat"), DIGESTS) == ()


def test_if_the_last_step_fails_it_is_as_if_nothing_had_been(tmp_path: Path) -> None:
    put(tmp_path / "one", {"SKILL.md": b"old\n"})

    def fail() -> None:
        assert compare(look(tmp_path / "one", "flat"), DIGESTS) == ()
        raise StoreError("write-failed", "the lock could not be written")

    with swapping() as swap:
        swap.put(tmp_path / "one", "flat", NEW)
        swap.put(tmp_path / "two/skills", "flat", NEW)
        swap.link(tmp_path / "three", "flat", "../one/flat")
        with pytest.raises(StoreError):
            swap.commit(fail)
    assert (tmp_path / "one/flat/SKILL.md").read_bytes() == b"old\n"
    assert os.listdir(tmp_path / "one") == ["flat"]
    assert os.listdir(tmp_path) == ["one"]


def test_a_folder_that_cannot_be_written_leaves_the_others_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with swapping() as swap:
        swap.put(tmp_path / "one", "flat", NEW)
        with pytest.raises(StoreError) as caught:
            swap.put(tmp_path / "file/skills", "flat", NEW)
    assert caught.value.reference == "write-failed"
    assert os.listdir(tmp_path) == ["file"]


def test_what_appears_while_a_change_is_prepared_is_not_overwritten(tmp_path: Path) -> None:
    with swapping() as swap:
        swap.put(tmp_path, "flat", NEW)
        (tmp_path / "flat").mkdir()
        (tmp_path / "flat/mine.md").write_text("mine")
        with pytest.raises(StoreError):
            swap.commit(nothing)
    assert os.listdir(tmp_path) == ["flat"]
    assert os.listdir(tmp_path / "flat") == ["mine.md"]


def test_a_link_that_cannot_be_made_is_said_to_be_one(tmp_path: Path) -> None:
    with swapping() as swap, pytest.raises(StoreError) as caught:
        swap.link(tmp_path, "flat", "")
    assert caught.value.reference == "link-failed"
    assert "--copy" in caught.value.hint
    assert os.listdir(tmp_path) == []


def test_removing_takes_the_whole_folder_or_nothing(tmp_path: Path) -> None:
    put(tmp_path)

    def fail() -> None:
        assert not (tmp_path / "flat").exists()
        raise StoreError("write-failed", "the lock could not be written")

    with swapping() as swap:
        swap.take(tmp_path, "flat")
        with pytest.raises(StoreError):
            swap.commit(fail)
    assert compare(look(tmp_path, "flat"), DIGESTS) == ()
    with swapping() as swap:
        swap.take(tmp_path, "flat")
        swap.commit(nothing)
    assert os.listdir(tmp_path) == []


def test_what_a_killed_process_had_moved_away_is_put_back(tmp_path: Path) -> None:
    left = tmp_path / ".skillwire-0123456789ab-flat"
    (left / "old").mkdir(parents=True)
    (left / "old/SKILL.md").write_text("mine")
    (left / "new").mkdir()
    gone = tmp_path / ".skillwire-0123456789ac-other"
    (gone / "gone").mkdir(parents=True)
    tidy(tmp_path)
    tidy(tmp_path / "not there")
    assert os.listdir(tmp_path) == ["flat"]
    assert (tmp_path / "flat/SKILL.md").read_text() == "mine"


def test_what_a_living_process_prepares_is_left_alone(tmp_path: Path) -> None:
    with swapping() as first, swapping() as second:
        first.put(tmp_path, "first", NEW)
        tidy(tmp_path)
        second.put(tmp_path, "second", NEW)
        second.commit(nothing)
        first.commit(nothing)
    assert sorted(os.listdir(tmp_path)) == ["first", "second"]


@pytest.mark.parametrize("paths", [("a.md", "A.md"), ("A/x.md", "a/y.md"), ("é.md", "e\u0301.md")])
def test_names_that_are_one_on_some_disks_are_refused(tmp_path: Path, paths: tuple[str, str]) -> None:
    """B5"""
    with pytest.raises(FormatError) as caught:
        put(tmp_path, {"SKILL.md": b"", **dict.fromkeys(paths, b"")})
    assert caught.value.rule == "B5"
    assert os.listdir(tmp_path) == []


def test_a_name_that_differs_by_case_only_from_one_that_is_there_is_refused(tmp_path: Path) -> None:
    """B5"""
    (tmp_path / "Flat").mkdir()
    with pytest.raises(FormatError) as caught:
        check_free(tmp_path, "flat")
    assert caught.value.rule == "B5"
    check_free(tmp_path, "Flat")
    check_free(tmp_path / "not there yet", "flat")


@pytest.mark.parametrize("path", [".git/config", "a/.git/hooks/post-checkout", ".GIT/config", ".hg/hgrc", ".git"])
def test_a_skill_does_not_bring_a_repository_that_tools_would_obey(path: str) -> None:
    with pytest.raises(FormatError):
        check_paths(["SKILL.md", path])
    check_paths(["SKILL.md", ".gitignore", "docs/git.md"])


def test_what_differs_is_said_file_by_file(tmp_path: Path) -> None:
    put(tmp_path)
    (tmp_path / "flat/SKILL.md").write_text("edited")
    (tmp_path / "flat/a/b.md").unlink()
    (tmp_path / "flat/.DS_Store").write_text("litter")
    os.symlink("/etc/passwd", tmp_path / "flat/secrets")
    assert compare(look(tmp_path, "flat", DIGESTS), DIGESTS) == (
        "SKILL.md was changed",
        "a/b.md is missing",
        "secrets was added",
    )


def test_a_link_is_looked_at_and_not_through(tmp_path: Path) -> None:
    put(tmp_path / "real")
    os.symlink("real/flat", tmp_path / "flat")
    assert look(tmp_path, "flat").kind == "link"
    (tmp_path / "file").write_text("")
    assert compare(look(tmp_path, "file"), DIGESTS) == ("it is not a folder",)
    assert compare(look(tmp_path, "nothing"), DIGESTS) == ("it is not there",)


def test_a_file_of_the_skill_that_looks_like_litter_is_looked_at(tmp_path: Path) -> None:
    files = {**NEW, "node_modules/x.js": b"x", "notes.md~": b"y"}
    put(tmp_path, files)
    digests = {path: digest_of(data) for path, data in files.items()}
    assert compare(look(tmp_path, "flat", digests), digests) == ()
