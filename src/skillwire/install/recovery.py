"""What killed processes left in agents' folders, settled by what the lock says, before a verb changes anything.

Every folder is looked into that a verb could have written to: those of the agents in the table, those that the
lock names, those that a person names now. What was just removed is in no lock any more, and left traces all the
same.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from skillwire.errors import SkillwireError
from skillwire.install.agents import AGENTS
from skillwire.install.folder import compare, look
from skillwire.install.lockfile import held_lock
from skillwire.install.transaction import back_up, tidy
from skillwire.install.writing import unfinished

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skillwire.install.lock import Installed, Lock
    from skillwire.install.places import Scope


def tidy_up(scope: Scope, agents: Iterable[str], *, backups: Path, stamp: str) -> list[Path]:
    """Make every folder of ``scope`` what it was before a process was killed there, or what that had recorded.

    Copies of what was taken back are in ``backups``; where, is returned.
    """
    kept: list[Path] = []
    if not scope.lock_path.parent.is_dir():  # nothing was ever written in this scope
        return kept
    with held_lock(scope.lock_path) as lock:
        named = {agent for skill in lock.now.skills.values() for agent in skill.agents}
        for folder in _folders(scope, {*AGENTS, *named, *agents}):

            def keep(name: str, folder: Path = folder) -> None:
                kept.append(back_up(folder, name, backups, stamp.replace(":", "")))

            tidy(folder, partial(_is_recorded, scope, lock.now, folder), keep)
        with suppress(OSError):
            for path in unfinished(scope.lock_path):
                path.unlink()
    return kept


def _is_recorded(scope: Scope, lock: Lock, folder: Path, name: str, path: Path) -> bool:
    """Whether what lies at ``path`` is what the lock says lies in ``folder`` under ``name``."""
    try:
        return name in lock.skills and _is_as_recorded(scope, lock.skills[name], folder, path)
    except SkillwireError:  # a skill that cannot be placed, or read, is not what the lock says
        return False


def _is_as_recorded(scope: Scope, skill: Installed, folder: Path, path: Path) -> bool:
    layout = scope.layout(skill.agents)
    if any(place.folder == folder for place in layout.copies):
        return not compare(look(path.parent, path.name, skill.files), skill.files)
    links = [layout.link_to(skill.name, place) for place in layout.links if place.folder == folder]
    return bool(links) and path.is_symlink() and os.readlink(path) == links[0]


def _folders(scope: Scope, agents: Iterable[str]) -> set[Path]:
    found: set[Path] = set()
    for agent in agents:
        with suppress(SkillwireError):  # one that cannot be used was not written to
            found.add(scope.place_of(agent).folder)
    with suppress(SkillwireError):
        found.add(scope.shared.folder)
    return found
