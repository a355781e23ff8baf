"""The cache keeps what was verified, gives back only what still is, and lets nobody else near it (C1, C2, C3)."""

from __future__ import annotations

import errno
import logging
import os
import stat
import tempfile
import threading
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules import rule
from skillwire.errors import StoreError
from skillwire.skill.entry import digest_of
from skillwire.skill.verify import VerifiedFile
from skillwire.store.content_cache import CacheUsage, ContentCache

if TYPE_CHECKING:
    from collections.abc import Callable

URI = "skill://acme/refunds/SKILL.md"
TEXT = b"---\nname: refunds\n---\nPay it back.\n"
NOW = 2_000_000_000.0
HOUR = 3600


def verified(data: bytes = TEXT, uri: str = URI) -> VerifiedFile:
    return VerifiedFile(uri, data, digest_of(data))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def cache(root: Path) -> ContentCache:
    return ContentCache(root, forbidden=())


def held(cache: ContentCache, origin: str, file: VerifiedFile) -> bytes | None:
    return cache.get(origin, file.uri, file.digest)


def paths(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if not path.is_dir() or path.is_symlink())


def only_path(root: Path) -> Path:
    (path,) = paths(root)
    return path


def used_at(root: Path, file: VerifiedFile, when: float) -> None:
    """Say when a file was last used: no test waits for a clock."""
    (path,) = root.rglob(f"*-{file.digest.removeprefix('sha256:')}")
    os.utime(path, (when, when))


@rule("C1")
def test_what_was_put_is_got_back(cache: ContentCache) -> None:
    """By origin, URI and digest."""
    for data in (TEXT, b"", bytes(range(256)) * 1000):
        cache.put("acme", verified(data))
        assert held(cache, "acme", verified(data)) == data


@rule("C3")
def test_nothing_comes_for_another_origin_uri_or_digest(cache: ContentCache) -> None:
    """The same digest under another label or URI is not this content."""
    cache.put("acme", verified())
    assert cache.get("other", URI, digest_of(TEXT)) is None
    assert cache.get("acme", URI + "x", digest_of(TEXT)) is None
    assert cache.get("acme", URI, digest_of(b"")) is None


@pytest.mark.parametrize(
    "digest", ["", "sha256:../../x", "md5:" + "0" * 64], ids=["empty", "path", "other-algorithm"]
)
def test_nothing_is_kept_under_an_invalid_digest(cache: ContentCache, digest: str) -> None:
    assert cache.get("acme", URI, digest) is None


def test_what_is_no_digest_never_becomes_part_of_a_path(cache: ContentCache, root: Path) -> None:
    cache.put("acme", verified())
    stranger = Path(str(only_path(root)).replace(digest_of(TEXT).removeprefix("sha256:"), "A" * 64))
    stranger.write_bytes(b"mine")
    assert cache.get("acme", URI, "sha256:" + "A" * 64) is None
    assert stranger.read_bytes() == b"mine"


def test_another_process_finds_what_was_put(cache: ContentCache, root: Path) -> None:
    cache.put("acme", verified())
    assert held(ContentCache(root, forbidden=()), "acme", verified()) == TEXT


def test_two_contents_of_one_uri_are_both_kept(cache: ContentCache) -> None:
    """The one that was approved is needed to show how the new one differs."""
    cache.put("acme", verified(b"old"))
    cache.put("acme", verified(b"new"))
    assert held(cache, "acme", verified(b"old")) == b"old"
    assert held(cache, "acme", verified(b"new")) == b"new"


def flipped(path: Path) -> None:
    path.write_bytes(TEXT.replace(b"back", b"Back"))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def swollen(path: Path) -> None:
    os.truncate(path, 1 << 40)  # sparse: it takes no room here, and must take none in memory


def linked(path: Path) -> None:
    path.rename(path.parent.parent.parent / "elsewhere")
    path.symlink_to("../../elsewhere")  # with the right bytes: a link is not followed all the same


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def made_a_folder(path: Path) -> None:
    path.unlink()
    (path / "deep").mkdir(parents=True)
    (path / "deep" / "SKILL.md").write_bytes(TEXT)


