"""Adding, updating, removing, restoring and checking installed skills.

Works on fetched skills, the lock and folders. Nothing is printed and no user is asked here. Only content that the
lock records byte for byte is overwritten; ``force`` overwrites other content after copying it.

- A skill never replaces one from another origin (N1), or one whose name is equal on some disks (B5).
- Before a verb changes anything, ``tidy_up`` settles what killed processes left, according to the lock. It looks
  into every folder that a verb could have written to: those of all known agents, of the lock, and of the command
  line, because a skill that was just removed is in no lock any more.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.errors import FormatError, NotFoundError, OriginError, SkillwireError, VerificationError
from skillwire.install.agents import AGENTS
from skillwire.install.drift import check_free, compare, installed_states, layout_of, look, states
from skillwire.install.fetch import promised_digests
from skillwire.install.lock import Installed, Lock, format_lock, parse_name
from skillwire.install.lock_file import held_lock
from skillwire.install.transaction import back_up, forget, open_swap, tidy, unfinished, was_put
from skillwire.skill.digest import digest_of
from skillwire.skill.entry import fold

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from skillwire.install.drift import PlaceState
    from skillwire.install.fetch import Fetched
    from skillwire.install.lock import Lock, Mode, Server
    from skillwire.install.places import Layout, Place, Scope
    from skillwire.install.transaction import Swap
    from skillwire.skill import SkillEntry


_REPLACES = "nothing was overwritten; --force replaces it and keeps a copy"
_REMOVES = "nothing was removed; --force removes it all the same and keeps a copy"


@dataclass(frozen=True, slots=True)
class Signature:
    """Who adds or updates, when, and with what."""

    by: str
    at: str
    tool: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done: folders that were written or emptied, copies of what somebody had changed there, and agents
    whose folders could not be looked into.
    """

    written: tuple[str, ...] = ()
    backups: tuple[Path, ...] = ()
    unreached: tuple[str, ...] = ()


def add(scope: Scope, fetched: Fetched, server: Server, agents: Mapping[str, Mode], who: Signature) -> Outcome:
    """Put the skill into the folders of ``agents``, and into the lock."""
    name, digests = fetched.name, fetched.digests
    with held_lock(scope.lock_path) as lock, open_swap() as swap:
        merged = merged_agents(lock.now, scope, server, fetched.entry, agents)
        known = lock.now.skills.get(name)
        check_same(known, digests, scope)
        layout = scope.layout(merged)
        ours = {place.folder for place in scope.layout({} if known is None else known.agents).places}
        for state in states(name, digests, layout):
            _check_ours(name, state, scope, is_ours=state.place.folder in ours)
        written = _stage(swap, layout, name, fetched.files)
        if known is None:
            known = Installed(name, fetched.entry.uri, server, digests, merged, who.by, who.at, who.tool)
        swap.commit(lambda: lock.write(lock.now.having(replace(known, agents=merged))))
    for place in layout.places:
        forget(place.folder, name)
    return Outcome(written)


def update(
    scope: Scope, planned: Installed, fetched: Fetched, who: Signature, *, force: bool, backups: Path
) -> Outcome:
    """Put another content in the place of ``planned``, which is what the lock said when a person was asked."""
    name, digests = fetched.name, fetched.digests
    with held_lock(scope.lock_path) as lock, open_swap() as swap:
        known = demand_skill(lock.now, name)
        if known != planned:
            raise _lock_changed()
        layout = layout_of(scope, known)
        drifted = [
            state
            for state in states(name, known.files, layout)
            if state.state == "changed" and compare(look(state.place.folder, name, digests), digests)
        ]
        kept = _keep(name, drifted, force=force, backups=backups, stamp=who.at)
        written = _stage(swap, layout, name, fetched.files)
        new = replace(known, files=digests, by=who.by, at=who.at, tool=who.tool)
        swap.commit(lambda: lock.write(lock.now.having(new)))
    return Outcome(written, kept)


