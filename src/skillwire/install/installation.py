"""Fetching, adding, updating, removing, restoring and checking installed skills.

Nothing is printed and no user is asked here. Only content that the lock records byte for byte is overwritten;
``force`` overwrites other content after copying it.

- ``fetch`` reads and verifies every byte before the user is asked (V1, V2, V4). Exactly the shown bytes are
  written; nothing is read twice. A skill without digests cannot be pinned and is refused (V7). So is content that
  differs from the lock (V3).
- A skill never replaces one from another origin (N1), or one whose name is equal on some disks (B5).
- Before a verb changes anything, ``recover`` completes or undoes the changes of killed processes, according to the
  lock. It searches every folder that a verb may have written to: those of all known agents, of the lock, and of
  the command line. The lock alone is not enough, because it no longer has a skill that was just removed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.catalog.export import check_tree
from skillwire.catalog.verification import read_verified
from skillwire.errors import FormatError, NotFoundError, OriginError, SkillwireError, VerificationError
from skillwire.install.agents import AGENTS
from skillwire.install.lock import Installed, Lock, format_lock, held_lock, is_version_uri, parse_name
from skillwire.install.places import check_free, differences, installed_states, layout_of, refuse_collision, states
from skillwire.install.transaction import (
    back_up,
    forget_unrecorded,
    is_unrecorded,
    open_swap,
    recover_folder,
    unfinished,
)
from skillwire.skill.entry import digest_of
from skillwire.skill.review import Review, review_files
from skillwire.skill.version_status import UNVERSIONED, VersionStatus, version_status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from skillwire.catalog.contract import Catalog
    from skillwire.install.lock import Mode, Server
    from skillwire.install.places import InstallScope, Layout, Place, PlaceState
    from skillwire.install.transaction import Swap
    from skillwire.skill import SkillEntry

_SHOWN = 5  # differences in a message
_REPLACES = "nothing was overwritten; to replace it and keep a copy, add --force"
_REMOVES = "nothing was removed; to remove it and keep a copy, add --force"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A skill that was read and verified, with its review, and the commit if it is from a Git repository."""

    entry: SkillEntry
    files: Mapping[str, bytes]
    review: Review
    commit: str | None = None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return parse_name(self.entry.folder_name)

    @property
    def version(self) -> VersionStatus:
        """The number of its version and the URI of exactly this one, if a registry states them."""
        return recorded_version(self.entry)

    @property
    def digests(self) -> dict[str, str]:
        """The digest of every file."""
        return {path: digest_of(data) for path, data in self.files.items()}


async def fetch(catalog: Catalog, entry: SkillEntry, on_file: Callable[[int], None] | None = None) -> Fetched:
    """Read and verify every file of ``entry``, and search it for hidden text (B6).

    The review includes the requests of nested skills, because they are installed too (A3, A4).
    """
    files = await read_verified(catalog, entry, on_file=on_file)
    review = review_files(entry, files.items())
    fetched = Fetched(entry, files, review, catalog.commit)
    check_tree(fetched.name, files)  # before the user is asked about files that cannot be written
    return fetched


def recorded_version(entry: SkillEntry) -> VersionStatus:
    """Return what the lock records of the version of ``entry``. A URI of another skill is omitted."""
    stated = version_status(entry)
    if not stated.number:
        return UNVERSIONED
    is_own = is_version_uri(stated.uri, entry.path.rpartition("/")[2])
    return VersionStatus(stated.number, stated.uri if is_own else "")


def promised_digests(entry: SkillEntry) -> dict[str, str]:
    """V7: return the digests of ``entry`` by path, which must cover every file."""
    digests = {file.path or file.uri: file.digest for file in entry.files if file.digest is not None}
    if not entry.is_complete or len(digests) != len(entry.files):
        raise VerificationError(
            "skill-unverifiable",
            f"{entry.uri!r:.300} does not state the digests of all files, so it cannot be pinned",
            "ask the publisher to state the digests; a host can still load it, with an approval each time",
            rule="V7",
        )
    return digests


def check_pinned(skill: Installed, digests: Mapping[str, str], scope: InstallScope) -> None:
    """V3: refuse served content that differs from the lock."""
    if digests != skill.files:
        paths = sorted(path for path in {*digests, *skill.files} if digests.get(path) != skill.files.get(path))
        raise VerificationError(
            "lock-differs",
            f"{skill.uri!r:.300} differs from the lock: {', '.join(paths):.300}",
            f"see the changes: {scope.command('update', skill.name)}",
            rule="V3",
        )


