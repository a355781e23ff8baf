"""A change of files and folders that happens completely or not at all.

``replace_file`` replaces one file by a rename: readers see the old bytes or the new ones. ``Swap`` changes several
folders together. New content is written into a staging folder beside its destination and flushed. Only when all of
it is on disk do renames make it visible. If a rename or writing the lock fails, earlier renames are undone. A
process that is killed leaves a staging folder called ``.skillwire-…``, and the next process completes or undoes
its change (``recover_folder``). The lock is written last, so it shows whether the change was complete: then the
staging folder is removed, otherwise the old content is moved back. A staging folder can also come from a cloned
project, so content that is moved back must not be or contain a repository (Z3).

    folder/.skillwire-<random>-<name>/new     the new content
    folder/.skillwire-<random>-<name>/old     the old content while it is replaced
    folder/.skillwire-<random>-<name>/gone    the old content while it is removed
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from skillwire.catalog.export import check_tree, write_tree
from skillwire.errors import FormatError, StoreError
from skillwire.limits import MIB
from skillwire.skill.uri import SKILL_MD

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_STAGING = re.compile(r"\.skillwire-[0-9a-f]{12}-([^.].*)\Z")  # names of skills never begin with a dot


def read_file(path: Path, max_bytes: int, kind: str, label: str) -> bytes | None:
    """Return the bytes of a small file; ``None`` if there is none. ``kind`` begins the reference of an error."""
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        problem, hint = f"cannot be read: {error.strerror}", "check its permissions"
        raise StoreError(f"{kind}-unreadable", f"{label} {problem}", hint) from error
    if len(data) > max_bytes:
        problem = f"is larger than {max_bytes // MIB} MiB"
        raise StoreError(f"{kind}-unreadable", f"{label} {problem}", "check the file, or restore an older one")
    return data


def replace_file(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write ``data`` to ``path``. An existing file keeps its mode; a new one gets ``mode`` or the default."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with suppress(FileNotFoundError):
                mode = stat.S_IMODE(path.stat().st_mode)
            descriptor = os.open(beside, _NEW, 0o666 if mode is None else 0o600)
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if mode is not None:
                    os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            os.rename(beside, path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        raise StoreError(
            "write-failed",
            f"{path.name!r} could not be written: {error.strerror}",
            "check the permissions and the free space; nothing was changed",
        ) from error


def unfinished(path: Path) -> list[Path]:
    """Return the unfinished files of killed processes for ``path``. No process may be writing it now."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}\Z")
    return [each for each in path.parent.iterdir() if name.match(each.name) and each.is_file()]


@dataclass
class _Step:
    """One destination: its staged content, and the renames so far."""

    staging: Path
    destination: Path
    has_new: bool
    has_old: bool
    moved_old: bool = False
    moved_new: bool = False

    @property
    def aside(self) -> Path:
        return self.staging / ("old" if self.has_new else "gone")

    def do(self) -> None:
        if self.has_old:
            os.rename(self.destination, self.aside)
            self.moved_old = True
        elif os.path.lexists(self.destination):  # another program created it during the preparation
            raise FileExistsError(errno.EEXIST, "it was created in the meantime")
        if self.has_new:
            os.rename(self.staging / "new", self.destination)
            self.moved_new = True

    def undo(self) -> None:
        if self.moved_new:
            os.rename(self.destination, self.staging / "new")
        if self.moved_old:
            os.rename(self.aside, self.destination)


