"""Converts skills that a server identifies by name to skills of the extension (P2, P4, M2).

Such a server has no URI, no ``SKILL.md`` and no frontmatter for a skill, and its files have URIs of any kind.

- The frontmatter is synthesized from the last segment of the name (U3) and the description in the listing. The
  ``SKILL.md`` is this frontmatter, followed by the server's instructions.
- A model that reads the instructions expects files next to the ``SKILL.md``, under the names that the server uses,
  so they get such URIs. If a name is not a valid path, or is taken, the last segment of the URI is used, and then
  the whole URI, so that no file is lost. Requests use the server's own URIs, for its own files only (O3).
- Servers of this package send the URI and the digest of the real ``SKILL.md`` in ``_meta``, and these are used.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from skillwire.client.bounds import as_object, as_size, as_text, as_uri
from skillwire.client.dialects.by_name import bounded, name_of
from skillwire.errors import FormatError
from skillwire.skill.coreyaml import quote_text
from skillwire.skill.entry import Partial, Resource, given_arguments, is_digest
from skillwire.skill.uri import SKILL_MD, fold, format_uri, parse_path, parse_uri
from skillwire.wire.meta import DIGEST, SIZE, URI

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillwire.client.skills import SkillsClient
    from skillwire.skill import SkillEntry, SkillUri

_MAX_SKILLS = 4096


def relabelled(entry: SkillEntry) -> SkillEntry:
    """Replace the frontmatter of a named skill with the synthesized one; return other skills unchanged.

    The real ``SKILL.md`` becomes one of its files if the server sent its digest.
    """
    if not _is_by_name(entry):
        return entry
    fields = {"name": entry.folder_name, "description": _text(entry.description)}
    files = [file for file in entry.files if file.uri != entry.uri]
    skill_md = _real_skill_md(entry) or entry.resource(entry.uri)  # an earlier call may have added it
    if skill_md is not None:
        files.insert(0, skill_md._replace(uri=entry.uri))
    return replace(entry, frontmatter=fields, resources=Partial(tuple(files), arguments=entry.arguments))


def skill_md_of(entry: SkillEntry, instructions: bytes) -> bytes:
    """The synthesized ``SKILL.md``. Instructions have no frontmatter (P2, M2)."""
    lines = (f"{key}: {quote_text(str(value))}" for key, value in relabelled(entry).frontmatter.items())
    return "\n".join(["---", *lines, "---", "", ""]).encode() + instructions


class Relocation:
    """The server's own URIs for the files of relocated skills."""

    def __init__(self) -> None:
        self._places: OrderedDict[str, dict[SkillUri, str]] = OrderedDict()  # by the skill's URI

    def moved(self, entry: SkillEntry) -> SkillEntry:
        """Rewrite the file URIs of a named skill to lie under the skill root."""
        if not _is_by_name(entry):
            return entry
        root = entry.root
        places: dict[SkillUri, str] = {}
        taken, files = {fold(SKILL_MD)}, list[Resource]()
        for file in entry.files:
            path = next(path for path in _paths(entry, file.uri) if fold(path) not in taken)
            taken.add(fold(path))
            uri = format_uri(f"{root.path}/{path}", root.scheme)
            places[parse_uri(uri)] = file.uri
            files.append(file._replace(uri=uri, path=path))
        skill_md = _real_skill_md(entry)
        if skill_md is not None:
            places[parse_uri(entry.uri)] = skill_md.uri
        self._places[entry.uri] = places
        self._places.move_to_end(entry.uri)
        while len(self._places) > _MAX_SKILLS:
            self._places.popitem(last=False)
        return replace(entry, resources=Partial(tuple(files), arguments=entry.arguments))

    async def read(self, client: SkillsClient, entry: SkillEntry, uri: str) -> bytes:
        """The bytes of a file of ``entry``, unverified."""
        place = parse_uri(uri)
        if place == parse_uri(entry.uri) and _is_by_name(entry) and entry.resource(uri) is None:
            return skill_md_of(entry, await _instructions(client, entry))
        if entry.is_named and entry.uri not in self._places:  # it is from an earlier run
            self.moved(await client.get_skill(entry.uri, given_arguments(entry)))
        theirs = self._places.get(entry.uri, {}).get(place, uri)
        return (await client.read_unverified(theirs, entry.uri)).data


async def _instructions(client: SkillsClient, entry: SkillEntry) -> bytes:
    """The server's instructions for the given arguments (P2)."""
    arguments = given_arguments(entry)
    if not arguments:
        return (await client.read_unverified(entry.uri)).data
    text = (await client.get_named(name_of(entry.uri), arguments)).instructions
    return bounded(text, entry.uri, client.limits.max_file_bytes)


def _is_by_name(entry: SkillEntry) -> bool:
    return entry.is_named and not entry.is_complete and not entry.is_dynamic


def _real_skill_md(entry: SkillEntry) -> Resource | None:
    """The real ``SKILL.md`` under the server's URI, if a server of this package sent its digest.

    None for a skill with arguments, whose instructions contain their values.
    """
    meta = as_object(entry.frontmatter.get("_meta"))
    uri, digest = as_text(meta.get(URI)), meta.get(DIGEST)
    if as_uri(uri) is None or not is_digest(digest) or entry.frontmatter.get("arguments"):
        return None
    return Resource(uri, digest, as_size(meta.get(SIZE)))


def _paths(entry: SkillEntry, uri: str) -> Iterator[str]:
    """Possible paths of a file in its skill, the best first; the last one is unique."""
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


def _text(text: str) -> str:
    """Replace unpaired surrogates, which JSON allows and UTF-8 does not."""
    return text.encode(errors="replace").decode()