@dataclass(frozen=True, slots=True)
class Signature:
    """Who installs, when, and with which tool."""

    by: str
    at: str
    tool: str


@dataclass(frozen=True, slots=True)
class Backups:
    """The folder for copies of edited files. Without ``force`` edited files are refused instead of replaced."""

    folder: Path
    at: str
    force: bool = False

    def keep(self, name: str, drifted: Iterable[PlaceState], forcing: str = _REPLACES) -> tuple[Path, ...]:
        """Copy edited files before they are replaced; without ``force`` refuse, with ``forcing`` as the hint."""
        drifted = list(drifted)
        if drifted and not self.force:
            raise _in_the_way(name, drifted[0], is_ours=True, forcing=forcing)
        return tuple(self.copy(state.place.folder, name) for state in drifted)

    def copy(self, folder: Path, name: str) -> Path:
        """Copy ``name`` in ``folder``, and return the path of the copy."""
        return back_up(folder, name, self.folder, self.at.replace(":", ""))


@dataclass(frozen=True, slots=True)
class InstallOutcome:
    """The changed folders, the copies of edited files, and the agents whose folders are unusable."""

    written: tuple[str, ...] = ()
    backups: tuple[Path, ...] = ()
    unreached: tuple[str, ...] = ()


def add(
    scope: InstallScope, fetched: Fetched, server: Server, agents: Mapping[str, Mode], who: Signature
) -> InstallOutcome:
    """Write the skill into the folders of ``agents`` and into the lock."""
    name, digests = fetched.name, fetched.digests
    with held_lock(scope.lock_path) as lock, open_swap() as swap:
        merged = _merged_agents(lock.now, scope, server, fetched.entry, agents)
        known = lock.now.skills.get(name)
        _check_same(known, digests, scope)
        layout = scope.layout(merged)
        ours = {place.folder for place in scope.layout({} if known is None else known.agents).places}
        for state in states(name, digests, layout):
            _check_ours(name, state, scope, is_ours=state.place.folder in ours)
        written = _stage(swap, layout, name, fetched.files)
        if known is None:
            signed = (who.by, who.at, who.tool)
            known = Installed(
                name, fetched.entry.uri, server, digests, merged, *signed, fetched.commit, fetched.version
            )
        swap.commit(lambda: lock.write(lock.now.having(replace(known, agents=merged))))
    for place in layout.places:
        forget_unrecorded(place.folder, name)
    return InstallOutcome(written)


def update(
    scope: InstallScope, planned: Installed, fetched: Fetched, who: Signature, backups: Backups
) -> InstallOutcome:
    """Replace the content of ``planned``, which is the entry of the lock when the user was asked."""
    name, digests = fetched.name, fetched.digests
    with held_lock(scope.lock_path) as lock, open_swap() as swap:
        known = require_skill(lock.now, name)
        if known != planned:
            raise _lock_changed()
        layout = layout_of(scope, known)
        drifted = [
            state
            for state in states(name, known.files, layout)
            if state.state == "changed" and differences(state.place.folder, name, digests)
        ]
        kept = backups.keep(name, drifted)
        written = _stage(swap, layout, name, fetched.files)
        signed = {"by": who.by, "at": who.at, "tool": who.tool}
        new = replace(known, files=digests, commit=fetched.commit, version=fetched.version, **signed)
        swap.commit(lambda: lock.write(lock.now.having(new)))
    return InstallOutcome(written, kept)


def record_place(scope: InstallScope, planned: Installed, commit: str | None, version: VersionStatus) -> None:
    """Record the newest commit or version with the content of ``planned``. An older one may disappear."""
    with held_lock(scope.lock_path) as lock:
        if lock.now.skills.get(planned.name) == planned:
            lock.write(lock.now.having(replace(planned, commit=commit, version=version)))


