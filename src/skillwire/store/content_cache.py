"""The cache of verified files from servers: on disk, by digest, private to the user (C1–C3).

- Only a ``VerifiedFile`` is added. Bytes are returned only if they hash to the requested digest (C1, V1). A
  damaged file is removed and fetched again. A cache hit means that the bytes are the same, not that they are safe
  (V6).
- The cache must not be inside or above a folder that hosts scan for skills (C2). No server chooses a file name in
  it, and no file is called ``SKILL.md``.
- A path consists of the origin's label, the URI and the digest. One origin never gets the files of another, and
  removing an origin hides all of its files in one step (C3).
- Only the user can open the cache; this is checked at every use. Links are never followed.
- A file is written under a temporary name and then renamed, so that two hosts can use one cache and can be killed
  at any time. There are no locks between processes; each step is atomic in the file system.
- The size is bounded, and the least recently used files are removed first. If the cache cannot be used, loading a
  skill only takes longer: ``get`` and ``put`` log the problem. The other methods, which serve commands of the
  user, raise ``StoreError``.

    root/o-<label>/<sha256 of the URI>-<digest>     a file; its modification time is the time of its last use
    root/o-<label>/tmp-<random>                     being written
    root/gone-<random>                              being removed
"""

from __future__ import annotations

import errno
import logging
import os
import re
import secrets
import shutil
import stat
import threading
import unicodedata
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from skillwire.catalog.safe_open import NotRegularError, hash_file_at, open_folder, read_file_at
from skillwire.errors import LimitError, StoreError
from skillwire.limits import KIB, MIB
from skillwire.skill.entry import is_digest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from skillwire.skill import Resource
    from skillwire.skill.verify import VerifiedFile

DEFAULT_MAX_BYTES = 512 * MIB
DEFAULT_MAX_FILES = 65_536  # small files take more space on disk than their bytes
LARGEST_SHARE = 8  # a file may take 1/8 of the bound; by default that is more than any file we read
_SLACK_SHARE = 16  # a process writes 1/16 of the bound before it counts the files of all processes again
_LEFTOVER_SECONDS = 3600  # writing one file never takes so long
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KEPT = re.compile(r"[0-9a-f]{64}-[0-9a-f]{64}\Z")
_ORIGIN = re.compile(r"[oh]-(?:[a-z0-9-]|_[0-9a-f]{2})*\Z")
_ESCAPE = re.compile(rb"_([0-9a-f]{2})")
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-")
_UNREADABLE = (errno.ELOOP, errno.EACCES, errno.EPERM, errno.EIO, errno.ENXIO)  # ELOOP: it is a link
# Another process writes into the folder, or removes it too.
_MOVING = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT)
_LONGEST_NAME = 200  # file systems allow 255 bytes

_INLINE_BYTES = 256 * KIB  # smaller files are read in this thread: starting another costs more than the read