class Swap:
    """Changes that are made together. ``put``, ``link`` and ``take`` prepare them, and ``commit`` makes them."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._held: list[int] = []
        self._made: list[Path] = []

    def put(self, folder: Path, name: str, files: Mapping[str, bytes]) -> None:
        """Prepare ``files`` as the folder ``name``."""
        last = sorted(files, key=lambda path: path == SKILL_MD)  # without SKILL.md no agent reads a partial folder
        with _reported(name):
            new = self._stage(folder, name, has_new=True) / "new"
            write_tree(name, {path: files[path] for path in last}, new)

    def link(self, folder: Path, name: str, target: str) -> None:
        """Prepare a link called ``name`` to ``target``."""
        staging = self._stage(folder, name, has_new=True)
        try:
            os.symlink(target, staging / "new")
        except OSError as error:
            raise StoreError(
                "link-failed",
                f"the link to {name!r:.100} could not be made: {error.strerror}",
                "this disk may not support links; use --copy",
            ) from error

    def take(self, folder: Path, name: str) -> None:
        """Prepare the removal of ``name``."""
        self._stage(folder, name, has_new=False)

    def commit(self, finish: Callable[[], None]) -> None:
        """Make the changes, then call ``finish``. If anything fails, undo all changes."""
        done: list[_Step] = []
        try:
            for step in self._steps:
                done.append(step)
                with _reported(step.destination.name):
                    step.do()
            finish()
        except BaseException:
            for step in reversed(done):
                step.undo()
            raise
        self._made.clear()

    def close(self) -> None:
        """Remove staging folders, and new folders that stayed empty."""
        for step in self._steps:
            shutil.rmtree(step.staging, ignore_errors=True)
        for descriptor in self._held:
            os.close(descriptor)
        for folder in reversed(self._made):
            with suppress(OSError):  # it is not empty
                folder.rmdir()

    def _stage(self, folder: Path, name: str, *, has_new: bool) -> Path:
        with _reported(name):
            self._make(folder)
            staging = folder / f".skillwire-{secrets.token_hex(6)}-{name}"
            staging.mkdir(mode=0o700)
            self._steps.append(_Step(staging, folder / name, has_new, os.path.lexists(folder / name)))
            self._held.append(_hold(staging))
        return staging

    def _make(self, folder: Path) -> None:
        missing = [folder, *folder.parents]
        for each in reversed(missing[: next(i for i, path in enumerate(missing) if path.exists())]):
            each.mkdir(exist_ok=True)
            self._made.append(each)


@contextmanager
def open_swap() -> Generator[Swap]:
    """Open a swap. Its staging folders are removed at the end of the block."""
    swap = Swap()
    try:
        yield swap
    finally:
        swap.close()


def back_up(folder: Path, name: str, backups: Path, stamp: str) -> Path:
    """Copy ``name`` in ``folder`` for the user, before it is replaced or removed."""
    with _reported(name):
        backups.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = backups / f"{name}-{stamp}-{secrets.token_hex(3)}"
        source = folder / name
        if source.is_symlink() or not source.is_dir():
            shutil.copy2(source, place, follow_symlinks=False)
        else:
            shutil.copytree(source, place, symlinks=True)
    return place


def recover_folder(folder: Path, is_recorded: Callable[[str, Path], bool], keep: Callable[[str], None]) -> None:
    """Complete or undo the changes of killed processes in ``folder``.

    ``is_recorded`` tells whether a path matches the lock. Before new content is removed again, ``keep`` is called
    with its name, because the user may have edited it since.
    """
    for name, staging in _staging_folders(folder):
        with suppress(OSError):
            descriptor = _hold(staging)  # fails while its process is running
            try:
                _recover(staging, folder / name, partial(is_recorded, name), keep)
            finally:
                os.close(descriptor)


def is_unrecorded(folder: Path, name: str) -> bool:
    """Return whether a killed process of ours wrote ``name`` without recording it: its staging folder exists."""
    return any(name == other for other, _ in _staging_folders(folder))


def forget_unrecorded(folder: Path, name: str) -> None:
    """Remove the staging folder of ``name``, which was recorded now."""
    for other, staging in _staging_folders(folder):
        with suppress(OSError):
            if other == name:
                os.rmdir(staging)  # one with content belongs to an unfinished change


def _staging_folders(folder: Path) -> list[tuple[str, Path]]:
    """Return the staging folders in ``folder`` with their names."""
    try:
        found = sorted(folder.iterdir())
    except OSError:  # it is missing, or writing into it will report the problem
        return []
    matches = [(_STAGING.match(path.name), path) for path in found if not path.is_symlink()]
    return [(match[1], path) for match, path in matches if match is not None]


def _recover(
    staging: Path, destination: Path, is_recorded: Callable[[Path], bool], keep: Callable[[str], None]
) -> None:
    new, old, gone = staging / "new", staging / "old", staging / "gone"
    is_there, is_put = os.path.lexists(destination), not os.path.lexists(new)
    if os.path.lexists(old):
        if is_there and is_put and is_recorded(old) and not is_recorded(destination):
            keep(destination.name)
            os.rename(destination, new)
            is_there = False
        if not is_there:
            _move_back(old, destination)
    elif os.path.lexists(gone):
        if not is_there and is_recorded(gone):
            _move_back(gone, destination)
    elif is_there and is_put and not is_recorded(destination):
        return  # unrecorded, and perhaps edited: the staging folder shows that it is ours (``is_unrecorded``)
    shutil.rmtree(staging, ignore_errors=True)


def _move_back(content: Path, destination: Path) -> None:
    if not content.is_symlink():
        ends = [
            each
            for each in content.rglob("*")
            if each.is_symlink() or not each.is_dir() or not any(each.iterdir())
        ]
        try:
            check_tree(destination.name, [str(each.relative_to(content)) for each in ends])
        except FormatError as error:
            raise FormatError(
                error.reference,
                f"the unfinished change of {destination.name!r:.100} cannot be undone: {error.message}",
                f"nothing was changed; remove the folder {str(content.parent)!r}",
                rule=error.rule,
            ) from error
    os.rename(content, destination)


def _hold(folder: Path) -> int:
    """Lock a folder until the descriptor is closed or the process ends."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def _reported(name: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            "write-failed",
            f"{name!r:.100} could not be written or removed: {error.strerror or error}",
            "check the permissions of the folder and the free space; nothing was changed",
        ) from error
