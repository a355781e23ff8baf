"""An upstream's URIs, of whatever scheme, as ``skill://``: a catalog around a catalog (U5).

Only names change. Digests, sizes and bytes pass through as they are; ``addresses.py`` has the mapping.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from skillwire.catalog.changes import Change, ChangeFeed, ChangeStream
from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    DirectoryChild,
    Page,
    ReadyArchive,
    SkillFile,
)
from skillwire.catalog.snapshot import beginning_with, no_skill
from skillwire.catalog.wrapper import WrapperCatalog
from skillwire.errors import FormatError, NotFoundError
from skillwire.gateway.addresses import is_plain
from skillwire.skill.entry import Partial
from skillwire.skill.uri import DEFAULT_SCHEME, is_within, parse_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.gateway.addresses import Addresses
    from skillwire.skill import Resource, SkillEntry

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*\Z")


class AddressedCatalog(WrapperCatalog):
    """``inner``, at the addresses that ``addresses`` gives now."""

    def __init__(self, inner: Catalog, addresses: Callable[[], Addresses]) -> None:
        super().__init__(inner)
        self._addresses = addresses
        self._paths: list[str] | None = None  # of what is listed, sorted; None when skills came or went
        self._watch = inner.changes()
        self._watch.forward(self._forget)

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the listing."""
        page = await self.inner.list_skills(cursor, limit)
        return Page([self._moved(entry) for entry in page.items], page.next_cursor)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry."""
        return self._moved(await self.inner.get_skill(self.theirs(uri)))

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry as it is known."""
        try:
            entry = await self.inner.peek_skill(self.theirs(uri))
        except NotFoundError:  # no address of ours
            return None
        return None if entry is None else self._moved(entry)

    async def read_file(self, uri: str) -> SkillFile:
        """One file."""
        file = await self.inner.read_file(self.theirs(uri))
        return file._replace(uri=uri if is_plain(uri) else str(parse_uri(uri)))

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory."""
        page = await self.inner.read_directory(self.theirs(uri), cursor, limit)
        return Page([child._replace(uri=self._inside(child.uri)) for child in page.items], page.next_cursor)

    async def is_local(self, uri: str) -> bool:
        """As it is inside."""
        return await self.inner.is_local(self.theirs(uri))

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """As it is inside, as long as addresses mean the same."""
        addresses = self._addresses()
        try:
            is_same = await self.inner.unchanged(None if uri is None else self.theirs(uri))
        except (FormatError, NotFoundError):  # no address of ours, or none at all
            return None
        return None if is_same is None else lambda: is_same() and self._addresses() == addresses

    async def ready_archive(self, uri: str) -> ReadyArchive | None:
        """The archive that one skill came in."""
        return await self.inner.ready_archive(self.theirs(uri))

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``."""
        if self._paths is None:
            self._paths = sorted([self._moved(entry).path async for entry in self.inner.entries()])
        return beginning_with(self._paths, beginning, limit)

    def changes(self) -> ChangeStream:
        """What changes, under our addresses."""
        return _MappedStream(self.inner.changes(), self._changed)

    def theirs(self, uri: str) -> str:
        """The upstream's own address; ``NotFoundError`` if ``uri`` is none of ours."""
        addresses = self._addresses()
        if addresses.home == DEFAULT_SCHEME and is_plain(uri):
            return uri
        place = parse_uri(uri)
        theirs = addresses.theirs(place)
        is_one = place.scheme == DEFAULT_SCHEME and _SCHEME.match(theirs.scheme) is not None
        if not is_one or addresses.inside(theirs) != place:  # a second way to write an address is none
            raise no_skill(uri)
        return str(theirs)

    def _inside(self, uri: str) -> str:
        return self._addresses().inside_uri(uri)

    def _moved(self, entry: SkillEntry) -> SkillEntry:
        uri = self._inside(entry.uri)
        if uri == entry.uri:
            return entry
        resources = entry.resources
        if isinstance(resources, tuple):
            resources = self._moved_files(resources)
        elif isinstance(resources, Partial):
            root = skill_root(parse_uri(entry.uri))
            inside = tuple(file for file in resources.known if is_within(root, parse_uri(file.uri)))
            resources = Partial(self._moved_files(inside))
        return replace(entry, uri=uri, resources=resources, received=None)

    def _moved_files(self, files: tuple[Resource, ...]) -> tuple[Resource, ...]:
        return tuple(file._replace(uri=self._inside(file.uri)) for file in files)

    def _changed(self, change: Change) -> Change:
        sets = (change.added, change.changed, change.removed)
        return Change(*(frozenset(map(self._inside, uris)) for uris in sets))

    def _forget(self, change: Change) -> None:
        if change.added or change.removed:
            self._paths = None


class _MappedStream(ChangeStream):
    """Another stream's changes, each made into another."""

    def __init__(self, source: ChangeStream, mapped: Callable[[Change], Change]) -> None:
        super().__init__(ChangeFeed())
        self._source = source
        source.forward(lambda change: self.push(mapped(change)))

    def close(self) -> None:
        """Stop listening."""
        self._source.close()
        super().close()
