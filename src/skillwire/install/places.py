"""The folders of installed skills: which they are for the chosen agents, and whether they match the lock.

A project may be untrusted (Z2). Its lock and its links may lead only to folders of known agents inside the
project, or to folders that the user typed on this machine. A folder that is a link out of the project, or out of
the home, is refused. So are repositories, virtual environments and ``node_modules``, because their files are run
later.

With ``link`` there is one copy in the folder that agents share, and a relative link to it from each other folder.

Folders are compared without following links, and nothing is changed here. Files that systems and interpreters
create (``.DS_Store``, ``__pycache__``) are no difference. Any other added file is one, because removing the folder
would delete it.
"""

from __future__ import annotations

import os
import re
import shlex
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, TypeAlias

from skillwire.catalog.export import check_folder
from skillwire.catalog.safe_open import hash_file_at, open_folder, open_root, read_file_at
from skillwire.errors import FormatError, SkillwireError, StoreError
from skillwire.install.agents import AGENTS, SHARED_EVERYWHERE, SHARED_PROJECT, find_agent, locate, shown
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.entry import digest_of
from skillwire.skill.uri import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping

    from skillwire.install.lock import Installed, Mode

LOCK_NAME = "skills.lock.json"
ScopeKind: TypeAlias = Literal["project", "global"]
_LITTER = re.compile(r"\.DS_Store|Thumbs\.db|__pycache__|.*\.pyc")
_MAX_BYTES = DEFAULT_LIMITS.max_skill_bytes
_MISSING = ("it is missing",)