def remove(scope: InstallScope, name: str, agents: Collection[str], backups: Backups) -> InstallOutcome:
    """Remove a skill from the folders of ``agents``, or of all; and from the lock if none is left."""
    with held_lock(scope.lock_path) as lock, open_swap() as swap:
        known = require_skill(lock.now, name)
        unknown = sorted(set(agents) - known.agents.keys())
        if unknown:
            raise NotFoundError(
                "agent-unknown",
                f"{name!r:.100} is not installed for {', '.join(unknown):.200}",
                f"see the agents: {scope.command('list', '--installed')}",
            )
        left: dict[str, Mode] = {key: mode for key, mode in known.agents.items() if agents and key not in agents}
        usable: dict[str, Mode] = {key: mode for key, mode in known.agents.items() if scope.is_usable(key)}
        staying: dict[str, Mode] = {key: mode for key, mode in usable.items() if key in left}
        stay = {place.folder for place in scope.layout(staying).places}
        found = states(name, known.files, scope.layout(usable))
        leaving = [state for state in found if state.place.folder not in stay and state.state != "missing"]
        changed = [each for each in leaving if each.state == "changed"]
        kept = backups.keep(name, changed, _REMOVES)
        for state in leaving:
            swap.take(state.place.folder, name)
        new = lock.now.having(replace(known, agents=left)) if left else lock.now.without(name)
        swap.commit(lambda: lock.write(new))
    unreached = tuple(key for key in known.agents if key not in usable and key not in left)
    return InstallOutcome(tuple(state.place.label for state in leaving), kept, unreached)


def restore(
    scope: InstallScope, planned: Lock, ready: Mapping[str, Mapping[str, bytes]], backups: Backups
) -> InstallOutcome:
    """Make all folders match the lock, or change none. The lock is not written.

    ``ready`` has the files of each skill that is missing somewhere, by name.
    """
    written: list[str] = []
    kept: list[Path] = []
    with held_lock(scope.lock_path) as lock, open_swap() as swap:
        if lock.now != planned:
            raise _lock_changed()
        for name, files in ready.items():
            skill = planned.skills[name]
            layout = layout_of(scope, skill)
            found = [state for state in states(name, skill.files, layout) if state.state == "changed"]
            for place in layout.places:
                check_free(place.folder, name)
            kept += backups.keep(name, found)
            written += (f"{label}/{name}" for label in _stage(swap, layout, name, files))
        swap.commit(lambda: None)
    return InstallOutcome(tuple(written), tuple(kept))


def check_untouched(scope: InstallScope, lock: Lock) -> None:
    """Refuse edited files. Missing files are allowed, because they can be restored."""
    for skill in lock.skills.values():
        for state in installed_states(scope, skill):
            if state.state == "changed":
                raise _in_the_way(skill.name, state, is_ours=True)


def require_skill(lock: Lock, name: str) -> Installed:
    """Return the installed skill called ``name``."""
    if name not in lock.skills:
        raise NotFoundError(
            "skill-not-installed",
            f"{name!r:.100} is not in the lock",
            f"the installed skills are: {', '.join(sorted(lock.skills)) or 'none':.300}",
        )
    return lock.skills[name]


def _check_ours(name: str, state: PlaceState, scope: InstallScope, *, is_ours: bool) -> None:
    """N1: refuse files that we did not write, even equal ones, because removing the skill would delete them."""
    check_free(state.place.folder, name)
    is_foreign = state.state == "ok" and not is_ours and not is_unrecorded(state.place.folder, name)
    if state.state == "changed" or is_foreign:
        forcing = f"nothing was overwritten; to replace it: {scope.command('update', name, '--force')}"
        raise _in_the_way(name, state, is_ours=is_ours, forcing=forcing)


