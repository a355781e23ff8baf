"""Maps the chosen agents to folders on this disk.

A project may be untrusted (Z2). Its lock and its links may lead only to folders of known agents inside the
project, or to folders that the user typed on this machine. A folder that is a link out of the project, or out of
the home, is refused. So are repositories, virtual environments and ``node_modules``, because their files are run
later.

With ``link`` there is one copy in the folder that agents share, and a relative link to it from each other folder.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from skillwire.catalog.export import check_folder
from skillwire.errors import FormatError, SkillwireError
from skillwire.install.agents import AGENTS, SHARED_EVERYWHERE, SHARED_PROJECT, find_agent, locate, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillwire.install.lock import Mode

LOCK_NAME = "skills.lock.json"
ScopeKind: TypeAlias = Literal["project", "global"]


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
                f"nothing was written; to allow it: skillwire ci --agent-dir {shlex.quote(folder)}",
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
