"""The cached scan of a folder saves reading and never hides a change."""

from __future__ import annotations

import os
import shutil
import stat
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules import rule
from skillwire.catalog import safe_open, scan_cache
from skillwire.catalog.directory import DirectoryCatalog
from skillwire.catalog.scan_cache import load_cached, read_cache, write_cache
from skillwire.catalog.settings import SETTINGS_FILE
from skillwire.limits import Limits
from skillwire.skill.entry import SkillMeta
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
    monkeypatch.setattr(scan_cache, "_MIN_BYTES", 0)


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


def told(root: Path) -> bytes:
    return b"".join(loaded(root).scan_lines())


def recalled(root: Path, data: bytes) -> DirectoryCatalog:
    catalog = DirectoryCatalog(root)
    catalog.use_cached_scan(data.splitlines(keepends=True))
    catalog.load()
    return catalog


def seen(catalog: DirectoryCatalog) -> object:
    snapshot = catalog.snapshot()
    return snapshot.all_found(), snapshot.keys, snapshot.problems(), snapshot.ignored()


def test_an_unchanged_folder_is_the_same_and_only_what_was_wrong_is_read(root: Path, reads: list[str]) -> None:
    before = loaded(root)
    data = b"".join(before.scan_lines())
    reads.clear()
    assert seen(recalled(root, data)) == seen(before)
    assert sorted(reads) == ["SKILL.md", "SKILL.md"]  # the broken one and the one with a warning


def test_a_catalog_knows_whether_a_scan_found_what_was_cached(root: Path) -> None:
    """Then nothing is written."""
    lines = told(root).splitlines(keepends=True)
    catalog = DirectoryCatalog(root)
    catalog.use_cached_scan(lines)
    catalog.load()
    assert catalog.is_as_cached
    assert list(catalog.scan_lines()) == lines
    (root / "flat/SKILL.md").write_bytes(skill_md("flat", "Something longer than before."))
    catalog.load()
    assert not catalog.is_as_cached
    assert list(catalog.scan_lines()) == list(loaded(root).scan_lines())


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


@pytest.mark.parametrize("edit", EDITS)
def test_no_change_is_missed(root: Path, edit: str) -> None:
    data = told(root)
    EDITS[edit](root)
    assert seen(recalled(root, data)) == seen(loaded(root))


@settings(max_examples=10)
@given(st.lists(st.sampled_from(sorted(EDITS)), min_size=1, max_size=4, unique=True))
def test_no_changes_together_are_missed(tmp_path_factory: pytest.TempPathFactory, edits: list[str]) -> None:
    root = write_tree(tmp_path_factory.mktemp("tree"), {**small_tree(), **BROKEN})
    data = told(root)
    for edit in edits:
        try:
            EDITS[edit](root)
        except OSError:  # an earlier edit has taken away what this one is about
            continue
    assert seen(recalled(root, data)) == seen(loaded(root))


def test_a_file_that_was_young_when_it_was_read_is_read_again(
    root: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_open, "_SETTLED_NS", 3600 * 10**9)
    data = told(root)
    monkeypatch.setattr(safe_open, "_SETTLED_NS", 0)
    once = len(reads)
    recalled(root, data)
    assert len(reads) == 2 * once


def head(data: bytes) -> bytes:
    return data.partition(b"\n")[0]


SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "not-json": lambda data: b"[",
    "another-head": lambda data: data.replace(b'"skill"', b'"other"', 1),
    "end-missing": lambda data: b"\n".join(data.splitlines()[:-1]),
    "too-few": lambda data: head(data) + b"\n1\n",
    "cut": lambda data: data[:-20],
    "not-a-record": lambda data: head(data) + b'\n["flat",7]\n1\n',
    "bad-record": lambda data: head(data) + b'\n["flat",true,["uri"],[],[]]\n1\n',
    "nested-too-deep": lambda data: b"[" * 100_000,
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_an_unusable_memory_is_not_used(root: Path, spoil: Callable[[bytes], bytes]) -> None:
    before = loaded(root)
    spoiled = spoil(b"".join(before.scan_lines()))
    assert seen(recalled(root, spoiled)) == seen(before)