log = logging.getLogger("skillwire.cache")


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """The number of files, their total size in bytes, and the bytes of each origin by its label."""

    files: int
    bytes: int
    by_origin: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A damaged file that was removed: its origin, its expected digest, and the reason."""

    origin: str
    digest: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Kept:
    folder: str
    name: str
    size: int
    used_ns: int


class ContentCache:
    """Verified files on disk, below ``root``, which is created if it is missing.

    ``forbidden`` are the folders that hosts scan for skills. Raises ``StoreError`` if ``root`` is in a wrong place
    (``cache-misplaced``), not private (``cache-unsafe``) or cannot be created (``cache-unusable``).
    """

    def __init__(
        self,
        root: Path,
        *,
        forbidden: Sequence[Path],
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_files: int = DEFAULT_MAX_FILES,
    ) -> None:
        check_place(root, forbidden)
        self._root = root.absolute()
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._max_file_bytes = max_bytes // LARGEST_SHARE
        self._room = threading.Lock()
        self._bytes_left = self._files_left = 0  # 0: the first write counts the existing files
        with self._open():
            pass

    def get(self, origin: str, uri: str, digest: str) -> bytes | None:
        """The file of ``origin`` at ``uri``, if it is cached and hashes to ``digest`` (C1). Marks it as used."""
        if not is_digest(digest):
            return None
        place, name = _folder_name(origin), _file_name(uri, digest)
        if not os.path.lexists(f"{self._root}/{place}/{name}"):  # a miss is common, and this is its cheapest test
            return None
        try:
            with self._open() as root, open_folder(root, (place,)) as folder:
                return self._read(folder, name, digest)
        except FileNotFoundError:
            return None
        except (OSError, StoreError) as error:
            log.warning("the cache cannot be read: %s", _reason(error))
            return None

    def put(self, origin: str, file: VerifiedFile) -> None:
        """Add ``file``, unless it is too large. An error of the disk is logged and not raised."""
        size = len(file.data)
        if size > self._max_file_bytes or self.get(origin, file.uri, file.digest) is not None:
            return
        try:
            with self._open() as root:
                self._make_room(root, size)
                folder_name = _folder_name(origin)
                _make_folder(root, folder_name)
                with open_folder(root, (folder_name,)) as folder:
                    _write(folder, _file_name(file.uri, file.digest), file.data)
        except FileNotFoundError:
            log.debug("a file is not cached: its origin was removed meanwhile")
        except (OSError, StoreError) as error:
            log.warning("a file of %d bytes cannot be cached: %s", size, _reason(error))

    def remove_origin(self, origin: str) -> int:
        """Remove all files of ``origin`` (C3); the number of bytes.

        The folder is renamed first, so that its files cannot be found even if this process is killed now. A
        process that is writing into it continues in the renamed folder.
        """
        name, gone = _folder_name(origin), f"gone-{secrets.token_hex(16)}"
        with self._open() as root, _failing("cache-unremoved", "the files of an origin cannot be removed"):
            try:
                os.rename(name, gone, src_dir_fd=root, dst_dir_fd=root)
            except FileNotFoundError:
                return 0
            freed = sum(kept.size for kept in _kept_in(root, gone))
            _remove(root, gone)
            return freed

    def usage(self) -> CacheUsage:
        """The current size. Files that are being written or removed do not count."""
        files, by_origin = 0, dict[str, int]()
        with self._open() as root, _failing("cache-unusable", "the cache cannot be counted"):
            for kept in _scan(root):
                label = _label(kept.folder)
                by_origin[label] = by_origin.get(label, 0) + kept.size
                files += 1
        return CacheUsage(files, sum(by_origin.values()), by_origin)

    def verify(self) -> list[DamagedFile]:
        """Hash every file again (C1), remove the damaged ones, and return them."""
        damaged: list[DamagedFile] = []
        with self._open() as root, _failing("cache-unusable", "the cache cannot be verified"):
            for name in _folders(root):
                with suppress(FileNotFoundError), open_folder(root, (name,)) as folder:
                    damaged += self._verify_folder(folder, _label(name))
        return damaged

    def prune(self, max_bytes: int | None = None, *, now: float) -> int:
        """Remove the least recently used files until the rest fits, and files of killed processes; the bytes
        freed.

        ``now`` is in seconds since 1970. A host calls this when it starts.
        """
        bound = self._max_bytes if max_bytes is None else max_bytes
        with self._open() as root, _failing("cache-unusable", "the cache cannot be pruned"):
            _remove_leftovers(root, now)
            kept = list(_scan(root))
            left = _evict(root, kept, bound, self._max_files)
            return sum(file.size for file in kept) - sum(file.size for file in left)

    @contextmanager
    def _open(self) -> Generator[int]:
        """Open the root, and check that it is private. It is created again if it was removed."""
        try:
            descriptor = self._open_or_make()
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise _unsafe("is a link, or is not a folder", "remove it") from error
            raise StoreError(
                "cache-unusable",
                f"the folder of the cache cannot be opened: {error.strerror}",
                "choose a folder for the cache that you can write to",
            ) from error
        try:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid():
                raise _unsafe("belongs to another user", "choose another folder for the cache")
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise _unsafe("can be opened by other users", "check its files, then make it private: chmod 700")
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_or_make(self) -> int:
        try:
            return os.open(self._root, _ROOT)
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.makedirs(self._root, _PRIVATE_FOLDER)
            return os.open(self._root, _ROOT)

    def _read(self, folder: int, name: str, digest: str) -> bytes | None:
        try:
            found, data = read_file_at(folder, name, self._max_file_bytes)
        except FileNotFoundError:
            return None
        except (OSError, LimitError) as error:
            _discard(folder, name, _damage(error))
            return None
        if found.digest != digest:
            _discard(folder, name, "its bytes have another digest")
            return None
        with suppress(OSError):  # removed meanwhile, or a read-only disk: the bytes are still valid
            os.utime(name, dir_fd=folder, follow_symlinks=False)
        return data

    def _verify_folder(self, folder: int, label: str) -> Iterator[DamagedFile]:
        for name in os.listdir(folder):
            if not _KEPT.match(name):
                continue
            digest = "sha256:" + name.rpartition("-")[2]
            try:
                found = hash_file_at(folder, name, self._max_file_bytes)
                reason = "" if found.digest == digest else "its bytes have another digest"
            except FileNotFoundError:
                continue
            except (OSError, LimitError) as error:
                reason = _damage(error)
            if reason:
                _discard(folder, name, reason)
                yield DamagedFile(label, digest, reason)

    def _make_room(self, root: int, size: int) -> None:
        """Count the files of all processes each time this one has written its slack, and remove what is too much.

        So one process keeps the bound. Several together may exceed it for a moment, each by at most its slack.
        """
        with self._room:
            if size > self._bytes_left or self._files_left < 1:
                slack = max(self._max_bytes // _SLACK_SHARE, size)
                slack_files = self._max_files // _SLACK_SHARE + 1
                kept = list(_scan(root))
                if sum(file.size for file in kept) + size > self._max_bytes or len(kept) >= self._max_files:
                    kept = _evict(root, kept, self._max_bytes - slack, self._max_files - slack_files)
                self._bytes_left = min(self._max_bytes - sum(file.size for file in kept), slack)
                self._files_left = min(self._max_files - len(kept), slack_files)
            self._bytes_left -= size
            self._files_left -= 1


async def read_cached(cache: ContentCache, label: str, file: Resource) -> bytes | None:
    """The cached bytes of a file, hashed again (C1)."""
    if file.digest is None:
        return None
    if file.size is not None and file.size <= _INLINE_BYTES:
        return cache.get(label, file.uri, file.digest)
    return await to_thread.run_sync(cache.get, label, file.uri, file.digest)


async def keep_cached(cache: ContentCache, label: str, file: VerifiedFile) -> None:
    """Add a file, in a thread: other requests do not wait for a slow disk, and a program can end without it."""
    await to_thread.run_sync(cache.put, label, file, abandon_on_cancel=True)


def check_place(root: Path, forbidden: Sequence[Path]) -> None:
    """C2: raise ``StoreError`` for a folder inside or above one that hosts scan, or that they might scan later."""
    for place in _spellings(root):
        if "skills" in place:
            raise _misplaced("is in a folder named 'skills'")
        for folder in forbidden:
            for scanned in _spellings(folder):
                depth = min(len(place), len(scanned))
                if place[:depth] == scanned[:depth]:
                    raise _misplaced("is inside or above a folder that is scanned for skills")


def _spellings(path: Path) -> set[tuple[str, ...]]:
    """A path as given and with links resolved, both as on a disk that ignores case and Unicode forms."""
    whole = (Path(os.path.abspath(path)), Path(os.path.realpath(path)))
    return {tuple(unicodedata.normalize("NFC", part).casefold() for part in each.parts) for each in whole}


def _folder_name(origin: str) -> str:
    """The folder name of a label, unique even on a disk that ignores case and Unicode forms."""
    raw = origin.encode(errors="surrogatepass")
    name = "".join(chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in raw[: _LONGEST_NAME + 1])
    if len(name) <= _LONGEST_NAME:
        return f"o-{name}"
    readable = "".join(chr(byte) for byte in raw[:100] if byte in _PLAIN)
    return f"h-{readable}-{sha256(raw).hexdigest()}"


def _label(folder: str) -> str:
    """The label of a folder; the folder name itself for a label that was too long."""
    if folder.startswith("o-"):
        raw = _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), folder[2:].encode())
        with suppress(UnicodeDecodeError):  # not a folder of this cache
            return raw.decode(errors="surrogatepass")
    return folder


def _file_name(uri: str, digest: str) -> str:
    return f"{sha256(uri.encode(errors='surrogatepass')).hexdigest()}-{digest.removeprefix('sha256:')}"


def _make_folder(root: int, name: str) -> None:
    try:
        os.mkdir(name, _PRIVATE_FOLDER, dir_fd=root)
    except FileExistsError:
        if not _is_folder(root, name):
            _discard(root, name, "it is not a folder")
            os.mkdir(name, _PRIVATE_FOLDER, dir_fd=root)


def _is_folder(parent: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


def _write(folder: int, name: str, data: bytes) -> None:
    """Write a temporary file and rename it. It is not synced: a torn or lost file is fetched again (C1)."""
    temporary = f"tmp-{secrets.token_hex(16)}"
    try:
        descriptor = os.open(temporary, _NEW, _PRIVATE_FILE, dir_fd=folder)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _folders(root: int) -> list[str]:
    with os.scandir(root) as entries:
        return [each.name for each in entries if _ORIGIN.match(each.name) and each.is_dir(follow_symlinks=False)]


def _scan(root: int) -> Iterator[_Kept]:
    for name in _folders(root):
        yield from _kept_in(root, name)


def _kept_in(root: int, name: str) -> Iterator[_Kept]:
    """The files in one folder. Files that disappear meanwhile are skipped."""
    with suppress(FileNotFoundError):
        if not _is_folder(root, name):
            return
        with open_folder(root, (name,)) as folder:
            for file, status in _regular_files(folder):
                if _KEPT.match(file):
                    yield _Kept(name, file, status.st_size, status.st_mtime_ns)


def _regular_files(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                yield name, status


def _evict(root: int, kept: list[_Kept], max_bytes: int, max_files: int) -> list[_Kept]:
    """Remove the least recently used files until the rest fits; return the rest."""
    oldest_last = sorted(kept, key=lambda file: (file.used_ns, file.name), reverse=True)
    total = sum(file.size for file in kept)
    while oldest_last and (total > max_bytes or len(oldest_last) > max_files):
        file = oldest_last.pop()
        total -= file.size
        with suppress(FileNotFoundError), open_folder(root, (file.folder,)) as folder:
            os.unlink(file.name, dir_fd=folder)
    return oldest_last


def _remove_leftovers(root: int, now: float) -> None:
    for name in os.listdir(root):
        if name.startswith("gone-"):
            _remove(root, name)
    for name in _folders(root):
        with suppress(FileNotFoundError), open_folder(root, (name,)) as folder:
            for file, status in _regular_files(folder):
                if file.startswith("tmp-") and abs(now - status.st_mtime) > _LEFTOVER_SECONDS:
                    _remove(folder, file)


def _remove(folder: int, name: str) -> None:
    """Remove a file or a folder. Try again while another process writes into the folder."""
    patience = 100
    with suppress(FileNotFoundError):
        while _is_folder(folder, name):
            try:
                shutil.rmtree(name, dir_fd=folder)
            except OSError as error:
                patience -= 1
                if error.errno not in _MOVING or not patience:
                    raise
        os.unlink(name, dir_fd=folder)


def _discard(folder: int, name: str, reason: str) -> None:
    log.warning("removing the damaged file %s from the cache: %s", name, reason)
    with suppress(OSError):
        _remove(folder, name)


def _damage(error: OSError | LimitError) -> str:
    """Describe the damage of a file. An error that is not about the file is raised again."""
    if isinstance(error, LimitError):
        return "it is larger than the cache allows"
    if isinstance(error, NotRegularError):
        return "it is not a regular file"
    if error.errno in _UNREADABLE:
        return f"it cannot be read ({error.strerror})"
    raise error


def _reason(error: OSError | StoreError) -> str:
    return str(error.strerror) if isinstance(error, OSError) else error.message


@contextmanager
def _failing(reference: str, message: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(reference, f"{message}: {error.strerror}", "check the folder of the cache") from error


def _misplaced(reason: str) -> StoreError:
    hint = "choose a folder that no host scans for skills"
    return StoreError("cache-misplaced", f"the folder of the cache {reason}", hint, rule="C2")


def _unsafe(reason: str, hint: str) -> StoreError:
    return StoreError("cache-unsafe", f"the folder of the cache {reason}", hint, rule="C1")
