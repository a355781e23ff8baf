"""A saved listing of a catalog, to inspect or compare later.

``skillwire list --json`` writes one. It contains the claims of the server about each skill and the missing ones,
so nothing is lost. It contains no bytes: ``ListingCatalog`` lists and gets skills, but cannot read files.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Catalog,
    ChangeFeed,
    ChangeStream,
    DirectoryChild,
    Page,
    SkillFile,
    no_directory,
    no_file,
    no_skill,
)
from skillwire.catalog.cursor import beginning_with, page_of
from skillwire.errors import FormatError
from skillwire.skill.entry import DYNAMIC, Dynamic, Partial, Resource, SkillEntry, file_to_json, parse_entry
from skillwire.skill.uri import parse_uri
from skillwire.skill.version_status import parse_version_status, version_status, with_version_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


def entry_to_document(entry: SkillEntry) -> dict[str, Any]:
    """An entry as JSON, with its gaps in ``complete`` and ``notPromised``."""
    claims = map(file_to_json, entry.files)
    files = [{key: value for key, value in claim.items() if value is not None} for claim in claims]
    status = version_status(entry).to_json()
    return {
        "uri": entry.uri,
        "frontmatter": dict(entry.frontmatter),
        "resources": DYNAMIC if entry.is_dynamic else files,
        "complete": entry.is_complete,
        "notPromised": sorted(entry.gaps),
        **({"version": status} if status else {}),
    }


def entry_from_document(value: object) -> SkillEntry:
    """The entry in the result of ``entry_to_document``. ``FormatError`` for anything else."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    gaps = fields.get("notPromised", [])
    if fields.get("complete", True) and not gaps:
        return parse_entry({key: fields[key] for key in ("uri", "frontmatter", "resources") if key in fields})
    try:
        entry = trusted_entry(fields)
        return replace(entry, uri=str(parse_uri(entry.uri)))
    except (KeyError, TypeError, AttributeError) as error:
        raise FormatError(
            "listing-invalid", "the file is not a listing", "create one: skillwire list --json"
        ) from error


def trusted_entry(document: Mapping[str, Any]) -> SkillEntry:
    """The same without the checks, which take most of the time: for documents that this program stored."""
    resources: tuple[Resource, ...] | Partial | Dynamic = DYNAMIC
    if document["resources"] != DYNAMIC:
        files = tuple(
            Resource(each["uri"], each.get("digest"), each.get("size")) for each in document["resources"]
        )
        resources = files if document["complete"] else Partial(files)
    is_whole = "frontmatter" not in document["notPromised"]
    entry = SkillEntry(document["uri"], document["frontmatter"], resources, whole_frontmatter=is_whole)
    return with_version_status(entry, parse_version_status(document.get("version")))


class ListingCatalog(Catalog):
    """A saved listing as a catalog. Its files cannot be read."""

    def __init__(self, entries: Iterable[SkillEntry]) -> None:
        self._entries = {str(parse_uri(entry.uri)): entry for entry in entries}
        self._keys = sorted(self._entries)
        self._feed = ChangeFeed()

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the saved listing."""
        return page_of("skills", self._keys, lambda key: self._entries[key], cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One of the entries."""
        entry = self._entries.get(str(parse_uri(uri)))
        if entry is None:
            raise no_skill(uri)
        return entry

    async def read_file(self, uri: str) -> SkillFile:
        """Always raises: a listing contains no bytes."""
        raise no_file(uri)

    async def read_directory(
        self,
        uri: str,
        cursor: str | None = None,  # noqa: ARG002 - the signature of the contract
        limit: int = DEFAULT_PAGE_SIZE,  # noqa: ARG002
    ) -> Page[DirectoryChild]:
        """Always raises: a listing contains no directories."""
        raise no_directory(uri)

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of skills that begin with ``beginning``."""
        return beginning_with(sorted(entry.path for entry in self._entries.values()), beginning, limit)

    def changes(self) -> ChangeStream:
        """A listing does not change."""
        return self._feed.subscribe()


def read_listing(path: Path) -> ListingCatalog:
    """Read a catalog that ``skillwire list --json`` wrote to a file."""
    try:
        document: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(
            "listing-invalid", f"{path.name!r} is not JSON", "make a listing: skillwire list TARGET --json"
        ) from error
    skills = cast("dict[str, object]", document).get("skills") if isinstance(document, dict) else None
    if not isinstance(skills, list):
        raise FormatError(
            "listing-invalid", f"{path.name!r} is not a listing", "make a listing: skillwire list TARGET --json"
        )
    return ListingCatalog(entry_from_document(item) for item in cast("list[object]", skills))
