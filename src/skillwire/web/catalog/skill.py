"""What the page of one skill shows, and where the links in its texts go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from anyio import to_thread

from skillwire.amounts import counted, size_of
from skillwire.errors import FormatError, NotFoundError, SkillwireError
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.uri import format_uri, is_within, parse_path, parse_uri, resolve_reference, skill_md_uri
from skillwire.web.headers import image_type
from skillwire.web.text import markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import Json, SkillEntry
    from skillwire.skill.uri import SkillUri

MOST_FILES = 200
_MOST_WALKED = 512
_HINT = "it may have been moved or renamed; search for it"
_WEB = ("http://", "https://", "mailto:")


class File(NamedTuple):
    """One file of a skill: where it is in the catalog and in the skill, and what is promised of it."""

    path: str
    name: str
    uri: str
    digest: str | None
    size: int | None
    modified: float | None


class Texts:
    """Where links and images in a file of a skill lead, on this page."""

    def __init__(self, entry: SkillEntry, file: SkillUri, base: str) -> None:
        self._root = parse_uri(entry.uri).parent
        self._entry = entry
        self._file = file
        self._base = base

    def link(self, target: str) -> str | None:
        """To the viewer, if it is a file of the skill; to the web if it is there; otherwise nowhere."""
        if target.startswith("#") or target.lower().startswith(_WEB):
            return target
        inside = self._inside(target)
        return None if inside is None else f"{self._base}/file/{quote(inside.path)}"

    def image(self, target: str) -> str | None:
        """To the bytes, if it is a raster image of the skill."""
        inside = self._inside(target)
        if inside is None or image_type(inside.path) is None:
            return None
        return f"{self._base}/raw/{quote(inside.path)}"

    def _inside(self, target: str) -> SkillUri | None:
        try:
            place = resolve_reference(self._root, self._file, target)
        except FormatError:
            return None
        if place is None or not is_within(self._root, place):
            return None
        is_there = not self._entry.is_complete or self._entry.resource(str(place)) is not None
        return place if is_there else None


def parse_skill_path(path: str, scheme: str) -> str:
    """The URI of the ``SKILL.md`` of the skill at ``path``; whatever cannot be one is not there."""
    try:
        return skill_md_uri(parse_path(path), scheme)
    except FormatError as error:
        raise NotFoundError("skill-unknown", f"no skill is served at {path!r:.200}", _HINT) from error


def parse_file_path(path: str, scheme: str) -> SkillUri:
    """The URI of the file at ``path``."""
    try:
        return parse_uri(format_uri(parse_path(path), scheme))
    except FormatError as error:
        raise NotFoundError("file-unknown", f"no skill has a file at {path!r:.200}", _HINT) from error


async def find_around(catalog: Catalog, file: SkillUri) -> SkillEntry:
    """The innermost skill around a file."""
    folder = file.parent
    while folder.segments:
        entry = await catalog.peek_skill(skill_md_uri(folder.path, file.scheme))
        if entry is not None:
            return entry
        folder = folder.parent
    raise NotFoundError("file-unknown", f"no skill has a file at {str(file)!r:.300}", _HINT)


async def rendered(catalog: Catalog, entry: SkillEntry, base: str) -> Markup | SkillwireError:
    """The ``SKILL.md`` of a skill without its frontmatter; or why it cannot be shown."""
    texts = Texts(entry, parse_uri(entry.uri), base)
    try:
        file = await catalog.read_file(entry.uri)
        body = parse_skill_md(file.data).body
    except SkillwireError as error:
        return error
    return await to_thread.run_sync(lambda: markdown(body, link=texts.link, image=texts.image))


async def files_of(catalog: Catalog, entry: SkillEntry) -> list[File]:
    """The files of a skill, its ``SKILL.md`` first; of a dynamic one those that are there now."""
    root = parse_uri(entry.uri).parent
    known = [(file.uri, file.digest, file.size) for file in entry.files]
    times: dict[str, float | None] = {}
    if not known or (len(known) <= _MOST_WALKED and await catalog.is_local(entry.uri)):
        there = await _walked(catalog, str(root))
        times = {uri: modified for uri, _, modified in there}
        known = known or [(uri, None, size) for uri, size, _ in there]
    files = [_file(root, uri, digest, size, times.get(uri)) for uri, digest, size in known]
    return sorted(files, key=lambda file: (file.uri != entry.uri, file.path))


def amount_of(entry: SkillEntry, files: Sequence[File]) -> str:
    """How many files a skill has and how large they are: what is promised, or else what is known."""
    if not files:
        return "nothing is known of its files"
    many = counted(len(files), "file")
    if not entry.is_complete:
        return f"at least {many}"
    return f"{many}, not all of known size" if "size" in entry.gaps else f"{many}, {size_of(entry.size)}"


def last_change(entry: SkillEntry, files: Sequence[File]) -> float | None:
    """When something of the skill was last changed, as far as that is known."""
    times = [file.modified for file in files if file.modified is not None]
    return max(times, default=entry.modified)


def facts_of(frontmatter: dict[str, Json]) -> list[tuple[str, str, bool]]:
    """The frontmatter for a table: name, value, and whether the value is JSON rather than text."""
    return [
        (key, value, False)
        if isinstance(value, str)
        else (key, json.dumps(value, indent=2, ensure_ascii=False), True)
        for key, value in frontmatter.items()
    ]


def _file(root: SkillUri, uri: str, digest: str | None, size: int | None, modified: float | None) -> File:
    place = parse_uri(uri)
    name = "/".join(place.segments[len(root.segments) :]) if is_within(root, place) else uri
    return File(place.path, name, uri, digest, size, modified)


async def _walked(catalog: Catalog, root: str) -> list[tuple[str, int | None, float | None]]:
    found: list[tuple[str, int | None, float | None]] = []
    try:
        async for child in catalog.walk(root):
            found.append((child.uri, child.size, child.modified))
            if len(found) == _MOST_WALKED:
                break
    except SkillwireError:  # the times are an extra
        return []
    return found
