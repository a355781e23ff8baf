"""Files that change, grow or are none, while they are looked at."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire.catalog import safe_open
from skillwire.catalog.safe_open import LocalFile, Stamp
from skillwire.errors import LimitError
from skillwire.limits import DEFAULT_LIMITS
from trees import write_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MIB = 1 << 20
READERS = {"read": safe_open.read_file_at, "hash": safe_open.hash_file_at}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    with safe_open.open_root(str(tmp_path)) as descriptor:
        yield descriptor


@rule("B1")
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("size", [10, 2 * MIB], ids=["small", "large"])
@pytest.mark.parametrize("more", [1, 3 * MIB], ids=["by one byte", "by far"])
def test_a_file_that_grows_after_it_was_opened_stays_within_the_bound(
    more: int,
    size: int,
    reader: Callable[[int, str, int], object],
    folder: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "a.md").write_bytes(b"a" * size)
    reader(folder, "a.md", size)
    honest = safe_open._open_regular

    def growing(folder: int, name: str, max_bytes: int) -> tuple[int, os.stat_result]:
        opened = honest(folder, name, max_bytes)
        with (tmp_path / name).open("ab") as file:
            file.write(b"b" * more)
        return opened

    monkeypatch.setattr(safe_open, "_open_regular", growing)
    with pytest.raises(LimitError) as caught:
        reader(folder, "a.md", size)
    assert caught.value.reference == "too-large"


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_what_is_no_regular_file_is_not_read(
    reader: Callable[[int, str, int], object], folder: int, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(safe_open.NotRegularError):
        reader(folder, "pipe", MIB)


def test_a_stamp_holds_for_regular_files_only(folder: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    status = (tmp_path / "pipe").lstat()
    stamp = Stamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    assert not safe_open.is_still(LocalFile("sha256:" + "0" * 64, 0, 0.0, stamp), folder, "pipe")


@rule("R2")
def test_a_file_that_was_written_again_and_given_its_old_time_back_is_another(
    folder: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_open, "_SETTLED_NS", -(10**18))  # a file of just now counts as settled
    path = write_tree(tmp_path, {"a.md": b"before"}) / "a.md"
    before = path.stat()
    known, is_same = safe_open.hash_file_at(folder, "a.md", MIB), safe_open.stamped(str(tmp_path), "a.md")
    assert is_same is not None
    assert is_same()
    assert safe_open.is_still(known, folder, "a.md")
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # a tick of the kernel's clock
        path.write_bytes(b"after!")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert not is_same()
    assert not safe_open.is_still(known, folder, "a.md")


@rule("B1")
def test_the_files_of_a_generated_folder_share_one_budget(tmp_path: Path) -> None:
    root = str(write_tree(tmp_path, {"SKILL.md": b"a" * 10, "in/b.md": b"b" * 10}))
    assert len(safe_open.read_tree(root, replace(DEFAULT_LIMITS, max_skill_bytes=20))) == 2
    with pytest.raises(LimitError):
        safe_open.read_tree(root, replace(DEFAULT_LIMITS, max_skill_bytes=19))
