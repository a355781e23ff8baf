"""Whether a skill may be added: asked before anything is fetched, and again when it is written.

Nothing takes the place of what came from elsewhere (N1), or lies on some disks under the name of another (B5).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.errors import FormatError, OriginError
from skillwire.install.drift import layout_of
from skillwire.install.fetching import promised_digests
from skillwire.install.folder import check_free
from skillwire.install.lock import Installed, format_lock, parse_name
from skillwire.skill.entry import fold

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.install.installing import Signature
    from skillwire.install.lock import Lock, Mode, Server
    from skillwire.install.places import Place, Scope
    from skillwire.skill import SkillEntry


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