DAMAGES = [flipped, emptied, swollen, linked, piped, made_a_folder]
damaged = pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)


@rule("C1")
@damaged
def test_what_is_damaged_is_removed_and_said_without_a_path_of_the_machine(
    cache: ContentCache, root: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    """On a hit the bytes are hashed again; a link, a pipe and a folder are damage too."""
    cache.put("acme", verified())
    path = only_path(root)
    damage(path)
    assert held(cache, "acme", verified()) is None
    assert not os.path.lexists(path)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("skillwire.cache", logging.WARNING)
    assert path.name in record.getMessage()
    assert str(root) not in record.getMessage()


@rule("C1")
@damaged
def test_verify_finds_each_damage_once(cache: ContentCache, root: Path, damage: Callable[[Path], None]) -> None:
    """Everything can be hashed again at once."""
    cache.put("acme", verified())
    path = only_path(root)
    cache.put("acme", verified(b"whole"))
    damage(path)
    (found,) = cache.verify()
    assert (found.origin, found.digest) == ("acme", digest_of(TEXT))
    assert found.reason
    assert cache.verify() == []
    assert held(cache, "acme", verified(b"whole")) == b"whole"


@damaged
def test_putting_again_repairs(cache: ContentCache, root: Path, damage: Callable[[Path], None]) -> None:
    cache.put("acme", verified())
    damage(only_path(root))
    cache.put("acme", verified())
    assert held(cache, "acme", verified()) == TEXT
    assert cache.usage().files == 1


def test_a_file_that_cannot_be_opened_counts_as_damaged(
    cache: ContentCache, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put("acme", verified())
    really_open = os.open
    name = only_path(root).name

    def failing(path: str | Path, *rest: int, **more: int) -> int:
        if path == name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return really_open(path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        assert held(cache, "acme", verified()) is None
    assert paths(root) == []


def test_a_shortage_of_descriptors_removes_nothing(
    cache: ContentCache, root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put("acme", verified())
    really_open = os.open
    name = only_path(root).name

    def failing(path: str | Path, *rest: int, **more: int) -> int:
        if path == name:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return really_open(path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        assert held(cache, "acme", verified()) is None
    assert "Too many open files" in caplog.text
    assert held(cache, "acme", verified()) == TEXT


@rule("C1")
def test_an_origins_folder_that_became_a_link_is_not_followed(
    cache: ContentCache, root: Path, tmp_path: Path
) -> None:
    """Neither reading, counting, verifying, removing nor writing goes through it; writing replaces it."""
    cache.put("acme", verified())
    folder = only_path(root).parent
    outside = folder.rename(tmp_path / "outside")
    folder.symlink_to(outside)
    assert held(cache, "acme", verified()) is None
    assert cache.usage().files == 0
    assert cache.verify() == []
    assert cache.prune(0, now=NOW) == 0
    assert cache.remove_origin("acme") == 0
    assert not os.path.lexists(folder)
    folder.symlink_to(outside)
    cache.put("acme", verified(b"new"))
    assert not folder.is_symlink()
    assert held(cache, "acme", verified(b"new")) == b"new"
    assert len(paths(outside)) == 1


def test_putting_what_is_there_writes_nothing(cache: ContentCache, root: Path) -> None:
    cache.put("acme", verified())
    before = only_path(root).stat().st_ino
    cache.put("acme", verified())
    assert only_path(root).stat().st_ino == before


@rule("C2")
@pytest.mark.parametrize("way", ["inside", "same", "above", "through-a-link", "other-case", "other-unicode-form"])
def test_it_is_never_where_hosts_look_for_skills(tmp_path: Path, way: str) -> None:
    """Not inside, not above, by no spelling."""
    scanned = tmp_path / "home" / "Agenté"
    scanned.mkdir(parents=True)
    (tmp_path / "link").symlink_to(scanned)
    root = {
        "inside": scanned / "deep" / "cache",
        "same": scanned,
        "above": tmp_path / "home",
        "through-a-link": tmp_path / "link" / "cache",
        "other-case": tmp_path / "HOME" / "agentÉ" / "cache",
        "other-unicode-form": tmp_path / "home" / unicodedata.normalize("NFD", "Agenté") / "cache",
    }[way]
    with pytest.raises(StoreError) as caught:
        ContentCache(root, forbidden=[tmp_path / "unrelated", scanned])
    assert (caught.value.reference, caught.value.rule) == ("cache-misplaced", "C2")
    assert str(tmp_path) not in str(caught.value)
    assert list(scanned.iterdir()) == []


@rule("C2")
def test_it_is_not_above_a_scanned_folder_that_is_a_link(tmp_path: Path) -> None:
    """A scanned folder has the name it was given and the one it leads to."""
    (tmp_path / "far").mkdir()
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "scanned").symlink_to(tmp_path / "far")
    for root in (tmp_path / "near", tmp_path / "far" / "cache"):
        with pytest.raises(StoreError):
            ContentCache(root, forbidden=[tmp_path / "near" / "scanned"])


@rule("C2")
@pytest.mark.parametrize("place", ["skills", "Skills/a/b", "link/cache"])
def test_no_part_of_its_path_is_called_skills(tmp_path: Path, place: str) -> None:
    """A folder of that name is scanned by somebody."""
    (tmp_path / "x" / "skills").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "x" / "skills")
    with pytest.raises(StoreError) as caught:
        ContentCache(tmp_path / place, forbidden=())
    assert caught.value.reference == "cache-misplaced"


@rule("C2")
def test_beside_a_scanned_folder_is_fine(tmp_path: Path) -> None:
    """Names that only begin alike are other folders, and a way around is judged by where it ends."""
    (tmp_path / "agent").mkdir()
    cache = ContentCache(tmp_path / "agent" / ".." / "agent-cache", forbidden=[tmp_path / "agent"])
    cache.put("acme", verified())
    assert held(cache, "acme", verified()) == TEXT


@rule("C2")
def test_no_name_in_it_was_chosen_by_a_server_or_looks_like_a_skill(cache: ContentCache, root: Path) -> None:
    """A host that scanned it by mistake would find no skill; nothing can be run."""
    cache.put("skills", verified(uri="skill://skills/../SKILL.md"))
    cache.put(".claude/skills", verified())
    for path in root.rglob("*"):
        assert path.name.casefold() not in ("skills", "skill.md", ".claude")
        assert not path.is_file() or path.stat().st_mode & 0o111 == 0


LABELS = [
    "", ".", "..", "../x", "/etc", "a/b", "a\\b", "A", "a", "aA", "Aa", "a_41", "_", "_5f", "o-a", "con", "nul.",
    "gone-1", "tmp-1", "é", "e\u0301", "ß", "ss", "ſ", "s", "İ", "i", "K", "k", "\u212a", "技能", "\ud800",
    "\x00", "\n", "a ", " a", "x" * 200, "x" * 201, "x" * 5000, "x" * 5000 + "y", "X" * 5000, "é" * 300, "%2e%2e",
    "~", "-rf",
]  # fmt: skip


@rule("C3")
def test_any_text_is_a_safe_label_and_no_two_share_a_folder(cache: ContentCache, root: Path) -> None:
    """Also where case and Unicode forms do not count; each origin has its own, and takes only that along."""
    for label in LABELS:
        cache.put(label, verified(repr(label).encode()))
    for label in LABELS:
        assert held(cache, label, verified(repr(label).encode())) == repr(label).encode()
    folders = [path.name for path in root.iterdir()]
    assert len({unicodedata.normalize("NFKC", name).casefold() for name in folders}) == len(LABELS)
    assert all(path.parent.parent == root for path in paths(root))
    for count, label in enumerate(LABELS, 1):
        assert cache.remove_origin(label) == len(repr(label).encode())
        assert cache.usage().files == len(LABELS) - count


@rule("C3")
@settings(max_examples=settings().max_examples // 3)  # a third of the profile's: each makes folders
@given(label=st.text(max_size=80), other=st.text(max_size=80))
def test_labels_never_meet(label: str, other: str) -> None:
    """What one origin put, no other gets; labels that are not very long can be read from the disk."""
    with tempfile.TemporaryDirectory() as place:
        cache = ContentCache(Path(place) / "cache", forbidden=())
        cache.put(label, verified())
        assert held(cache, label, verified()) == TEXT
        assert (held(cache, other, verified()) == TEXT) == (label == other)
        assert cache.usage().by_origin == {label: len(TEXT)} or len(label.encode()) > 66
        assert len(list(Path(place).rglob("*"))) == 3
        cache.remove_origin(label)
        assert held(cache, label, verified()) is None


def test_usage_counts_files_and_bytes_by_label(cache: ContentCache) -> None:
    assert cache.usage() == CacheUsage(0, 0, {})
    cache.put("Acme ../", verified(b"12345"))
    cache.put("Acme ../", verified(b"123"))
    cache.put("技能", verified(b"1"))
    assert cache.usage() == CacheUsage(3, 9, {"Acme ../": 8, "技能": 1})


@rule("C3")
def test_removing_an_origin_removes_its_content_and_nobody_elses(cache: ContentCache, root: Path) -> None:
    """Removing a server removes its content."""
    cache.put("acme", verified())
    cache.put("acme", verified(b"more", "skill://acme/refunds/more.md"))
    cache.put("acme-2", verified())
    assert cache.remove_origin("acme") == len(TEXT) + 4
    assert cache.remove_origin("acme") == 0
    assert held(cache, "acme", verified()) is None
    assert held(cache, "acme-2", verified()) == TEXT
    assert len(list(root.iterdir())) == 1


def test_removing_an_origin_takes_along_what_is_being_written(cache: ContentCache, root: Path) -> None:
    cache.put("acme", verified())
    (only_path(root).parent / "tmp-1").write_bytes(b"half")
    cache.remove_origin("acme")
    assert list(root.iterdir()) == []


@rule("C3")
@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOTEMPTY], ids=["forbidden", "never-empty"])
def test_what_cannot_be_removed_is_an_error_and_not_found_any_more(
    cache: ContentCache, root: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person who removes a server is not told that its content is gone when it is not."""
    cache.put("acme", verified())

    def failing(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", failing)
        with pytest.raises(StoreError) as caught:
            cache.remove_origin("acme")
    assert caught.value.reference == "cache-unremoved"
    assert held(cache, "acme", verified()) is None
    cache.prune(now=NOW)
    assert list(root.iterdir()) == []


def test_only_the_user_can_open_it(cache: ContentCache, root: Path) -> None:
    """Folders are 0700 and files 0600, whatever the umask says."""
    before = os.umask(0)
    try:
        cache.put("acme", verified())
    finally:
        os.umask(before)
    modes = {path.relative_to(root).parts: stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}
    assert sorted(modes.values()) == [0o600, 0o700]
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o701, 0o710], ids=["others", "group"])
def test_a_folder_open_to_others_is_refused(root: Path, mode: int) -> None:
    root.mkdir()
    root.chmod(mode)
    with pytest.raises(StoreError) as caught:
        ContentCache(root, forbidden=())
    assert caught.value.reference == "cache-unsafe"
    assert "chmod 700" in caught.value.hint
    assert str(root) not in str(caught.value)


def test_a_folder_of_another_user_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.mkdir(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: root.stat().st_uid + 1)
    with pytest.raises(StoreError) as caught:
        ContentCache(root, forbidden=())
    assert caught.value.reference == "cache-unsafe"


@pytest.mark.parametrize("target", ["folder", "missing"])
def test_a_root_that_is_a_link_is_refused(root: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "folder").mkdir(0o700)
    root.symlink_to(tmp_path / target)
    with pytest.raises(StoreError) as caught:
        ContentCache(root, forbidden=())
    assert caught.value.reference == "cache-unsafe"
    assert not (tmp_path / "missing").exists()


def test_a_root_that_is_a_file_is_refused(root: Path) -> None:
    root.write_bytes(b"")
    with pytest.raises(StoreError):
        ContentCache(root, forbidden=())


def test_a_root_that_cannot_be_made_is_an_error_with_a_hint() -> None:
    with pytest.raises(StoreError) as caught:
        ContentCache(Path("/proc/skillwire/cache"), forbidden=())
    assert caught.value.reference == "cache-unusable"
    assert caught.value.hint


def test_a_cache_that_others_can_open_by_now_is_not_used(
    cache: ContentCache, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A load goes on without it; what a person asks for says so."""
    cache.put("acme", verified())
    root.chmod(0o755)
    assert held(cache, "acme", verified()) is None
    cache.put("acme", verified(b"new"))
    assert {(record.name, record.levelno) for record in caplog.records} == {("skillwire.cache", logging.WARNING)}
    for ask in (cache.usage, cache.verify, lambda: cache.prune(now=NOW), lambda: cache.remove_origin("acme")):
        with pytest.raises(StoreError):
            ask()
    root.chmod(0o700)
    assert cache.usage().files == 1


def test_a_cache_that_was_cleared_away_is_made_again(cache: ContentCache, root: Path) -> None:
    root.rename(root.with_name("old"))
    assert held(cache, "acme", verified()) is None
    cache.put("acme", verified())
    assert held(cache, "acme", verified()) == TEXT
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_what_was_used_longest_ago_goes_first(cache: ContentCache, root: Path) -> None:
    files = [verified(bytes([number]) * 10) for number in range(5)]
    for file, when in zip(files, (3, 1, 5, 2, 4), strict=True):
        cache.put("acme", file)
        used_at(root, file, NOW + when)
    assert cache.prune(30, now=NOW) == 20
    assert [held(cache, "acme", file) is not None for file in files] == [True, False, True, False, True]


def test_a_hit_counts_as_use_and_so_does_putting_again(cache: ContentCache, root: Path) -> None:
    """By the modification time: disks are often mounted without times of access."""
    files = [verified(bytes([number]) * 10) for number in range(4)]
    for file, when in zip(files, range(4), strict=True):
        cache.put("acme", file)
        used_at(root, file, when)
    held(cache, "acme", files[0])
    cache.put("acme", files[1])
    cache.prune(20, now=NOW)
    assert [held(cache, "acme", file) is not None for file in files] == [True, True, False, False]


def test_pruning_looks_at_all_origins(cache: ContentCache, root: Path) -> None:
    old, new = verified(b"old"), verified(b"new")
    cache.put("b", old)
    cache.put("a", new)
    used_at(root, old, NOW - 1)
    used_at(root, new, NOW)
    assert cache.prune(3, now=NOW) == 3
    assert cache.usage().by_origin == {"a": 3}


def test_what_fits_stays(cache: ContentCache) -> None:
    cache.put("acme", verified())
    assert cache.prune(now=NOW) == 0
    assert cache.prune(len(TEXT), now=NOW) == 0
    assert cache.usage().files == 1


def test_putting_keeps_the_bound_of_bytes(root: Path) -> None:
    cache = ContentCache(root, forbidden=(), max_bytes=800)
    files = [verified(number.to_bytes(2) * 50) for number in range(30)]
    for number, file in enumerate(files):
        cache.put("acme", file)
        used_at(root, file, number)
        assert cache.usage().bytes <= 800
    assert held(cache, "acme", files[-1]) is not None
    assert held(cache, "acme", files[-7]) is not None
    assert held(cache, "acme", files[0]) is None


def test_putting_keeps_the_bound_of_files(root: Path) -> None:
    """Empty files cost no bytes; a server cannot fill the disk with them."""
    cache = ContentCache(root, forbidden=(), max_files=20)
    for number in range(50):
        cache.put("acme", verified(b"", f"skill://a/b/{number}"))
        assert cache.usage().files <= 20
    assert cache.usage().files >= 18


def test_the_bound_holds_for_what_was_there_before(root: Path) -> None:
    ContentCache(root, forbidden=()).put("acme", verified(b"x" * 1000))
    cache = ContentCache(root, forbidden=(), max_bytes=800)
    cache.put("acme", verified(b"y" * 100))
    assert cache.usage().by_origin == {"acme": 100}


def test_hosts_that_share_a_cache_pass_the_bound_by_no_more_than_their_slack(root: Path) -> None:
    hosts = [ContentCache(root, forbidden=(), max_bytes=4_000) for _ in range(3)]
    for number in range(60):
        hosts[number % 3].put("acme", verified(number.to_bytes(2) * 50))
        assert hosts[0].usage().bytes <= 4_000 + 3 * 4_000 // 16


def test_a_file_that_is_too_large_a_share_of_the_bound_is_not_kept(root: Path) -> None:
    cache = ContentCache(root, forbidden=(), max_bytes=800)
    cache.put("acme", verified(b"x" * 101))
    assert cache.usage().files == 0
    cache.put("acme", verified(b"x" * 100))
    assert cache.usage().files == 1


def test_leftovers_of_an_hour_ago_are_removed_and_younger_ones_are_not(cache: ContentCache, root: Path) -> None:
    """The clock is the caller's; a time that has not come yet belongs to a clock that was wrong."""
    cache.put("acme", verified())
    folder = only_path(root).parent
    for name, age in (("tmp-old", HOUR + 1), ("tmp-young", HOUR - 1), ("tmp-future", -HOUR - 1)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (NOW - age, NOW - age))
    (root / "gone-1").mkdir()
    (root / "gone-1" / "rest").write_bytes(b"x")
    cache.prune(now=NOW)
    assert sorted(path.name for path in root.rglob("tmp-*")) == ["tmp-young"]
    assert not (root / "gone-1").exists()
    assert held(cache, "acme", verified()) == TEXT


def test_what_is_not_the_caches_is_neither_counted_nor_touched(cache: ContentCache, root: Path) -> None:
    cache.put("acme", verified())
    strangers = [root / "README", root / "Other" / "x", only_path(root).parent / "note", root / "o-_ff" / "y"]
    for path in strangers:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine")
    assert cache.usage() == CacheUsage(1, len(TEXT), {"acme": len(TEXT)})
    assert cache.verify() == []
    cache.prune(0, now=NOW)
    assert all(path.exists() for path in strangers)


@pytest.mark.parametrize("call", ["write", "rename", "mkdir"])
def test_a_full_disk_costs_no_load_and_leaves_nothing(
    cache: ContentCache, root: Path, call: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        cache.put("acme", verified())
    assert "No space left on device" in caplog.text
    assert str(root) not in caplog.text
    assert paths(root) == []
    cache.put("acme", verified())
    assert held(cache, "acme", verified()) == TEXT


def test_short_writes_are_finished(cache: ContentCache, monkeypatch: pytest.MonkeyPatch) -> None:
    really_write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: really_write(descriptor, data[:7]))
        cache.put("acme", verified())
    assert held(cache, "acme", verified()) == TEXT


@rule("C3")
def test_an_origin_that_is_removed_while_its_file_is_written_stays_removed(
    cache: ContentCache, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who still writes, writes into what is being removed."""
    really_write = os.write

    def removing(descriptor: int, data: bytes) -> int:
        written = really_write(descriptor, data)
        ContentCache(root, forbidden=()).remove_origin("acme")
        return written

    monkeypatch.setattr(os, "write", removing)
    cache.put("acme", verified())
    assert held(cache, "acme", verified()) is None
    assert list(root.iterdir()) == []


@rule("C3")
def test_an_origin_that_somebody_prunes_while_it_is_removed_is_removed(
    cache: ContentCache, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both remove the same folder; neither minds."""
    cache.put("acme", verified())
    really_rename = os.rename

    def pruning(*names: str, **folders: int) -> None:
        really_rename(*names, **folders)
        ContentCache(root, forbidden=()).prune(now=NOW)

    monkeypatch.setattr(os, "rename", pruning)
    cache.remove_origin("acme")
    assert list(root.iterdir()) == []


def test_threads_of_one_host_share_it(root: Path) -> None:
    """The host calls it from worker threads."""
    cache = ContentCache(root, forbidden=(), max_bytes=40_000)
    wrong: list[int] = []

    def work(first: int) -> None:
        for number in range(first, first + 100):
            file = verified((number % 130).to_bytes(2) * 100)
            cache.put("acme", file)
            if held(cache, "acme", file) not in (file.data, None):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 20, 40, 60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert cache.usage().bytes <= 40_000
    assert cache.verify() == []
