"""Adding, updating, removing, restoring and checking installed skills.

Over what was fetched, the lock and folders; nothing is printed and nobody is asked here. Nothing is overwritten
that the lock does not say we wrote, byte for byte, except by ``force``, which keeps a copy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillwire.errors import FormatError, NotFoundError, OriginError, VerificationError
from skillwire.install.checking import check_same, merged_agents
from skillwire.install.drift import installed_states, layout_of, states
from skillwire.install.folder import check_free, compare, look
from skillwire.install.lock import Installed, Lock
from skillwire.install.lockfile import held_lock
from skillwire.install.transaction import back_up, forget, swapping, was_put
from skillwire.skill.digest import digest_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from skillwire.install.drift import PlaceState
    from skillwire.install.fetching import Fetched
    from skillwire.install.lock import Mode, Server
    from skillwire.install.places import Layout, Scope
    from skillwire.install.transaction import Swap

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
    with held_lock(scope.lock_path) as lock, swapping() as swap:
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
    with held_lock(scope.lock_path) as lock, swapping() as swap:
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
    with held_lock(scope.lock_path) as lock, swapping() as swap:
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
    with held_lock(scope.lock_path) as lock, swapping() as swap:
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
    where, how = f"{state.place.label}/{name}", ", ".join(_few(state.details))
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


def _few(words: tuple[str, ...], shown: int = 5) -> Iterator[str]:
    yield from words[:shown]
    if len(words) > shown:
        yield f"and {len(words) - shown} more"
