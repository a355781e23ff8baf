"""Skills that a server knows by name, as skills of the extension: for the host and the gateway alike (P2, P4, M2).

Such a server gives a skill no place, no ``SKILL.md`` and no frontmatter, and names its files by URIs of any kind.

- The frontmatter is synthesized: the last segment of the name (U3) and the description, as the server listed them,
  and nothing else. The ``SKILL.md`` is that frontmatter with the server's instructions below it.
- A model that reads the instructions looks for files beside the ``SKILL.md``, under the names that the server
  gives them, so that is where they are. A name that cannot be a path, or is taken, gives way to the end of the
  URI, and that to all of it: no file is lost. The server is asked by its own URIs, for its own files only (O3).
- Servers of this package say in ``_meta`` where the real ``SKILL.md`` is and what it hashes to. A host uses that.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from skillwire.client.dialects.named import bounded, given_arguments, name_of
from skillwire.client.shapes import as_object, as_size, as_text
from skillwire.errors import FormatError
from skillwire.skill.digest import is_digest
from skillwire.skill.entry import Partial, Resource, fold
from skillwire.skill.uri import SKILL_MD, format_uri, parse_path, parse_uri, skill_root
from skillwire.wire.meta import DIGEST, SIZE, URI

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillwire.client.skills import SkillsClient
    from skillwire.skill import SkillEntry, SkillUri

_MOST_SKILLS = 4096


def relabelled(entry: SkillEntry, *, verifiable: bool = False) -> SkillEntry:
    """A listed skill with the frontmatter that its synthesized ``SKILL.md`` has; others are returned unchanged.

    With ``verifiable``, the real ``SKILL.md`` is one of its files if the server promises its digest.
    """
    if not _is_by_name(entry):
        return entry
    fields = {"name": entry.path.rpartition("/")[2], "description": _text(entry.description)}
    promised = _promised(entry)[:1] if verifiable else ()
    others = tuple(file for file in entry.files if file.uri != entry.uri)
    own = tuple(file for file in entry.files if file.uri == entry.uri)  # it was relabelled before
    files = (*(promised or own), *others)
    return replace(entry, frontmatter=fields, resources=Partial(files, arguments=entry.arguments))


def skill_md_of(entry: SkillEntry, instructions: bytes) -> bytes:
    """The synthesized ``SKILL.md``: P2 and M2 say that instructions have no frontmatter."""
    lines = (f"{key}: {_quoted(str(value))}" for key, value in relabelled(entry).frontmatter.items())
    return "\n".join(["---", *lines, "---", "", ""]).encode() + instructions


class Relocation:
    """Where the files of the skills that were asked for really are on their server."""

    def __init__(self) -> None:
        self._places: OrderedDict[str, dict[SkillUri, str]] = OrderedDict()  # by the skill's URI

    def moved(self, entry: SkillEntry, *, verifiable: bool = False) -> SkillEntry:
        """``entry`` with its files inside the skill, and the frontmatter of ``relabelled``."""
        if not _is_by_name(entry):
            return entry
        root = skill_root(parse_uri(entry.uri))
        places: dict[SkillUri, str] = {}
        taken, files = {fold(SKILL_MD)}, list[Resource]()
        for file in entry.files:
            path = next(path for path in _paths(entry, file.uri) if fold(path) not in taken)
            taken.add(fold(path))
            uri = format_uri(f"{root.path}/{path}", root.scheme)
            places[parse_uri(uri)] = file.uri
            files.append(file._replace(uri=uri))
        for promised in _promised(entry)[1:]:
            places[parse_uri(entry.uri)] = promised.uri
        self._places[entry.uri] = places
        self._places.move_to_end(entry.uri)
        while len(self._places) > _MOST_SKILLS:
            self._places.popitem(last=False)
        inside = Partial(tuple(files), arguments=entry.arguments)
        return relabelled(replace(entry, resources=inside), verifiable=verifiable)

    async def read(self, client: SkillsClient, entry: SkillEntry, uri: str) -> bytes:
        """The bytes of a file of ``entry``, unverified."""
        place = parse_uri(uri)
        if place == parse_uri(entry.uri) and _is_by_name(entry) and entry.resource(uri) is None:
            return skill_md_of(entry, await _instructions(client, entry))
        if entry.is_named and entry.uri not in self._places:  # it was asked for in an earlier run
            self.moved(await client.get_skill(entry.uri, given_arguments(entry)))
        theirs = self._places.get(entry.uri, {}).get(place, uri)
        return (await client.read_unverified(theirs, entry.uri)).data


async def _instructions(client: SkillsClient, entry: SkillEntry) -> bytes:
    """What the server says for the arguments that were given (P2)."""
    arguments = given_arguments(entry)
    if not arguments:
        return (await client.read_unverified(entry.uri)).data
    text = (await client.get_named(name_of(entry.uri), arguments)).instructions
    return bounded(text, entry.uri, client.limits.max_file_bytes)


def _is_by_name(entry: SkillEntry) -> bool:
    return entry.is_named and not entry.is_complete and not entry.is_dynamic


def _promised(entry: SkillEntry) -> tuple[Resource, ...]:
    """What a server of this package promises about the real ``SKILL.md``: under our URI, and under its own.

    Not of a skill with arguments: its instructions have them filled in.
    """
    said = as_object(entry.frontmatter.get("_meta"))
    home, digest, size = as_text(said.get(URI)), said.get(DIGEST), as_size(said.get(SIZE))
    if not is_digest(digest) or entry.frontmatter.get("arguments"):
        return ()
    try:
        parse_uri(home)
    except FormatError:
        return ()
    return Resource(entry.uri, digest, size), Resource(home, digest, size)


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


def _text(words: str) -> str:
    """Text that has an encoding: JSON can carry halves of characters."""
    return words.encode(errors="replace").decode()


def _quoted(words: str) -> str:
    """A double-quoted YAML scalar: JSON, with all that YAML would not take as it stands escaped."""
    text = json.dumps(words, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in text)
