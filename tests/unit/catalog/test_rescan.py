"""Scanning a folder again reads only files that changed, and misses no change."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules import rule
from skillwire.catalog import safe_open
from skillwire.catalog.directory import DirectoryCatalog
from skillwire.catalog.settings import SETTINGS_FILE
from trees import skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BROKEN = {
    "broken/SKILL.md": b"no frontmatter",
    "warned/SKILL.md": skill_md("other-name"),
    "flat/.git/config": b"left out by its name",
    "stray/skill.md": b"wrong case",
}


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a test are new; edits here change a size, an inode or visibly a time."""
    monkeypatch.setattr(safe_open, "_SETTLED_NS", 0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", {**small_tree(), **BROKEN})


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files of skills that are opened."""
    opened: list[str] = []
    real = safe_open._open_regular

    def counted(folder: int, name: str, max_bytes: int) -> tuple[int, os.stat_result]:
        if name != SETTINGS_FILE:
            opened.append(name)
        return real(folder, name, max_bytes)

    monkeypatch.setattr(safe_open, "_open_regular", counted)
    return opened


def loaded(root: Path) -> DirectoryCatalog:
    catalog = DirectoryCatalog(root)
    catalog.load()
    return catalog


def seen(catalog: DirectoryCatalog) -> object:
    snapshot = catalog.snapshot()
    return snapshot.all_found(), snapshot.keys, snapshot.problems(), snapshot.ignored()


def test_only_skills_with_a_problem_are_read_again(root: Path, reads: list[str]) -> None:
    catalog = loaded(root)
    reads.clear()
    catalog.load()
    assert sorted(reads) == ["SKILL.md", "SKILL.md"]  # the broken one and the one with a warning
    assert seen(catalog) == seen(loaded(root))


def rewrite_in_place(path: Path) -> None:
    """Same size, same inode, and the time of the last change set back: only the kernel's own time tells."""
    before = path.stat()
    deadline = time.monotonic() + 10
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # a tick of the kernel's clock
        assert time.monotonic() < deadline
        path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


EDITS: dict[str, Callable[[Path], object]] = {
    "a file in place": lambda root: rewrite_in_place(root / "acme/release/notes.md"),
    "a head in place": lambda root: rewrite_in_place(root / "acme/release/SKILL.md"),
    "a head": lambda root: (root / "flat/SKILL.md").write_bytes(skill_md("flat", "Something longer than before.")),
    "a file replaced": lambda root: shutil.copy(root / "flat/SKILL.md", root / "acme/release/notes.md"),
    "a file more": lambda root: (root / "flat/more.txt").write_text("more"),
    "a file less": lambda root: (root / "acme/release/notes.md").unlink(),
    "a head less": lambda root: (root / "acme/release/SKILL.md").unlink(),
    "a folder more": lambda root: (root / "flat/empty").mkdir(),
    "a skill more": lambda root: write_tree(root, {"flat/inner/SKILL.md": skill_md("inner")}),
    "a skill less": lambda root: shutil.rmtree(root / "acme/billing"),
    "a skill moved": lambda root: (root / "flat").rename(root / "round"),
    "a name to ignore": lambda root: (root / "flat/.env").write_text("SECRET=1"),
    "a file made a link": lambda root: replace_by_link(root / "acme/release/notes.md"),
    "a head made a link": lambda root: replace_by_link(root / "flat/SKILL.md"),
    "a file made a folder": lambda root: (
        (root / "acme/release/notes.md").unlink(),
        (root / "acme/release/notes.md").mkdir(),
    ),
    "what was broken mended": lambda root: (root / "broken/SKILL.md").write_bytes(skill_md("broken")),
}


@rule("S1")
@pytest.mark.parametrize("edit", EDITS)
def test_no_change_is_missed(root: Path, edit: str) -> None:
    catalog = loaded(root)
    EDITS[edit](root)
    catalog.load()
    assert seen(catalog) == seen(loaded(root))


@rule("S1")
@settings(max_examples=10)
@given(st.lists(st.sampled_from(sorted(EDITS)), min_size=1, max_size=4, unique=True))
def test_no_changes_together_are_missed(tmp_path_factory: pytest.TempPathFactory, edits: list[str]) -> None:
    root = write_tree(tmp_path_factory.mktemp("tree"), {**small_tree(), **BROKEN})
    catalog = loaded(root)
    for edit in edits:
        try:
            EDITS[edit](root)
        except OSError:  # an earlier edit has taken away what this one is about
            continue
    catalog.load()
    assert seen(catalog) == seen(loaded(root))


def test_a_file_that_was_young_when_it_was_read_is_read_again(
    root: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_open, "_SETTLED_NS", 3600 * 10**9)
    catalog = loaded(root)
    monkeypatch.setattr(safe_open, "_SETTLED_NS", 0)
    once = len(reads)
    catalog.load()
    assert len(reads) == 2 * once


@rule("S1")
def test_a_folder_that_became_a_skill_is_read_again(root: Path) -> None:
    catalog = loaded(root)
    (root / "SKILL.md").write_bytes(skill_md("skills"))
    catalog.load()
    assert seen(catalog) == seen(loaded(root))
