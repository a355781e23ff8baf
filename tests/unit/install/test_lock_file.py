"""The lock on disk: one at a time, replaced whole, never through a link."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from skillwire.errors import NotFoundError, StoreError
from skillwire.install.lock import Lock
from skillwire.install.lock_file import held_lock, read_lock, require_lock
from skillwire.install.transaction import replace_file

if TYPE_CHECKING:
    from pathlib import Path


def test_a_lock_is_made_when_it_is_first_written(tmp_path: Path) -> None:
    path = tmp_path / "config/skillwire/skills.lock.json"
    assert read_lock(path) is None
    with pytest.raises(NotFoundError):
        require_lock(path)
    with held_lock(path) as lock:
        lock.write(Lock())
    assert path.read_text() == '{\n  "skills": {},\n  "version": 1\n}\n'
    assert os.listdir(path.parent) == [path.name]


def test_one_that_is_held_is_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "skills.lock.json"
    with held_lock(path), pytest.raises(StoreError) as caught, held_lock(path, patience=0.05):
        pass
    assert caught.value.reference == "lock-busy"
    with held_lock(path):
        pass


def test_a_link_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "theirs.json").write_text("{}")
    os.symlink("theirs.json", tmp_path / "skills.lock.json")
    with pytest.raises(StoreError) as caught, held_lock(tmp_path / "skills.lock.json"):
        pass
    assert caught.value.reference == "lock-linked"


def test_a_folder_in_its_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "skills.lock.json").mkdir()
    with pytest.raises(StoreError) as caught:
        read_lock(tmp_path / "skills.lock.json")
    assert caught.value.reference == "lock-unreadable"


def test_a_file_keeps_its_mode_and_a_failure_leaves_it_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o604)
    replace_file(path, b"new", mode=0o600)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o604)
    (tmp_path / "folder/inner").mkdir(parents=True)
    with pytest.raises(StoreError):
        replace_file(tmp_path / "folder", b"new")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
