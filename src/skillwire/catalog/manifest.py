"""The directories of a skill, as the files of its entry show them (D1, W3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.catalog.contract import DirectoryChild
from skillwire.skill.uri import format_uri, parse_uri

if TYPE_CHECKING:
    from skillwire.skill import SkillEntry, SkillUri


def children_in(entry: SkillEntry, place: SkillUri) -> dict[str, DirectoryChild]:
    """The direct children of the directory ``place``, by name."""
    children: dict[str, DirectoryChild] = {}
    depth = len(place.segments)
    for file in entry.files:
        parsed = parse_uri(file.uri)
        if parsed.scheme != place.scheme or parsed.segments[:depth] != place.segments:
            continue
        if len(parsed.segments) == depth + 1:
            name = parsed.segments[depth]
            children[name] = DirectoryChild(file.uri, name, is_directory=False, size=file.size)
        elif len(parsed.segments) > depth:
            name = parsed.segments[depth]
            folder = format_uri(f"{place.path}/{name}", place.scheme)
            children.setdefault(name, DirectoryChild(folder, name, is_directory=True))
    return children