def remove(scope: Scope, name: str, agents: Collection[str], *, force: bool, backups: Path, stamp: str) -> Outcome:
    """Take a skill out of the folders of ``agents``, or of all of them; and out of the lock if none is left."""
    with held_lock(scope.lock_path) as lock, open_swap() as swap:
        known = demand_skill(lock.now, name)
        unknown = sorted(set(agents) - known.agents.keys())
        if unknown:
            raise NotFoundError(
                "agent-unknown",
                f"{name!r:.100} is not installed for {', '.join(unknown):.200}",
                scope.command("list --installed"),
            )
        left: dict[str, Mode] = {key: mode for key, mode in known.agents.items() if agents and key not in agents}
        usable: dict[str, Mode] = {key: mode for key, mode in known.agents.items() if scope.is_usable(key)}
        staying: dict[str, Mode] = {key: mode for key, mode in usable.items() if key in left}
        stay = {place.folder for place in scope.layout(staying).places}
        found = states(name, known.files, scope.layout(usable))
        leaving = [state for state in found if state.place.folder not in stay and state.state != "missing"]
        changed = [each for each in leaving if each.state == "changed"]
        kept = _keep(name, changed, force=force, backups=backups, stamp=stamp, forcing=_REMOVES)
        for state in leaving:
            swap.take(state.place.folder, name)
        new = lock.now.having(replace(known, agents=left)) if left else lock.now.without(name)
        swap.commit(lambda: lock.write(new))
    unreached = tuple(key for key in known.agents if key not in usable and key not in left)
    return Outcome(tuple(state.place.label for state in leaving), kept, unreached)


def restore(
    scope: Scope,
    planned: Lock,
    ready: Mapping[str, Mapping[str, bytes]],
    *,
    force: bool,
    backups: Path,
    stamp: str,
) -> Outcome:
    """Make the folders what the lock says, all of them or none; the lock is not written.

    ``ready`` has the files of each skill that is not everywhere yet, by name.
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
            kept += _keep(name, found, force=force, backups=backups, stamp=stamp)
            written += (f"{label}/{name}" for label in _stage(swap, layout, name, files))
        swap.commit(lambda: None)
    return Outcome(tuple(written), tuple(kept))


def check_untouched(scope: Scope, lock: Lock) -> None:
    """``VerificationError`` if something installed was changed by hand: what is only missing can be put back."""
    for skill in lock.skills.values():
        for state in installed_states(scope, skill):
            if state.state == "changed":
                raise _in_the_way(skill.name, state, is_ours=True)


def demand_skill(lock: Lock, name: str) -> Installed:
    """The installed skill called ``name``."""
    if name not in lock.skills:
        raise NotFoundError(
            "skill-not-installed",
            f"{name!r:.100} is not in the lock",
            f"it has: {', '.join(sorted(lock.skills)) or 'nothing':.300}",
        )
    return lock.skills[name]


def _check_ours(name: str, state: PlaceState, scope: Scope, *, is_ours: bool) -> None:
    """N1: what somebody else put there stays theirs, even the very same: to remove a skill would take it away."""
    check_free(state.place.folder, name)
    is_foreign = state.state == "ok" and not is_ours and not was_put(state.place.folder, name)
    if state.state == "changed" or is_foreign:
        forcing = f"nothing was overwritten; to replace it: {scope.command(f'update {name} --force')}"
        raise _in_the_way(name, state, is_ours=is_ours, forcing=forcing)


def _stage(swap: Swap, layout: Layout, name: str, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Prepare every folder that does not have exactly this yet; which those are."""
    digests = {path: digest_of(data) for path, data in files.items()}
    needing = [state.place for state in states(name, digests, layout) if state.state != "ok"]
    for place in needing:
        if place in layout.links:
            swap.link(place.folder, name, layout.link_to(name, place))
        else:
            swap.put(place.folder, name, files)
    return tuple(place.label for place in needing)


def _keep(
    name: str,
    drifted: Iterable[PlaceState],
    *,
    force: bool,
    backups: Path,
    stamp: str,
    forcing: str = _REPLACES,
) -> tuple[Path, ...]:
    """Copies of what somebody changed, if it may go at all; ``forcing`` says what that would do."""
    drifted = list(drifted)
    if drifted and not force:
        raise _in_the_way(name, drifted[0], is_ours=True, forcing=forcing)
    return tuple(back_up(state.place.folder, name, backups, stamp.replace(":", "")) for state in drifted)


def _lock_changed() -> FormatError:
    return FormatError("lock-changed", "the lock was changed meanwhile", "nothing was written; run it again")


def _in_the_way(
    name: str, state: PlaceState, *, is_ours: bool, forcing: str = _REPLACES
) -> OriginError | VerificationError:
    where, how = f"{state.place.label}/{name}", ", ".join(_first(state.details))
    if is_ours:
        return VerificationError(
            "skill-drifted",
            f"{where!r:.300} is not what the lock says: {how}",
            forcing,
            rule="V1",
        )
    return OriginError(
        "skill-foreign",
        f"{where!r:.300} is there already, and skillwire did not put it there",
        "nothing was overwritten; move or remove it yourself",
        rule="N1",
    )


