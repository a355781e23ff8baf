"""Writes a verified skill as a folder on disk, completely or not at all.

The files are written into a temporary folder next to the destination, which one rename then replaces. Names that
collide on some file system are refused (B5). A tree that is or contains a repository is refused too (Z3), because
Git runs programs that the configuration of a repository names. Files get plain modes: a server cannot make a file
executable.
"""

from __future__ import annotations

import os
import tempfile
import unicodedata
from collections import defaultdict
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from anyio import to_thread

from skillwire.catalog.verification import read_verified
from skillwire.errors import FormatError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.entry import collisions
from skillwire.skill.uri import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import SkillEntry

# git~1 is .git on old Windows file systems; .fslckout and _fossil_ are files.
_VERSION_CONTROL = frozenset({".git", "git~1", ".hg", ".svn", ".bzr", ".jj", ".sl", ".fslckout", "_fossil_"})
_RUN_LATER = frozenset({".venv", "venv", "site-packages", "dist-packages", "node_modules", ".husky", ".githooks"})
# Git treats a folder with these names as a repository. With "commondir" the other two may be elsewhere.
_BARE_REPOSITORIES = ({"head", "objects", "refs"}, {"head", "commondir"})


def check_folder(folder: Path, label: str) -> None:
    """Refuse a folder whose content other tools run (Z2). ``folder`` is the real path of what the user typed."""
    for each in (folder, *folder.parents):
        is_environment = each.name.lower() in _RUN_LATER or (each / "pyvenv.cfg").exists()
        is_bare = all((each / name).exists() for name in ("HEAD", "objects", "refs"))
        if is_environment or is_bare or is_version_control(each.name):
            kind = "a virtual environment or a folder of packages or hooks" if is_environment else "a repository"
            raise FormatError(
                "folder-forbidden",
                f"{label!r:.200} is part of {kind}: {str(each)!r:.200}",
                "nothing was written; choose another folder",
                rule="Z2",
            )


def check_destination(destination: Path, *, replace: bool) -> None:
    """Refuse an existing destination, and folders whose content tools run (Z2). Call it before fetching."""
    check_folder(Path(os.path.realpath(destination.parent), destination.name), str(destination))
    if os.path.lexists(destination) and not replace:
        raise FormatError(
            "destination-exists",
            f"{destination.name!r} already exists",
            "use --force to replace it, or another folder",
        )


class Exported(NamedTuple):
    """A skill that was written: its folder, the paths of its files, and their size in bytes."""

    folder: Path
    files: tuple[str, ...]
    size: int


async def export_skill(
    catalog: Catalog,
    entry: SkillEntry,
    folder: Path,
    *,
    replace: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    on_file: Callable[[int], None] | None = None,
) -> Exported:
    """Read every file of a skill, verified, and write them as a folder with its name in ``folder``."""
    destination = folder / entry.folder_name
    check_destination(destination, replace=replace)
    files = await read_verified(catalog, entry, limits=limits, on_file=on_file)
    await to_thread.run_sync(partial(write_skill, files, destination, replace=replace))
    return Exported(destination, tuple(sorted(files)), sum(map(len, files.values())))


def write_skill(files: Mapping[str, bytes], destination: Path, *, replace: bool = False) -> None:
    """Write ``files`` as the folder ``destination``, completely or not at all."""
    check_tree(destination.name, files)
    check_destination(destination, replace=replace)
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".skillwire-", dir=destination.parent) as place:
            new = Path(place) / "new"
            write_tree(destination.name, files, new)
            replace_folder(destination, new)
    except OSError as error:
        raise UpstreamError(
            "write-failed",
            f"{destination.name!r} could not be written: {error.strerror}",
            "no files were left behind",
        ) from error


def replace_folder(destination: Path, new: Path) -> None:
    """Put ``new``, in a temporary folder on the same disk, in the place of ``destination``, if that exists."""
    if os.path.lexists(destination):
        os.rename(destination, new.parent / "old")  # removed with the temporary folder
    os.rename(new, destination)


def write_tree(name: str, files: Mapping[str, bytes], root: Path) -> None:
    """Write ``files`` below ``root``, a new folder that will be named ``name``, and flush each to disk."""
    check_tree(name, files)
    for path, data in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:  # x: two names that are equal on this file system raise an error
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def check_tree(name: str, paths: Collection[str]) -> None:
    """Refuse a folder ``name`` with these files if two of them collide (B5) or it contains a repository (Z3)."""
    folders = {str(above) for path in paths for above in PurePosixPath(path).parents}
    for first, second in collisions((*paths, *sorted(folders))):
        raise FormatError(
            "path-collision",
            f"{first!r:.200} and {second!r:.200} are the same name on some file systems",
            "nothing was written; the author of the skill must rename one of them",
            rule="B5",
        )
    children: dict[str, set[str]] = defaultdict(set)
    for path in (f"{name}/{path}" for path in paths):
        above = ""
        for segment in path.split("/"):
            if is_version_control(segment):
                raise _repository(path)
            children[above].add(_on_any_disk(segment))
            above += f"/{segment}"
    for folder, names in children.items():
        if any(names >= bare for bare in _BARE_REPOSITORIES):
            raise _repository(folder.removeprefix("/"))


def is_version_control(segment: str) -> bool:
    """Whether a file or folder of this name belongs to version control on some file system."""
    return _on_any_disk(segment) in _VERSION_CONTROL


def _on_any_disk(segment: str) -> str:
    """A name as the most lenient file systems compare it.

    macOS ignores invisible characters. Windows ignores trailing spaces and dots, and text after a colon.
    """
    shown = "".join(each for each in segment if unicodedata.category(each) != "Cf")
    return fold(unicodedata.normalize("NFKC", shown)).partition(":")[0].rstrip(" .")


def _repository(path: str) -> FormatError:
    return FormatError(
        "file-forbidden",
        f"{path!r:.200} is part of a version control repository, whose configuration can run programs",
        "nothing was written; the author of the skill must remove the repository from the skill",
        rule="Z3",
    )
