"""Opening files so that nothing can lead out of a tree, and nothing changes between check and read.

Every step from the root down is opened relative to the folder before it, refusing symbolic links; what was
opened is then examined, never its name. A pipe does not block and a device is never read. POSIX only.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING

from skillwire.catalog.records import LocalFile, Stamp, is_ignored
from skillwire.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from skillwire.limits import Limits

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 20
# A file written again within one tick of the clock keeps its times. Younger than this, they prove nothing (the
# clocks of some disks tick every two seconds).
_SETTLED_NS = 3_000_000_000


class NotRegularError(OSError):
    """What was opened is not a regular file."""


@contextmanager
def open_root(root: str) -> Generator[int]:
    """The folder a catalog was given. The caller chose it, so this one may be reached through links."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_folder(parent: int, segments: Sequence[str]) -> Generator[int]:
    """A folder below ``parent``, reached without following a link."""
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
    """A file's bytes and what they are. Never more than ``max_bytes`` (B1)."""
    opened = time.time_ns()
    descriptor, status = _open_regular(folder, name, max_bytes)
    try:
        data = _read_all(descriptor, status.st_size, max_bytes)
    finally:
        os.close(descriptor)
    return _describe(status, len(data), sha256(data).hexdigest(), opened), data


def read_tree(root: str, limits: Limits) -> dict[str, bytes]:
    """All regular files below ``root`` as one skill's, by path; links, litter and special files left out."""
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
    """Whether the stamp of ``file`` still holds for what has its ``name``, so that nothing needs to be read."""
    if file.stamp is None:
        return False
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return stat.S_ISREG(status.st_mode) and file.stamp == _stamp(status)


def hash_file_at(folder: int, name: str, max_bytes: int) -> LocalFile:
    """What a file is, without keeping its bytes."""
    opened = time.time_ns()
    descriptor, status = _open_regular(folder, name, max_bytes)
    try:
        if status.st_size < _CHUNK:
            data = _read_all(descriptor, status.st_size, max_bytes)
            return _describe(status, len(data), sha256(data).hexdigest(), opened)
        hasher, size = sha256(), 0
        while chunk := os.read(descriptor, _CHUNK):
            size += len(chunk)
            if size > max_bytes:
                raise _too_large(name, max_bytes)
            hasher.update(chunk)
        return _describe(status, size, hasher.hexdigest(), opened)
    finally:
        os.close(descriptor)


def stamped(root: str, place: str) -> Callable[[], bool] | None:
    """Whether the file at ``place`` below ``root`` is still as it is now, and so are the folders that lead there.

    A folder that became a link is another one. ``None`` for a file that is not there, or that was written just
    now: its times would not tell if it were written again.
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
    """Whether a file has been as it is for so long that its times would tell if it were written again."""
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


def _read_all(descriptor: int, expected: int, max_bytes: int) -> bytes:
    data = os.read(descriptor, expected + 1)
    if len(data) == expected:  # the byte more that was asked for is not there: this is the end
        return data
    chunks, size = [data], len(data)
    while size <= max_bytes and (chunk := os.read(descriptor, _CHUNK)):
        chunks.append(chunk)
        size += len(chunk)
    if size > max_bytes:
        raise _too_large("a file", max_bytes)
    return b"".join(chunks)


def _describe(status: os.stat_result, size: int, hexdigest: str, opened: int) -> LocalFile:
    stamp = _stamp(status)
    kept = stamp if is_settled(stamp, opened) else None
    executable = bool(status.st_mode & stat.S_IXUSR)
    return LocalFile("sha256:" + hexdigest, size, status.st_mtime, kept, executable=executable)


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _too_large(name: str, max_bytes: int) -> LimitError:
    return LimitError("too-large", f"{name!r} is larger than {max_bytes} bytes", "move large files elsewhere")
