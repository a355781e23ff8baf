"""Folders that change together or not at all, and what a killed process leaves."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from rules import rule
from skillwire.errors import FormatError, StoreError
from skillwire.install.places import check_free, differences
from skillwire.install.transaction import is_unrecorded, open_swap, recover_folder
from skillwire.skill.entry import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NEW = {"SKILL.md": b"new\n", "a/b.md": b"b\n"}
DIGESTS = {path: digest_of(data) for path, data in NEW.items()}


def nothing() -> None:
    pass


def unrecorded(name: str, path: Path) -> bool:
    """What the lock says if it has nothing."""
    return False


def never(name: str) -> None:
    raise AssertionError(f"{name} is not taken back")


def recording(text: str) -> Callable[[str, Path], bool]:
    """What the lock says if it has a skill with this text."""
    return lambda name, path: (path / "SKILL.md").is_file() and (path / "SKILL.md").read_text() == text


def leave(folder: Path, **texts: str) -> Path:
    """What a process leaves that is killed while it changes ``flat``."""
    staging = folder / ".skillwire-0123456789ab-flat"
    staging.mkdir(parents=True)
    for where, text in texts.items():
        place = folder / "flat" if where == "there" else staging / where
        place.mkdir()
        (place / "SKILL.md").write_text(text)
    return staging


def put(folder: Path, files: dict[str, bytes] = NEW) -> None:
    with open_swap() as swap:
        swap.put(folder, "flat", files)
        swap.commit(nothing)


def test_a_folder_appears_whole_and_nothing_else_does(tmp_path: Path) -> None:
    put(tmp_path / "deep/skills")
    assert os.listdir(tmp_path / "deep/skills") == ["flat"]
    assert differences(tmp_path / "deep/skills", "flat", DIGESTS) == ()


def test_if_the_last_step_fails_it_is_as_if_nothing_had_been(tmp_path: Path) -> None:
    put(tmp_path / "one", {"SKILL.md": b"old\n"})

    def fail() -> None:
        assert differences(tmp_path / "one", "flat", DIGESTS) == ()
        raise StoreError("write-failed", "the lock could not be written")

    with open_swap() as swap:
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
    with open_swap() as swap:
        swap.put(tmp_path / "one", "flat", NEW)
        with pytest.raises(StoreError) as caught:
            swap.put(tmp_path / "file/skills", "flat", NEW)
    assert caught.value.reference == "write-failed"
    assert os.listdir(tmp_path) == ["file"]


def test_what_appears_while_a_change_is_prepared_is_not_overwritten(tmp_path: Path) -> None:
    with open_swap() as swap:
        swap.put(tmp_path, "flat", NEW)
        (tmp_path / "flat").mkdir()
        (tmp_path / "flat/mine.md").write_text("mine")
        with pytest.raises(StoreError):
            swap.commit(nothing)
    assert os.listdir(tmp_path) == ["flat"]
    assert os.listdir(tmp_path / "flat") == ["mine.md"]


def test_a_link_that_cannot_be_made_is_said_to_be_one(tmp_path: Path) -> None:
    with open_swap() as swap, pytest.raises(StoreError) as caught:
        swap.link(tmp_path, "flat", "")
    assert caught.value.reference == "link-failed"
    assert "--copy" in caught.value.hint
    assert os.listdir(tmp_path) == []


def test_removing_takes_the_whole_folder_or_nothing(tmp_path: Path) -> None:
    put(tmp_path)

    def fail() -> None:
        assert not (tmp_path / "flat").exists()
        raise StoreError("write-failed", "the lock could not be written")

    with open_swap() as swap:
        swap.take(tmp_path, "flat")
        with pytest.raises(StoreError):
            swap.commit(fail)
    assert differences(tmp_path, "flat", DIGESTS) == ()
    with open_swap() as swap:
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
    recover_folder(tmp_path, unrecorded, never)
    recover_folder(tmp_path / "not there", unrecorded, never)
    assert os.listdir(tmp_path) == ["flat"]
    assert (tmp_path / "flat/SKILL.md").read_text() == "mine"


@pytest.mark.parametrize(
    ("left", "recorded", "there"),
    [
        pytest.param({"old": "old", "there": "new"}, "old", "old", id="before-the-lock-was-written"),
        pytest.param({"old": "old", "there": "new"}, "new", "new", id="after-the-lock-was-written"),
        pytest.param({"old": "edited", "there": "new"}, "old", "new", id="forced-over-edits"),
        pytest.param({"old": "old", "new": "new", "there": "mine"}, "old", "mine", id="replaced-by-a-person"),
        pytest.param({"gone": "old"}, "old", "old", id="removal-not-recorded"),
        pytest.param({"gone": "old"}, "", None, id="removal-recorded"),
        pytest.param({"gone": "old", "there": "mine"}, "old", "mine", id="removed-and-replaced-by-a-person"),
        pytest.param({"new": "new"}, "new", None, id="prepared-only"),
        pytest.param({"there": "new"}, "new", "new", id="nothing-to-restore"),
    ],
)
def test_the_lock_says_what_a_killed_change_becomes(
    tmp_path: Path, left: dict[str, str], recorded: str, there: str | None
) -> None:
    leave(tmp_path, **left)
    kept: list[str] = []
    recover_folder(
        tmp_path, recording(recorded), lambda name: kept.append((tmp_path / name / "SKILL.md").read_text())
    )
    assert kept == (["new"] if left == {"old": "old", "there": "new"} and recorded == "old" else [])
    assert os.listdir(tmp_path) == ([] if there is None else ["flat"])
    assert there is None or (tmp_path / "flat/SKILL.md").read_text() == there


def test_what_was_put_but_not_recorded_stays_with_the_proof_of_whose_it_is(tmp_path: Path) -> None:
    staging = leave(tmp_path, there="new")
    assert is_unrecorded(tmp_path, "flat")
    recover_folder(tmp_path, unrecorded, never)
    assert sorted(os.listdir(tmp_path)) == [staging.name, "flat"]
    assert not is_unrecorded(tmp_path, "other")


def test_a_skill_is_one_only_when_all_else_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def note(path: Path, *mode: str) -> Any:
        written.append(path.name)
        return real(path, *mode)

    real = type(tmp_path).open
    monkeypatch.setattr(type(tmp_path), "open", note)
    put(tmp_path)
    assert written == ["b.md", "SKILL.md"]


def test_what_a_living_process_prepares_is_left_alone(tmp_path: Path) -> None:
    with open_swap() as first, open_swap() as second:
        first.put(tmp_path, "first", NEW)
        recover_folder(tmp_path, unrecorded, never)
        second.put(tmp_path, "second", NEW)
        second.commit(nothing)
        first.commit(nothing)
    assert sorted(os.listdir(tmp_path)) == ["first", "second"]


@rule("B5")
@pytest.mark.parametrize(
    "paths", [("a.md", "A.md"), ("A/x.md", "a/y.md"), ("é.md", "e\u0301.md")], ids=["case", "folder", "unicode"]
)
def test_names_that_are_one_on_some_disks_are_refused(tmp_path: Path, paths: tuple[str, str]) -> None:
    with pytest.raises(FormatError) as caught:
        put(tmp_path, {"SKILL.md": b"", **dict.fromkeys(paths, b"")})
    assert caught.value.rule == "B5"
    assert os.listdir(tmp_path) == []


@rule("B5")
def test_a_name_that_differs_by_case_only_from_one_that_is_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Flat").mkdir()
    with pytest.raises(FormatError) as caught:
        check_free(tmp_path, "flat")
    assert caught.value.rule == "B5"
    check_free(tmp_path, "Flat")
    check_free(tmp_path / "not there yet", "flat")


def test_differences_are_listed_file_by_file(tmp_path: Path) -> None:
    put(tmp_path)
    (tmp_path / "flat/SKILL.md").write_text("edited")
    (tmp_path / "flat/a/b.md").unlink()
    (tmp_path / "flat/.DS_Store").write_text("litter")
    os.symlink("/etc/passwd", tmp_path / "flat/secrets")
    found = differences(tmp_path, "flat", DIGESTS)
    assert [difference.split()[0] for difference in found] == ["SKILL.md", "a/b.md", "secrets"]


@pytest.mark.parametrize("path", [".env", "notes.md~", ".git/config", "a/.env"])
def test_what_a_person_put_there_is_no_litter(tmp_path: Path, path: str) -> None:
    """It would be lost with the folder. Of a folder its name is enough."""
    put(tmp_path)
    (tmp_path / "flat" / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "flat" / path).write_text("mine")
    added = path if path.startswith("a/") else path.split("/")[0]
    assert [each.split()[0] for each in differences(tmp_path, "flat", DIGESTS)] == [added]


def test_what_comes_back_by_itself_is_litter(tmp_path: Path) -> None:
    put(tmp_path)
    (tmp_path / "flat/a/__pycache__").mkdir()
    for path in (".DS_Store", "a/Thumbs.db", "a/__pycache__/x.cpython-311.pyc", "y.pyc"):
        (tmp_path / "flat" / path).write_text("")
    assert differences(tmp_path, "flat", DIGESTS) == ()


def test_a_link_is_looked_at_and_not_through(tmp_path: Path) -> None:
    put(tmp_path / "real")
    os.symlink("real/flat", tmp_path / "flat")
    (tmp_path / "file").write_text("")
    found = [differences(tmp_path, name, DIGESTS) for name in ("flat", "file", "nothing")]
    assert all(len(each) == 1 for each in found)
    assert len({*found}) == 3


def test_a_file_of_the_skill_that_looks_like_litter_is_looked_at(tmp_path: Path) -> None:
    files = {**NEW, "node_modules/x.js": b"x", "notes.md~": b"y"}
    put(tmp_path, files)
    digests = {path: digest_of(data) for path, data in files.items()}
    assert differences(tmp_path, "flat", digests) == ()


@rule("Z3")
@pytest.mark.parametrize("name", [".git", ".GIT", "git~1", "refunds"])
def test_a_staging_folder_of_a_cloned_project_never_becomes_a_repository(name: str, tmp_path: Path) -> None:
    old = tmp_path / f".skillwire-000000000000-{name}" / "old"
    for folder in ("objects", "refs"):
        (old / folder).mkdir(parents=True)
    (old / "HEAD").write_text("ref: refs/heads/main\n")
    (old / "config").write_text("[core]\n")
    with suppress(FormatError):
        recover_folder(tmp_path, unrecorded, never)
    assert os.listdir(tmp_path) == [f".skillwire-000000000000-{name}"]


def test_old_content_with_folders_is_moved_back(tmp_path: Path) -> None:
    old = tmp_path / ".skillwire-000000000000-flat" / "old"
    (old / "references/deep").mkdir(parents=True)
    (old / "references/deep/a.md").write_text("a\n")
    (old / "assets").mkdir()
    recover_folder(tmp_path, unrecorded, never)
    assert os.listdir(tmp_path) == ["flat"]
    assert (tmp_path / "flat/references/deep/a.md").is_file()
