"""How installed skills lie in their folders, compared with what the lock says. Nothing is changed here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillwire.errors import SkillwireError
from skillwire.install.folder import compare, look, read_files
from skillwire.skill.digest import digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.install.lock import Installed
    from skillwire.install.places import Layout, Place, Scope


@dataclass(frozen=True, slots=True)
class PlaceState:
    """How a skill lies in one folder, compared with the lock."""

    place: Place
    state: Literal["ok", "missing", "changed"]
    details: tuple[str, ...] = ()


def layout_of(scope: Scope, skill: Installed) -> Layout:
    """Where an installed skill lies. A lock that says what cannot be is said to, with the skill's name."""
    try:
        return scope.layout(skill.agents)
    except SkillwireError as error:
        error.message = f"the lock's {skill.name!r:.100}: {error.message}"
        if error.reference != "folder-not-allowed":
            error.hint = f"correct it in the lock, or take the skill out: {scope.command(f'remove {skill.name}')}"
        raise


def installed_states(scope: Scope, skill: Installed) -> list[PlaceState]:
    """How an installed skill lies in each of its folders."""
    return states(skill.name, skill.files, layout_of(scope, skill))


def states(name: str, files: Mapping[str, str], layout: Layout) -> list[PlaceState]:
    """How ``name`` lies in each folder of ``layout``, compared with ``files``."""
    found = [_state(place, compare(look(place.folder, name, files), files)) for place in layout.copies]
    for place in layout.links:
        seen, wanted = look(place.folder, name), layout.link_to(name, place)
        is_right = seen.kind == "link" and seen.target == wanted
        words = () if is_right else compare(seen, {}) if seen.kind != "folder" else ("it is not a link",)
        found.append(_state(place, words))
    return found


def installed_files(scope: Scope, skill: Installed) -> dict[str, bytes] | None:
    """The skill's bytes from a folder where it lies as the lock says; ``None`` if there is none."""
    for place in layout_of(scope, skill).copies:
        if not compare(look(place.folder, skill.name, skill.files), skill.files):
            files = read_files(place.folder, skill.name, skill.files)
            if {path: digest_of(data) for path, data in files.items()} == dict(skill.files):
                return files
    return None


def _state(place: Place, differences: tuple[str, ...]) -> PlaceState:
    if not differences:
        return PlaceState(place, "ok")
    missing = differences == ("it is not there",)
    return PlaceState(place, "missing" if missing else "changed", differences)
