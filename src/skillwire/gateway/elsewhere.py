"""Files of skills that an upstream knows by name: they may be anywhere on it, and are served inside the skill.

A server of ``sep-2076`` gives a skill no place, and names its files by URIs of any kind (P2, P4). A model that
reads the instructions looks for them beside the ``SKILL.md``, under the names that the server gives them: so that
is where the gateway has them. A name that cannot be a path, or is taken, gives way to the end of the URI, and that
to all of it: no file is lost. The upstream is asked by its own URIs, and only for its own files (O3).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from skillwire.errors import FormatError
from skillwire.skill.entry import Partial, fold
from skillwire.skill.uri import SKILL_MD, format_uri, parse_path, parse_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillwire.skill import Resource, SkillEntry, SkillUri

_MOST_SKILLS = 4096


class Elsewhere:
    """Where the files of the skills that were asked for really are."""

    def __init__(self) -> None:
        self._places: OrderedDict[str, dict[SkillUri, str]] = OrderedDict()  # by the skill's URI

    def brought_home(self, entry: SkillEntry) -> SkillEntry:
        """``entry`` with its files inside the skill; as it is, unless its upstream knows it by name."""
        if not entry.is_named:
            return entry
        root = skill_root(parse_uri(entry.uri))
        places: dict[SkillUri, str] = {}
        taken, files = {fold(SKILL_MD)}, list["Resource"]()
        for file in entry.files:
            path = next(path for path in _paths(entry, file.uri) if fold(path) not in taken)
            taken.add(fold(path))
            uri = format_uri(f"{root.path}/{path}", root.scheme)
            places[parse_uri(uri)] = file.uri
            files.append(file._replace(uri=uri))
        self._places[entry.uri] = places
        self._places.move_to_end(entry.uri)
        while len(self._places) > _MOST_SKILLS:
            self._places.popitem(last=False)
        return replace(entry, resources=Partial(tuple(files)))

    def theirs(self, entry: SkillEntry, uri: str) -> str:
        """The upstream's own URI for a file of ``entry``."""
        return self._places.get(entry.uri, {}).get(parse_uri(uri), uri)


def _paths(entry: SkillEntry, uri: str) -> Iterator[str]:
    """Where in its skill a file may be, the best first; the last is nobody else's."""
    name = entry.resources.names.get(uri, "") if isinstance(entry.resources, Partial) else ""
    place = parse_uri(uri)
    for path in (name, place.segments[-1]):
        if _is_path(path):
            yield path
    yield "/".join((f"{place.scheme}:", *place.segments))


def _is_path(text: str) -> bool:
    try:
        parse_path(text)
    except FormatError:
        return False
    return True
