"""Skills under other URIs: one URI map, and a catalog that applies it (U4, U5, N1).

Only names change. Digests, sizes and bytes stay the same. A map puts the skills of a source below a prefix: a
folder in a combined catalog, or the label of an upstream in the gateway.

A source that may use any scheme is mapped to ``skill://``. Its usual scheme, ``home``, is not part of the mapped
path. Any other scheme becomes a first segment that ends in a colon: ``github://acme/refunds`` is mapped to
``skill://github:/acme/refunds``. If the first segment of a path already ends in a colon, its scheme is added too:
``skill://github:/acme`` is mapped to ``skill://skill:/github:/acme``. So two URIs are never mapped to one, and
every mapped URI can be mapped back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillwire.catalog.changes import Change, ChangeFeed, ChangeStream
from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    DirectoryChild,
    Page,
    ReadyArchive,
    SkillFile,
    SkillTemplate,
)
from skillwire.catalog.snapshot import beginning_with, no_directory, no_file, no_skill
from skillwire.catalog.wrapper import WrapperCatalog
from skillwire.errors import FormatError, NotFoundError
from skillwire.skill.entry import Partial, Resource
from skillwire.skill.uri import DEFAULT_SCHEME, SkillUri, is_within, parse_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import Diagnostic, SkillEntry

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*\Z")
_START = f"{DEFAULT_SCHEME}://"
# Most URIs match this. They have one spelling, so they are mapped as text: parsing each file of a large listing is
# slow.
_PLAIN = re.compile(r"skill://[A-Za-z0-9_~-][A-Za-z0-9_~.-]*(?:/[A-Za-z0-9_~-][A-Za-z0-9_~.-]*)*\Z")
_MAX_MAPPED = 100_000


@dataclass(frozen=True, slots=True)
class UriMap:
    """Maps URIs of a source ("inner") to URIs below ``prefix`` ("outer"), and back.

    Without ``home`` the scheme stays the same. With ``home`` outer URIs are ``skill://``, and a scheme other than
    ``home`` becomes part of the path.
    """

    prefix: str = ""
    home: str | None = None

    def outer(self, uri: str) -> str:
        """The outer URI of an inner one."""
        if not self.prefix and self.home is None:
            return uri  # nothing is mapped, so its spelling stays too
        if self.home in (None, DEFAULT_SCHEME) and uri.startswith(_START):
            mapped = f"{_START}{self.prefix}/{uri[len(_START) :]}" if self.prefix else uri
            if _PLAIN.match(mapped):
                return mapped
        return str(self._outer(parse_uri(uri)))

    def inner(self, uri: str) -> str | None:
        """The inner URI of an outer one; ``None`` if ``uri`` is no outer URI of this map."""
        if self.home in (None, DEFAULT_SCHEME) and _PLAIN.match(uri):
            start = f"{_START}{self.prefix}/" if self.prefix else _START
            return _START + uri[len(start) :] if uri.startswith(start) else None
        place = parse_uri(uri)
        depth = len(self._prefix_segments)
        segments = place.segments[depth:]
        if place.segments[:depth] != self._prefix_segments or not segments:
            return None
        inner = SkillUri(place.scheme, segments)
        if self.home is not None:
            first, *rest = segments
            has_scheme = first.endswith(":") and rest
            inner = SkillUri(first[:-1], tuple(rest)) if has_scheme else SkillUri(self.home, segments)
        # An outer URI has one form: ``skill://skill:/acme`` does not also mean ``skill://acme``.
        is_valid = _SCHEME.match(inner.scheme) is not None and self._outer(inner) == place
        return str(inner) if is_valid else None

    def path(self, uri: str) -> str:
        """The path, below the prefix, of the skill whose ``SKILL.md`` is at the inner ``uri``."""
        outer = self._outer(skill_root(parse_uri(uri)))
        return "/".join(outer.segments[len(self._prefix_segments) :])

    def entry(self, entry: SkillEntry) -> SkillEntry:
        """The same skill, with outer URIs.

        Known files of an incomplete entry may lie outside the skill. They have no outer URI and are removed.
        """
        uri = self.outer(entry.uri)
        if uri == entry.uri:
            return entry
        resources = entry.resources
        if isinstance(resources, tuple):
            resources = self._files(resources)
        elif isinstance(resources, Partial):
            root = skill_root(parse_uri(entry.uri))
            resources = Partial(
                self._files(file for file in resources.known if is_within(root, parse_uri(file.uri)))
            )
        return replace(entry, uri=uri, resources=resources, received=None)

    @property
    def _prefix_segments(self) -> tuple[str, ...]:
        return tuple(self.prefix.split("/")) if self.prefix else ()

    def _outer(self, inner: SkillUri) -> SkillUri:
        if self.home is None:
            return SkillUri(inner.scheme, self._prefix_segments + inner.segments)
        is_home = inner.scheme == self.home and not inner.segments[0].endswith(":")
        scheme = () if is_home else (f"{inner.scheme}:",)
        return SkillUri(DEFAULT_SCHEME, (*self._prefix_segments, *scheme, *inner.segments))

    def _files(self, files: Iterable[Resource]) -> tuple[Resource, ...]:
        return tuple(file._replace(uri=self.outer(file.uri)) for file in files)


class MappedCatalog(WrapperCatalog):
    """``inner``, under the URIs that the map returned by ``uri_map`` gives. The map may change."""

    def __init__(self, inner: Catalog, uri_map: Callable[[], UriMap]) -> None:
        super().__init__(inner)
        self._uri_map = uri_map
        self._mapped: dict[str, tuple[SkillEntry, UriMap, SkillEntry]] = {}  # by inner URI
        self._paths: list[str] | None = None  # of listed skills, sorted; None after skills were added or removed
        self._watch = inner.changes()
        self._watch.forward(self._forget_paths)

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the listing."""
        page = await self.inner.list_skills(cursor, limit)
        return Page([self._outer(entry) for entry in page.items], page.next_cursor)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry."""
        try:
            return self._outer(await self.inner.get_skill(self.inner_uri(uri)))
        except NotFoundError as error:
            raise no_skill(uri) from error

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry, if it is known."""
        inner = self._uri_map().inner(uri)
        entry = None if inner is None else await self.inner.peek_skill(inner)
        return None if entry is None else self._outer(entry)

    async def read_file(self, uri: str) -> SkillFile:
        """One file."""
        try:
            file = await self.inner.read_file(self.inner_uri(uri))
        except NotFoundError as error:
            raise no_file(uri) from error
        return file._replace(uri=self._uri_map().outer(file.uri))

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory."""
        try:
            page = await self.inner.read_directory(self.inner_uri(uri), cursor, limit)
        except NotFoundError as error:
            raise no_directory(uri) from error
        outer = self._uri_map().outer
        return Page([child._replace(uri=outer(child.uri)) for child in page.items], page.next_cursor)

    def changes(self) -> ChangeStream:
        """A stream of changes."""
        return _MappedStream(self.inner.changes(), self._uri_map)

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``."""
        if self._paths is None:
            self._paths = sorted([self._outer(entry).path async for entry in self.inner.entries()])
        return beginning_with(self._paths, beginning, limit)

    def templates(self) -> Sequence[SkillTemplate]:
        """Templates of skills, below the prefix."""
        return [each._replace(path=self._below_prefix(each.path)) for each in self.inner.templates()]

    async def is_local(self, uri: str) -> bool:
        """Whether the skill's bytes are on this machine."""
        inner = self._uri_map().inner(uri)
        return inner is not None and await self.inner.is_local(inner)

    async def ready_archive(self, uri: str) -> ReadyArchive | None:
        """The archive that a skill came in."""
        inner = self._uri_map().inner(uri)
        return None if inner is None else await self.inner.ready_archive(inner)

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """A test whether the source still gives the same answers, and the map is the same."""
        uri_map = self._uri_map()
        try:
            inner = None if uri is None else uri_map.inner(uri)
        except FormatError:
            return None
        is_same = None if uri is not None and inner is None else await self.inner.unchanged(inner)
        return None if is_same is None else lambda: is_same() and self._uri_map() == uri_map

    async def unlisted(self) -> Sequence[SkillEntry]:
        """Entries that are served but not listed."""
        return [self._outer(entry) for entry in await self.inner.unlisted()]

    async def problems(self) -> Sequence[Diagnostic]:
        """Problems of the source, below the prefix."""
        prefix = self._uri_map().prefix
        return [problem.under(prefix) if prefix else problem for problem in await self.inner.problems()]

    async def ignored(self) -> Sequence[str]:
        """Paths that are not served because of their names, below the prefix."""
        return [self._below_prefix(path) for path in await self.inner.ignored()]

    def inner_uri(self, uri: str) -> str:
        """The URI at the source; ``NotFoundError`` if ``uri`` is not mapped."""
        inner = self._uri_map().inner(uri)
        if inner is None:
            raise no_skill(uri)
        return inner

    def _outer(self, entry: SkillEntry) -> SkillEntry:
        """The mapped entry. The same object for the same entry: caches further out compare identities."""
        uri_map, known = self._uri_map(), self._mapped.get(entry.uri)
        if known is not None and known[0] is entry and known[1] == uri_map:
            return known[2]
        if len(self._mapped) >= _MAX_MAPPED:
            self._mapped.clear()
        mapped = uri_map.entry(entry)
        self._mapped[entry.uri] = entry, uri_map, mapped
        return mapped

    def _below_prefix(self, path: str) -> str:
        prefix = self._uri_map().prefix
        return f"{prefix}/{path}" if prefix else path

    def _forget_paths(self, change: Change) -> None:
        if change.added or change.removed:
            self._paths = None


class _MappedStream(ChangeStream):
    """The changes of another stream, with outer URIs."""

    def __init__(self, source: ChangeStream, uri_map: Callable[[], UriMap]) -> None:
        super().__init__(ChangeFeed())
        self._source = source

        def push(change: Change) -> None:
            outer = uri_map().outer
            self.push(
                Change(*(frozenset(map(outer, uris)) for uris in (change.added, change.changed, change.removed)))
            )

        source.forward(push)

    def close(self) -> None:
        """Stop listening."""
        self._source.close()
        super().close()