def _first(words: tuple[str, ...], shown: int = 5) -> Iterator[str]:
    yield from words[:shown]
    if len(words) > shown:
        yield f"and {len(words) - shown} more"


def check_add(
    lock: Lock, scope: Scope, server: Server, entry: SkillEntry, agents: Mapping[str, Mode], who: Signature
) -> None:
    """Refuse what could not be added or recorded anyway, before anything is fetched and anybody is asked."""
    name, digests = parse_name(entry.path.rpartition("/")[2]), promised_digests(entry)
    merged, known = merged_agents(lock, scope, server, entry, agents), lock.skills.get(name)
    check_same(known, digests, scope)
    if known is not None:
        layout_of(scope, known)
    for place in scope.layout(merged).places:
        _check_apart(place, server, scope)
        check_free(place.folder, name)
    new = Installed(name, entry.uri, server, digests, merged, who.by, who.at, who.tool)
    format_lock(lock.having(new))


def merged_agents(
    lock: Lock, scope: Scope, server: Server, entry: SkillEntry, agents: Mapping[str, Mode]
) -> dict[str, Mode]:
    """All agents that the skill is for, with ``agents``; refuses a name that another origin's skill has (N1)."""
    name = parse_name(entry.path.rpartition("/")[2])
    for other in lock.skills:
        if other != name and fold(other) == fold(name):
            raise FormatError(
                "name-collision",
                f"{name!r:.100} and the installed {other!r:.100} are one name on some disks",
                f"remove that one first: {scope.command(f'remove {other}')}",
                rule="B5",
            )
    known = lock.skills.get(name)
    if known is None:
        return dict(agents)
    if (known.server.origin, known.uri) != (server.origin, entry.uri):
        raise OriginError(
            "origin-other",
            f"{name!r:.100} is installed from elsewhere: {known.uri!r:.200} of {str(known.server)!r:.200}",
            "nothing was overwritten; to have this one, remove that one first: " + scope.command(f"remove {name}"),
            rule="N1",
        )
    for agent in known.agents.keys() & agents.keys():
        if known.agents[agent] != agents[agent]:
            raise FormatError(
                "mode-other",
                f"{name!r:.100} is there for {agent} as a {known.agents[agent]}",
                f"remove it first: {scope.command(f'remove {name}')}",
            )
    return {**known.agents, **agents}


def check_same(known: Installed | None, digests: Mapping[str, str], scope: Scope) -> None:
    """Refuse another content than the installed one: that is an update, with a question of its own (A2)."""
    if known is not None and known.files != digests:
        raise FormatError(
            "skill-changed",
            f"{known.name!r:.100} is installed with another content",
            f"look at what changed: {scope.command(f'update {known.name}')}",
        )


def _check_apart(place: Place, server: Server, scope: Scope) -> None:
    """A copy beside the original would be another original, and to remove the one could remove the other."""
    if server.kind != "folder":
        return
    source = Path(os.path.realpath(scope.lock_path.parent / server.words[0]))
    if place.folder == source or source in place.folder.parents:
        raise FormatError(
            "folder-inside",
            f"{place.label!r:.200} is part of {server.words[0]!r:.200}, where the skill comes from",
            "nothing was written; choose another agent, or a TARGET that does not have the agent's folder in it",
        )


def tidy_up(scope: Scope, agents: Iterable[str], *, backups: Path, stamp: str) -> list[Path]:
    """Make every folder of ``scope`` what it was before a process was killed there, or what that had recorded.

    Copies of what was taken back are in ``backups``; where, is returned.
    """
    kept: list[Path] = []
    if not scope.lock_path.parent.is_dir():  # nothing was ever written in this scope
        return kept
    with held_lock(scope.lock_path) as lock:
        named = {agent for skill in lock.now.skills.values() for agent in skill.agents}
        for folder in _agent_folders(scope, {*AGENTS, *named, *agents}):

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


def _agent_folders(scope: Scope, agents: Iterable[str]) -> set[Path]:
    found: set[Path] = set()
    for agent in agents:
        with suppress(SkillwireError):  # one that cannot be used was not written to
            found.add(scope.place_of(agent).folder)
    with suppress(SkillwireError):
        found.add(scope.shared.folder)
    return found
