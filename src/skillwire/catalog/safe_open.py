"""Files of a skill on disk: which names are ignored, and how files are opened and read safely.

No path leaves a tree, and nothing changes between check and read: each folder is opened relative to its parent,
without following symbolic links. Checks use the open file, never its name. Only ``read_known`` opens a file by its
whole path: its digest is known. Opening a pipe does not block, and a device is never read. POSIX only.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from skillwire.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from skillwire.limits import Limits

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 20
# A file that is written twice within one clock tick keeps its times, so times that are younger than this prove
# nothing. The clocks of some file systems tick every two seconds.
_SETTLED_NS = 3_000_000_000
# Version control, caches, files of editors and operating systems, credentials. Everything else in a skill's folder
# is served, including dotfiles. Ignored names are reported (``Catalog.ignored``).
_IGNORED_FOLDERS = frozenset(
    {
        ".git", ".hg", ".svn", ".bzr", ".jj", "CVS", "_darcs",
        "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv", "node_modules",
        ".idea", ".vscode", ".vs", ".history",
        "__MACOSX", ".Spotlight-V100", ".Trashes", ".fseventsd", "$RECYCLE.BIN", "System Volume Information",
        ".ssh", ".aws", ".gnupg",
    }
)  # fmt: skip
_IGNORED_FILES = re.compile(
    r"\.git|\.DS_Store|\._.*|Thumbs\.db|[Dd]esktop\.ini|\.directory|Icon\r"  # systems
    r"|.*~|\.#.*|#.*#|\..*\.sw[a-p]|\.netrwhist|4913"  # editors (4913 is vim's write test)
    r"|.*\.py[co]"
    r"|\.env|\.env\.(?:local|production)|\.netrc|\.pypirc|\.npmrc|id_(?:rsa|dsa|ecdsa|ed25519)"  # credentials
)


class Stamp(NamedTuple):
    """The state of a file in the file system. While it is the same, the bytes are too."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class LocalFile(NamedTuple):
    """One file of a local skill. ``data`` is set if the bytes are in memory, ``stamp`` if they are on disk."""

    digest: str
    size: int
    modified: float | None = None
    stamp: Stamp | None = None
    data: bytes | None = None
    executable: bool = False


def is_ignored(name: str, *, is_folder: bool) -> bool:
    """Whether a file or folder of this name is never part of a skill."""
    return name in _IGNORED_FOLDERS if is_folder else _IGNORED_FILES.fullmatch(name) is not None


class NotRegularError(OSError):
    """The opened file is not a regular file."""