@dataclass(frozen=True, slots=True)
class Place:
    """The real path of a folder that agents read, and its name for messages."""

    folder: Path
    label: str


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of one skill: those with its files, and those with a link to the copy in ``shared``."""

    copies: tuple[Place, ...]
    links: tuple[Place, ...] = ()
    shared: Place | None = None

    @property
    def places(self) -> tuple[Place, ...]:
        """All folders."""
        return (*self.copies, *self.links)

    def link_to(self, name: str, place: Place) -> str:
        """Return the target of the link in ``place`` to the copy of the skill ``name``."""
        assert self.shared is not None  # noqa: S101 - only a layout with links calls this
        return os.path.relpath(self.shared.folder / name, place.folder)


@dataclass(frozen=True, slots=True)
class InstallScope:
    """The current project, or the account of the user.

    ``is_typed`` returns whether the user typed a folder on this machine, by its real path.
    """

    kind: ScopeKind
    project: Path
    home: Path
    environment: Mapping[str, str]
    is_typed: Callable[[Path], bool] = field(default=lambda _: False, compare=False)

    @property
    def lock_path(self) -> Path:
        """The path of the lock."""
        if self.kind == "project":
            return self.project / LOCK_NAME
        return locate("~/.config/skillwire", self.home, self.environment).path / LOCK_NAME

    @property
    def shared(self) -> Place:
        """The folder that agents share."""
        if self.kind == "project":
            return self._in_project(SHARED_PROJECT)
        return self._everywhere(SHARED_EVERYWHERE)

    def command(self, *words: str) -> str:
        """Return the command with these words for this scope, for hints."""
        return shlex.join(["skillwire", *words, *(["--global"] if self.kind == "global" else [])])

    def place_of(self, agent: str) -> Place:
        """Return the folder of an agent, given by its id or by a path, which contains a slash."""
        if self.kind == "project":
            return self._in_project(agent if "/" in agent else find_agent(agent).project)
        return self._given(agent) if "/" in agent else self._everywhere(find_agent(agent).everywhere)

    def is_usable(self, agent: str) -> bool:
        """Return whether the agent is known and its folder may be written."""
        try:
            self.place_of(agent)
        except SkillwireError:
            return False
        return True

    def key_of(self, folder: str) -> str:
        """Return the form of a folder in the lock."""
        path = os.path.normpath(os.path.join(self.project, os.path.expanduser(folder)))
        if self.kind == "global":
            return path
        self._inside(Path(path), self.project, folder)
        return f"./{os.path.relpath(path, self.project)}"

    def layout(self, agents: Mapping[str, Mode]) -> Layout:
        """Return the folders of a skill for ``agents``. Agents with the same folder share its content."""
        modes: dict[Path, Mode] = {}
        places: dict[Path, Place] = {}
        shared = self.shared if "link" in agents.values() else None
        if shared is not None:
            places[shared.folder], modes[shared.folder] = shared, "copy"
        for agent, mode in agents.items():
            place = self.place_of(agent)
            is_shared = shared is not None and place.folder == shared.folder
            if modes.setdefault(place.folder, mode) != mode and not is_shared:
                raise FormatError(
                    "mode-other",
                    f"{place.label!r:.200} cannot have both a copy and a link of the same skill",
                    "choose --copy or --link for all agents that read this folder",
                )
            places.setdefault(place.folder, place)
        return Layout(
            tuple(places[folder] for folder in sorted(places) if modes[folder] == "copy"),
            tuple(places[folder] for folder in sorted(places) if modes[folder] == "link"),
            shared,
        )

    def _in_project(self, path: str) -> Place:
        """Z2: require the folder of a known agent, or one that the user typed."""
        place = self._inside(self.project / path, self.project, path)
        top = Path(os.path.realpath(self.project))
        if place.folder not in {top / agent.project for agent in AGENTS.values()} and not self.is_typed(
            place.folder
        ):
            folder = f"./{place.folder.relative_to(top)}"
            raise FormatError(
                "folder-not-allowed",
                f"{folder!r:.200} is not the folder of a known agent, and you have not named it on this machine",
                f"nothing was written; to allow it: skillwire add --locked --agent-dir {shlex.quote(folder)}",
                rule="Z2",
            )
        return place

    def _given(self, path: str) -> Place:
        if not os.path.isabs(path):
            raise FormatError("folder-invalid", f"{path!r:.200} is not an absolute path", "correct it in the lock")
        return _place(Path(os.path.realpath(path)), path)

    def _everywhere(self, place: str) -> Place:
        found = locate(place, self.home, self.environment)
        return self._inside(found.path, found.root, shown(found.path, self.home))

    def _inside(self, path: Path, root: Path, label: str) -> Place:
        real, top = Path(os.path.realpath(path)), Path(os.path.realpath(root))
        if top not in real.parents:
            where = "the project" if self.kind == "project" else "your home"
            if real == top:
                message, hint = f"{label!r:.200} is {where} itself", "choose another folder"
            else:
                message = f"{label!r:.200} leads out of {where}, to {str(real)!r:.200}"
                hint = f"to use that folder, add: --global --agent-dir {shlex.quote(str(real))}"
            raise FormatError("folder-elsewhere", message, f"nothing was written; {hint}")
        return _place(real, label)


def _place(folder: Path, label: str) -> Place:
    check_folder(folder, label)
    return Place(folder, label)


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
    copies = [(place, differences(place.folder, name, files)) for place in layout.copies]
    links = [(place, _link_differences(place.folder, name, layout.link_to(name, place))) for place in layout.links]
    return [
        PlaceState(place, "missing" if found == _MISSING else "changed" if found else "ok", found)
        for place, found in (*copies, *links)
    ]


def installed_files(scope: InstallScope, skill: Installed) -> dict[str, bytes] | None:
    """Read the skill from a folder that matches the lock; ``None`` if no folder does."""
    for place in layout_of(scope, skill).copies:
        if not differences(place.folder, skill.name, skill.files):
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


def differences(folder: Path, name: str, files: Mapping[str, str]) -> tuple[str, ...]:
    """Describe how ``name`` in ``folder`` differs from ``files``, which are digests by path; empty if it matches.

    Unexpected files are not read, and unexpected folders are only named.
    """
    place = folder / name
    with _reading(name):
        if place.is_symlink() or not place.is_dir():
            return _link_differences(folder, name, None)
        with open_root(str(folder)) as top, open_folder(top, (name,)) as root:
            seen = {
                path: hash_file_at(inner, base, _MAX_BYTES).digest if is_file and path in files else "not read"
                for path, inner, base, is_file in _walk(root, files)
            }
    return (
        *(f"{path} was changed" for path in sorted(files.keys() & seen.keys()) if seen[path] != files[path]),
        *(f"{path} is missing" for path in sorted(files.keys() - seen.keys())),
        *(f"{path} was added" for path in sorted(seen.keys() - files.keys())),
    )


def _link_differences(folder: Path, name: str, target: str | None) -> tuple[str, ...]:
    """Describe how ``name`` differs from a link to ``target``, or from a folder if ``target`` is ``None``."""
    place = folder / name
    with _reading(name):
        if place.is_symlink():
            found = os.readlink(place)
            return () if found == target else (f"it is a link to {found!r:.200}",)
        if not os.path.lexists(place):
            return _MISSING
        return ("it is not a link" if target is not None else "it is not a folder",)


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


def check_free(folder: Path, name: str) -> None:
    """B5: refuse a name that some disks treat as equal to an existing one."""
    with _reading(f"the folder for {name}"):
        names = os.listdir(folder) if folder.exists() else []
    refuse_collision(name, names, lambda other: f"rename or remove {other!r:.100}")


def refuse_collision(name: str, others: Iterable[str], hint: Callable[[str], str]) -> None:
    """B5: refuse a name that some disks treat as equal to one of ``others``; ``hint`` takes the other name."""
    for other in others:
        if other != name and fold(other) == fold(name):
            message = f"{name!r:.100} and the existing {other!r:.100} are the same name on some disks"
            raise FormatError("name-collision", message, hint(other), rule="B5")


@contextmanager
def _reading(what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            "folder-unreadable",
            f"{what!r:.200} cannot be read: {error.strerror}",
            "check its permissions; nothing was written",
        ) from error
