"""The content of a skill for its page: rendered text, files, fields, and the targets of links."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from anyio import to_thread

from skillwire.amounts import counted, size_of
from skillwire.catalog.examination import review_skill
from skillwire.errors import FormatError, NotFoundError, SkillwireError
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.review import Review, review_files
from skillwire.skill.uri import (
    SKILL_MD,
    format_uri,
    parse_path,
    parse_uri,
    path_in_skill,
    skill_md_uri,
)
from skillwire.web.files import image_type, skill_links
from skillwire.web.markdown import markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import Json, SkillEntry
    from skillwire.skill.uri import SkillUri
    from skillwire.web.files import Link

_MAX_WALKED = 512
_HINT = "it may have been moved or renamed; search for it"


class File(NamedTuple):
    """One file of a skill: its paths in the catalog and in the skill, and the claims of its entry."""

    path: str
    name: str
    uri: str
    digest: str | None
    size: int | None
    modified: float | None


def parse_skill_path(path: str, scheme: str) -> str:
    """The URI of the ``SKILL.md`` of the skill at ``path``; ``NotFoundError`` if the path is invalid."""
    try:
        return skill_md_uri(parse_path(path), scheme)
    except FormatError as error:
        raise NotFoundError("skill-unknown", f"no skill is served at {path!r:.200}", _HINT) from error


def parse_file_path(path: str, scheme: str) -> SkillUri:
    """The URI of the file at ``path``; ``NotFoundError`` if the path is invalid."""
    try:
        return parse_uri(format_uri(parse_path(path), scheme))
    except FormatError as error:
        raise NotFoundError("file-unknown", f"no skill has a file at {path!r:.200}", _HINT) from error


def links_of(entry: SkillEntry, file: SkillUri, base: str) -> tuple[Link, Link]:
    """The targets of links in a file of a skill, and of its images."""

    def image(place: SkillUri) -> str | None:
        return f"{base}/raw/{quote(place.path)}" if image_type(place.path) else None

    pages = skill_links(entry, file, lambda place: f"{base}/file/{quote(place.path)}", outward=True)
    return pages, skill_links(entry, file, image)


async def find_skill_around(catalog: Catalog, file: SkillUri) -> SkillEntry:
    """The innermost skill around a file."""
    entry = await catalog.skill_around(file.parent)
    if entry is not None:
        return entry
    raise NotFoundError("file-unknown", f"no skill has a file at {str(file)!r:.300}", _HINT)


async def review_text(catalog: Catalog, entry: SkillEntry) -> Review:
    """The review of a skill. Of a skill on another server, only the ``SKILL.md`` is read (V5)."""
    if entry.local:
        return await review_skill(catalog, entry)
    try:
        files = [(SKILL_MD, (await catalog.read_file(entry.uri)).data)]
    except SkillwireError:
        files = []
    return await to_thread.run_sync(review_files, entry, files)


async def rendered_body(catalog: Catalog, entry: SkillEntry, base: str) -> Markup | SkillwireError:
    """The rendered ``SKILL.md`` without its frontmatter, or the error that prevents it."""
    link, image = links_of(entry, parse_uri(entry.uri), base)
    try:
        file = await catalog.read_file(entry.uri)
        body = parse_skill_md(file.data).body
    except SkillwireError as error:
        return error
    return await to_thread.run_sync(lambda: markdown(body, link=link, image=image))


async def list_files(catalog: Catalog, entry: SkillEntry) -> list[File]:
    """The files of a skill, ``SKILL.md`` first; for a dynamic skill, its current files."""
    known = [(file.uri, file.digest, file.size) for file in entry.files]
    times: dict[str, float | None] = {}
    if not known or (len(known) <= _MAX_WALKED and entry.local):
        there = await _walked(catalog, str(parse_uri(entry.uri).parent))
        times = {uri: modified for uri, _, modified in there}
        known = known or [(uri, None, size) for uri, size, _ in there]
    files = [
        File(parse_uri(uri).path, path_in_skill(entry.uri, uri) or uri, uri, digest, size, times.get(uri))
        for uri, digest, size in known
    ]
    return sorted(files, key=lambda file: (file.uri != entry.uri, file.path))


def describe_amount(entry: SkillEntry, files: Sequence[File]) -> str:
    """The number and size of the files of a skill, as far as they are known."""
    if not files:
        return "files unknown"
    many = counted(len(files), "file")
    if not entry.is_complete:
        return f"at least {many}"
    return f"{many}, sizes partly unknown" if "size" in entry.gaps else f"{many}, {size_of(entry.size)}"


def last_change(entry: SkillEntry, files: Sequence[File]) -> float | None:
    """The time of the last change of any file of the skill, if it is known."""
    times = [file.modified for file in files if file.modified is not None]
    return max(times, default=entry.modified)


def frontmatter_rows(frontmatter: dict[str, Json]) -> list[tuple[str, str, bool]]:
    """The frontmatter as rows: name, value, and whether the value is JSON."""
    return [
        (key, value, False)
        if isinstance(value, str)
        else (key, json.dumps(value, indent=2, ensure_ascii=False), True)
        for key, value in frontmatter.items()
    ]


async def _walked(catalog: Catalog, root: str) -> list[tuple[str, int | None, float | None]]:
    found: list[tuple[str, int | None, float | None]] = []
    try:
        async for child in catalog.walk(root):
            found.append((child.uri, child.size, child.modified))
            if len(found) == _MAX_WALKED:
                break
    except SkillwireError:  # the page works without the times
        return []
    return found
