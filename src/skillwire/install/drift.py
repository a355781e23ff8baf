"""How installed skills lie in their folders, compared with the lock. Nothing is changed here.

A folder is read without following links. Litter that reappears by itself (``.DS_Store``, ``__pycache__``) does not
count as a difference. Any other added file does, because removing the folder would delete it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from skillwire.catalog.safe_open import hash_file_at, open_folder, open_root, read_file_at
from skillwire.errors import FormatError, SkillwireError, StoreError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.digest import digest_of
from skillwire.skill.entry import fold

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from skillwire.install.lock import Installed
    from skillwire.install.places import InstallScope, Layout, Place

_LITTER = re.compile(r"\.DS_Store|Thumbs\.db|__pycache__|.*\.pyc")
_MAX_BYTES = DEFAULT_LIMITS.max_skill_bytes


@dataclass(frozen=True, slots=True)
class Seen:
    """What a path is: nothing, a folder with files and their digests, a link with its target, or something else.

    Unexpected files are not read and have no digest. Unexpected folders are only named.
    """

    kind: Literal["nothing", "folder", "link", "other"]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    target: str = ""


def look(folder: Path, name: str, expected: Collection[str] = ()) -> Seen:
    """Inspect ``name`` in ``folder``. ``expected`` files are read, even if they look like litter."""
    place = folder / name
    try:
        if place.is_symlink():
            return Seen("link", target=os.readlink(place))
        if not os.path.lexists(place):
            return Seen("nothing")
        if not place.is_dir():
            return Seen("other")
        with open_root(str(folder)) as top, open_folder(top, (name,)) as root:
            found = {
                path: hash_file_at(inner, base, _MAX_BYTES).digest if is_file and path in expected else "not read"
                for path, inner, base, is_file in _walk(root, expected)
            }
            return Seen("folder", found)
    except OSError as error:
        raise StoreError(
            "folder-unreadable", f"{name!r:.200} cannot be read: {error.strerror}", "check its permissions"
        ) from error


def compare(seen: Seen, files: Mapping[str, str]) -> tuple[str, ...]:
    """Describe the differences from ``files``; none if they match."""
    match seen.kind:
        case "nothing":
            return ("it is missing",)
        case "link":
            return (f"it is a link to {seen.target!r:.200}",)
        case "other":
            return ("it is not a folder",)
        case "folder":
            pass
    both = sorted(files.keys() & seen.files.keys())
    return (
        *(f"{path} was changed" for path in both if seen.files[path] != files[path]),
        *(f"{path} is missing" for path in sorted(files.keys() - seen.files.keys())),
        *(f"{path} was added" for path in sorted(seen.files.keys() - files.keys())),
    )


def check_free(folder: Path, name: str) -> None:
    """B5: refuse a name that some disks treat as equal to an existing one."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(
            "folder-unreadable",
            f"the folder for {name!r:.100} cannot be read: {error.strerror}",
            "check its permissions; nothing was written",
        ) from error
    for other in names:
        if other != name and fold(other) == fold(name):
            raise FormatError(
                "name-collision",
                f"{name!r:.100} and the existing {other!r:.100} are the same name on some disks",
                f"rename or remove {other!r:.100}",
                rule="B5",
            )


def _walk(root: int, expected: Collection[str]) -> Iterator[tuple[str, int, str, bool]]:
    """Yield everything below ``root``: path, descriptor of its folder, its name, whether it is a regular file."""
    folders = {str(above) for path in expected for above in PurePosixPath(path).parents}

    def visit(folder: int, prefix: str) -> Iterator[tuple[str, int, str, bool]]:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                path = prefix + entry.name
                if path not in expected and path not in folders and _LITTER.fullmatch(entry.name):
                    continue
                if path in folders and entry.is_dir(follow_symlinks=False):
                    with open_folder(folder, (entry.name,)) as below:
                        yield from visit(below, f"{path}/")
                else:
                    yield path, folder, entry.name, entry.is_file(follow_symlinks=False)

    return visit(root, "")


@dataclass(frozen=True, slots=True)
class PlaceState:
    """The state of a skill in one folder, compared with the lock."""

    place: Place
    state: Literal["ok", "missing", "changed"]
    details: tuple[str, ...] = ()


def layout_of(scope: InstallScope, skill: Installed) -> Layout:
    """Return the folders of an installed skill. Errors in the lock name the skill."""
    try:
        return scope.layout(skill.agents)
    except SkillwireError as error:
        error.message = f"the lock's {skill.name!r:.100}: {error.message}"
        if error.reference != "folder-not-allowed":
            error.hint = f"correct it in the lock, or remove the skill: {scope.command('remove', skill.name)}"
        raise


def installed_states(scope: InstallScope, skill: Installed) -> list[PlaceState]:
    """Return the state of an installed skill in each of its folders."""
    return states(skill.name, skill.files, layout_of(scope, skill))


def states(name: str, files: Mapping[str, str], layout: Layout) -> list[PlaceState]:
    """Return the state of ``name`` in each folder of ``layout``, compared with ``files``."""
    found = [_state(place, compare(look(place.folder, name, files), files)) for place in layout.copies]
    for place in layout.links:
        seen, wanted = look(place.folder, name), layout.link_to(name, place)
        is_right = seen.kind == "link" and seen.target == wanted
        words = () if is_right else compare(seen, {}) if seen.kind != "folder" else ("it is not a link",)
        found.append(_state(place, words))
    return found


def installed_files(scope: InstallScope, skill: Installed) -> dict[str, bytes] | None:
    """Read the skill from a folder that matches the lock; ``None`` if no folder does."""
    for place in layout_of(scope, skill).copies:
        if not compare(look(place.folder, skill.name, skill.files), skill.files):
            with open_root(str(place.folder)) as top, open_folder(top, (skill.name,)) as root:
                files = {
                    path: read_file_at(inner, base, _MAX_BYTES)[1]
                    for path, inner, base, is_file in _walk(root, skill.files)
                    if is_file and path in skill.files
                }
            # Hashed again: the files may have changed since the comparison.
            if {path: digest_of(data) for path, data in files.items()} == dict(skill.files):
                return files
    return None


def _state(place: Place, differences: tuple[str, ...]) -> PlaceState:
    if not differences:
        return PlaceState(place, "ok")
    missing = differences == ("it is missing",)
    return PlaceState(place, "missing" if missing else "changed", differences)