def test_a_scan_under_other_conditions_is_not_used(root: Path, tmp_path: Path, reads: list[str]) -> None:
    data = told(root)
    copy = shutil.copytree(root, tmp_path / "copy", symlinks=True)
    (root / "SKILL.md").write_bytes(skill_md("skills"))  # now the folder is a skill itself
    for catalog in (
        DirectoryCatalog(root),
        DirectoryCatalog(root, scheme="acme"),
        DirectoryCatalog(root, limits=Limits(max_depth=3)),
        DirectoryCatalog(copy),
    ):
        reads.clear()
        catalog.use_cached_scan(data.splitlines(keepends=True))
        catalog.load()
        assert "notes.md" in reads


def test_what_is_listed_is_not_remembered(root: Path) -> None:
    data = told(root)

    def unlisted(path: str, _: SkillMeta) -> SkillMeta:
        return SkillMeta(listed=path != "flat")

    catalog = DirectoryCatalog(root, describe=unlisted)
    catalog.use_cached_scan(data.splitlines(keepends=True))
    catalog.load()
    assert "flat" not in catalog.snapshot().keys
    assert catalog.snapshot().record("flat") is not None


@rule("R2")
@pytest.mark.anyio
async def test_a_digest_that_was_remembered_wrongly_serves_no_wrong_byte(root: Path) -> None:
    """Every byte is compared with what its entry says, whoever said so."""
    catalog = loaded(root)
    right = (await catalog.get_skill("skill://flat/SKILL.md")).files[0].digest
    assert right is not None
    lying = DirectoryCatalog(root)
    lying.use_cached_scan(line.replace(right[-64:].encode(), b"0" * 64) for line in catalog.scan_lines())
    read = await lying.read_file("skill://flat/SKILL.md")
    assert read.data == (root / "flat/SKILL.md").read_bytes()
    assert (await lying.get_skill("skill://flat/SKILL.md")).files[0].digest == right


def test_memory_is_private_and_one_file_a_folder(root: Path, tmp_path: Path) -> None:
    memory = tmp_path / "cache" / "folders"
    for _ in range(2):
        load(root, memory)
    (file,) = memory.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(memory.stat().st_mode) == 0o700
    assert kept(memory, str(root)) == told(root)
    assert kept(memory, str(root / "flat")) == b""


def test_a_small_folder_is_not_remembered(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_cache, "_MIN_BYTES", 1 << 16)
    load(root, tmp_path / "memory")
    assert not (tmp_path / "memory").exists()


def test_the_least_recently_used_memory_is_forgotten(tmp_path: Path) -> None:
    for number in range(32):
        before = set(tmp_path.iterdir())
        write_cache(tmp_path, f"/folder/{number}", [b"data"])
        [new] = set(tmp_path.iterdir()) - before
        os.utime(new, (number, number))
    assert kept(tmp_path, "/folder/0") == b"data"  # used now
    write_cache(tmp_path, "/folder/new", [b"data"])
    gone = [number for number in range(32) if not kept(tmp_path, f"/folder/{number}")]
    assert gone == [1]


def test_memory_that_cannot_be_written_is_no_memory(root: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    write_cache(tmp_path / "cache", str(root), [b"data"])
    assert kept(tmp_path / "cache", str(root)) == b""


def load(root: Path, cache: Path) -> None:
    load_cached(DirectoryCatalog(root), cache, no_progress)


def kept(folder: Path, root: str) -> bytes:
    with read_cache(folder, root) as lines:
        return b"".join(lines)


def no_progress() -> nullcontext[Callable[[int], None]]:
    return nullcontext(lambda done: None)


@pytest.mark.parametrize("mode", [0o620, 0o602], ids=["group", "others"])
def test_memory_that_others_can_write_is_not_used(root: Path, tmp_path: Path, mode: int) -> None:
    memory = tmp_path / "memory"
    load(root, memory)
    [file] = memory.iterdir()
    file.chmod(mode)
    assert kept(memory, str(root)) == b""


def test_a_folder_that_became_a_skill_while_it_was_read_is_read_again(root: Path) -> None:
    data = told(root)
    (root / "SKILL.md").write_bytes(skill_md("skills"))
    assert seen(recalled(root, data)) == seen(loaded(root))