@contextmanager
def open_root(root: str) -> Generator[int]:
    """Open the root folder of a catalog. The caller chose it, so links to it are followed."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_folder(parent: int, segments: Sequence[str]) -> Generator[int]:
    """Open a folder below ``parent`` without following links."""
    descriptor = os.dup(parent)
    try:
        for segment in segments:
            below = os.open(segment, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def read_file_at(folder: int, name: str, max_bytes: int) -> tuple[LocalFile, bytes]:
    """Read a file of at most ``max_bytes`` (B1)."""
    chunks: list[bytes] = []
    file = _read(folder, name, max_bytes, chunks.append)
    return file, b"".join(chunks)


def hash_file_at(folder: int, name: str, max_bytes: int) -> LocalFile:
    """Hash a file without keeping its bytes."""
    return _read(folder, name, max_bytes, len)


def read_below(root: str, path: str, max_bytes: int) -> tuple[LocalFile, bytes]:
    """Read the file at ``path`` below the folder ``root``."""
    *folders, name = path.split("/")
    with open_root(root) as top, open_folder(top, folders) as folder:
        return read_file_at(folder, name, max_bytes)


def read_known(root: str, path: str, file: LocalFile) -> bytes | None:
    """The bytes of the file at ``path`` below ``root``, or ``None`` if they are no longer those of ``file``.

    The file is opened by its whole path, which saves most of the time of a read. If a folder becomes a link
    between the check and the opening, only bytes with the known digest are returned.
    """
    folder = path
    while folder := folder.rpartition("/")[0]:
        if os.path.islink(f"{root}/{folder}"):
            return None
    try:
        descriptor = os.open(f"{root}/{path}", _FILE)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size != file.size:
            return None
        data = os.read(descriptor, file.size + 1)
        while len(data) < file.size and (more := os.read(descriptor, file.size - len(data))):
            data += more
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return data if f"sha256:{sha256(data).hexdigest()}" == file.digest else None


def read_tree(root: str, limits: Limits) -> dict[str, bytes]:
    """All regular files below ``root`` by path, without links, ignored names and special files."""
    files: dict[str, bytes] = {}
    left = limits.max_skill_bytes

    def visit(folder: int, prefix: str, depth: int) -> None:
        nonlocal left
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_ignored(entry.name, is_folder=is_folder) or depth > limits.max_depth:
                    continue
                if is_folder:
                    with open_folder(folder, (entry.name,)) as below:
                        visit(below, f"{prefix}{entry.name}/", depth + 1)
                elif entry.is_file(follow_symlinks=False):
                    files[prefix + entry.name] = read_file_at(folder, entry.name, left)[1]
                    left -= len(files[prefix + entry.name])

    with open_root(root) as top:
        visit(top, "", 0)
    return files


def is_still(file: LocalFile, folder: int, name: str) -> bool:
    """Whether the file ``name`` still has the stamp of ``file``, so it need not be read again."""
    if file.stamp is None:
        return False
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return stat.S_ISREG(status.st_mode) and file.stamp == _stamp(status)


def stamped(root: str, place: str) -> Callable[[], bool] | None:
    """A function that tells whether the file at ``place`` below ``root``, and its parent folders, are unchanged.

    A folder that became a link counts as changed. ``None`` if the file does not exist, or was written just now, so
    that its times would not show another write.
    """
    file, folders = f"{root}/{place}", list[str]()
    while place := place.rpartition("/")[0]:
        folders.append(f"{root}/{place}")
    try:
        stamp, leading = _stamp(os.lstat(file)), [os.lstat(folder).st_ino for folder in folders]
    except OSError:
        return None

    def is_same() -> bool:
        try:
            return _stamp(os.lstat(file)) == stamp and [os.lstat(folder).st_ino for folder in folders] == leading
        except OSError:
            return False

    return is_same if is_settled(stamp) else None


def is_settled(stamp: Stamp, now: int | None = None) -> bool:
    """Whether the times of a file are old enough that another write would change them."""
    return max(stamp.modified_ns, stamp.changed_ns) < (now or time.time_ns()) - _SETTLED_NS


def _open_regular(folder: int, name: str, max_bytes: int) -> tuple[int, os.stat_result]:
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotRegularError(f"{name!r} is not a regular file")
        if status.st_size > max_bytes:
            raise _too_large(name, max_bytes)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


def _read(folder: int, name: str, max_bytes: int, take: Callable[[bytes], object]) -> LocalFile:
    """Read and hash a file, and give its bytes to ``take``."""
    opened = time.time_ns()
    descriptor, status = _open_regular(folder, name, max_bytes)
    hasher, size = sha256(), 0
    wanted = min(status.st_size + 1, _CHUNK)  # one byte more, so that a shorter answer is the end
    try:
        while chunk := os.read(descriptor, wanted):
            size += len(chunk)
            if size > max_bytes:
                raise _too_large(name, max_bytes)
            hasher.update(chunk)
            take(chunk)
            if size == status.st_size and len(chunk) < wanted:
                break
    finally:
        os.close(descriptor)
    stamp = _stamp(status)
    kept = stamp if is_settled(stamp, opened) else None
    executable = bool(status.st_mode & stat.S_IXUSR)
    return LocalFile(f"sha256:{hasher.hexdigest()}", size, status.st_mtime, kept, executable=executable)


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _too_large(name: str, max_bytes: int) -> LimitError:
    return LimitError("too-large", f"{name!r} is larger than {max_bytes} bytes", "move large files elsewhere")