def _stage(swap: Swap, layout: Layout, name: str, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Prepare every folder that does not match yet, and return their labels."""
    digests = {path: digest_of(data) for path, data in files.items()}
    needing = [state.place for state in states(name, digests, layout) if state.state != "ok"]
    for place in needing:
        if place in layout.links:
            swap.link(place.folder, name, layout.link_to(name, place))
        else:
            swap.put(place.folder, name, files)
    return tuple(place.label for place in needing)


def _lock_changed() -> FormatError:
    return FormatError(
        "lock-changed", "the lock has changed in the meantime", "nothing was written; run the command again"
    )


def _in_the_way(
    name: str, state: PlaceState, *, is_ours: bool, forcing: str = _REPLACES
) -> OriginError | VerificationError:
    where, more = f"{state.place.label}/{name}", len(state.details) - _SHOWN
    if is_ours:
        how = ", ".join((*state.details[:_SHOWN], *([f"and {more} more"] if more > 0 else [])))
        return VerificationError(
            "skill-drifted", f"{where!r:.300} does not match the lock: {how}", forcing, rule="V1"
        )
    return OriginError(
        "skill-foreign",
        f"{where!r:.300} exists already, and skillwire did not write it",
        "nothing was overwritten; move or remove it yourself",
        rule="N1",
    )


def check_add(
    lock: Lock, scope: InstallScope, server: Server, entry: SkillEntry, agents: Mapping[str, Mode], who: Signature
) -> None:
    """Refuse a skill that cannot be added or recorded, before anything is fetched and the user is asked."""
    name, digests = parse_name(entry.folder_name), promised_digests(entry)
    merged, known = _merged_agents(lock, scope, server, entry, agents), lock.skills.get(name)
    _check_same(known, digests, scope)
    if known is not None:
        layout_of(scope, known)
    for place in scope.layout(merged).places:
        _check_apart(place, server, scope)
        check_free(place.folder, name)
    new = Installed(name, entry.uri, server, digests, merged, who.by, who.at, who.tool)
    format_lock(lock.having(new))


def _merged_agents(
    lock: Lock, scope: InstallScope, server: Server, entry: SkillEntry, agents: Mapping[str, Mode]
) -> dict[str, Mode]:
    """Return all agents of the skill, including ``agents``; refuse the name of a skill of another origin (N1)."""
    name = parse_name(entry.folder_name)
    refuse_collision(name, lock.skills, lambda other: f"remove that one first: {scope.command('remove', other)}")
    known = lock.skills.get(name)
    if known is None:
        return dict(agents)
    if (known.server.origin, known.uri) != (server.origin, entry.uri):
        raise OriginError(
            "origin-other",
            f"{name!r:.100} is installed from another origin: {known.uri!r:.200} of {str(known.server)!r:.200}",
            "nothing was overwritten; remove the installed skill first: " + scope.command("remove", name),
            rule="N1",
        )
    for agent in known.agents.keys() & agents.keys():
        if known.agents[agent] != agents[agent]:
            raise FormatError(
                "mode-other",
                f"{name!r:.100} is installed for {agent} as a {known.agents[agent]}",
                f"remove it first: {scope.command('remove', name)}",
            )
    return {**known.agents, **agents}


def _check_same(known: Installed | None, digests: Mapping[str, str], scope: InstallScope) -> None:
    """Refuse content that differs from the installed one: that is an update, which needs its own approval (A2)."""
    if known is not None and known.files != digests:
        raise FormatError(
            "skill-changed",
            f"{known.name!r:.100} is installed with different content",
            f"see the changes and update it: {scope.command('update', known.name)}",
        )


def _check_apart(place: Place, server: Server, scope: InstallScope) -> None:
    """Refuse to install into the source folder: removing the copy could remove the original."""
    if server.kind != "folder":
        return
    source = Path(os.path.realpath(scope.lock_path.parent / server.words[0]))
    if place.folder == source or source in place.folder.parents:
        raise FormatError(
            "folder-inside",
            f"{place.label!r:.200} is inside of {server.words[0]!r:.200}, the source of the skill",
            "nothing was written; choose another agent, or a TARGET that does not contain the folder of the agent",
        )


def recover(scope: InstallScope, agents: Iterable[str], backups: Backups) -> list[Path]:
    """Complete the changes of killed processes if the lock records them; otherwise undo them.

    Return the copies of undone changes in ``backups``.
    """
    kept: list[Path] = []
    if not scope.lock_path.parent.is_dir():  # nothing was ever written in this scope
        return kept
    with held_lock(scope.lock_path) as lock:
        named = {agent for skill in lock.now.skills.values() for agent in skill.agents}
        folders: set[Path] = set()
        for agent in {*AGENTS, *named, *agents}:
            with suppress(SkillwireError):  # an unusable folder was not written to
                folders.add(scope.place_of(agent).folder)
        with suppress(SkillwireError):
            folders.add(scope.shared.folder)
        for folder in folders:

            def keep(name: str, folder: Path = folder) -> None:
                kept.append(backups.copy(folder, name))

            recover_folder(folder, partial(_is_recorded, scope, lock.now, folder), keep)
        with suppress(OSError):
            for path in unfinished(scope.lock_path):
                path.unlink()
    return kept


def _is_recorded(scope: InstallScope, lock: Lock, folder: Path, name: str, path: Path) -> bool:
    """Return whether ``path`` matches the record of the lock for ``name`` in ``folder``."""
    skill = lock.skills.get(name)
    if skill is None:
        return False
    try:
        layout = scope.layout(skill.agents)
        if any(place.folder == folder for place in layout.copies):
            return not differences(path.parent, path.name, skill.files)
        links = [layout.link_to(name, place) for place in layout.links if place.folder == folder]
    except SkillwireError:  # a skill that cannot be placed or read does not match
        return False
    return bool(links) and path.is_symlink() and os.readlink(path) == links[0]
