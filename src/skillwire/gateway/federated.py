"""All upstreams as one catalog, each under its label (N1, O1, O3).

A combined catalog whose sources have their labels for prefixes, so that a path belongs to exactly one of them and
nothing can be contested. The first segment alone says who is asked: a read never crosses origins. A source is also
asked about what it does not list, and says itself why it cannot answer (G1).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillwire.catalog.collisions import Claims, Mount
from skillwire.catalog.combined import CombinedCatalog
from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, DirectoryChild, Page, SkillFile
from skillwire.catalog.cursor import clamp_limit, encode_cursor
from skillwire.catalog.snapshot import no_directory, no_file, no_skill
from skillwire.errors import FormatError, LimitError, NotFoundError
from skillwire.gateway.addresses import is_plain
from skillwire.skill.entry import Partial
from skillwire.skill.uri import DEFAULT_SCHEME, SkillUri, format_uri, parse_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import Resource, SkillEntry

_MOST_MOVED = 100_000
_SCHEME = f"{DEFAULT_SCHEME}://"


class FederatedCatalog(CombinedCatalog):
    """Catalogs by their labels."""

    def __init__(self, sources: Mapping[str, Catalog]) -> None:
        super().__init__([Mount(catalog, label, prefix=label) for label, catalog in sources.items()])
        self._owners = {mount.label: mount for mount in self.mounts}
        self._moved: dict[tuple[str, str], tuple[SkillEntry, SkillEntry]] = {}

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page: sources in order, each in its own order."""
        index, inner = self._place(cursor)
        room, entries = clamp_limit(limit), list["SkillEntry"]()
        while index < len(self.mounts) and len(entries) < room:
            mount = self.mounts[index]
            page = await mount.catalog.list_skills(inner, room - len(entries))
            entries += [self._outside(mount, entry) for entry in page.items]
            inner = page.next_cursor
            index += inner is None
        if index == len(self.mounts):
            return Page(entries)
        return Page(entries, encode_cursor("combined", f"{self.mounts[index].label}\n{inner or ''}"))

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry, from the source whose label its path begins with."""
        owner = self._owner(uri)
        if owner is None:
            raise no_skill(uri)
        mount, inner = owner
        try:
            return self._outside(mount, await mount.catalog.get_skill(inner))
        except NotFoundError as error:
            raise no_skill(uri) from error

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry as it is known; nobody is asked for it."""
        owner = self._owner(uri)
        if owner is None:
            return None
        mount, inner = owner
        entry = await mount.catalog.peek_skill(inner)
        return None if entry is None else self._outside(mount, entry)

    async def read_file(self, uri: str) -> SkillFile:
        """One file, from the source whose label its path begins with (O3)."""
        owner = self._owner(uri)
        if owner is None:
            raise no_file(uri)
        mount, inner = owner
        try:
            file = await mount.catalog.read_file(inner)
        except NotFoundError as error:
            raise no_file(uri) from error
        except LimitError as error:
            if error.reference != "file-too-large":
                raise
            raise _too_large(uri, mount.label) from error
        return file._replace(uri=_under(mount, file.uri))

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory, from the source whose label its path begins with."""
        owner = self._owner(uri)
        if owner is None:
            raise no_directory(uri)
        mount, inner = owner
        try:
            page = await mount.catalog.read_directory(inner, cursor, limit)
        except NotFoundError as error:
            raise no_directory(uri) from error
        return Page([child._replace(uri=_under(mount, child.uri)) for child in page.items], page.next_cursor)

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """As it is at the source whose label the path begins with; without a path, at all of them."""
        if uri is None:
            return await super().unchanged()
        try:
            owner = self._owner(uri)
        except FormatError:
            return None
        return None if owner is None else await owner[0].catalog.unchanged(owner[1])

    def _claims(self) -> Claims:
        return _Uncontested(self.mounts, DEFAULT_SCHEME)

    def _owner(self, uri: str) -> tuple[Mount, str] | None:
        """The source that a URI belongs to, and the URI there."""
        if is_plain(uri):
            label, _, rest = uri[len(_SCHEME) :].partition("/")
            mount = self._owners.get(label)
            return None if mount is None or not rest else (mount, _SCHEME + rest)
        place = parse_uri(uri)
        mount = self._owners.get(place.segments[0])
        if mount is None or place.scheme != DEFAULT_SCHEME or len(place.segments) < 2:
            return None
        return mount, str(SkillUri(DEFAULT_SCHEME, place.segments[1:]))

    def _outside(self, mount: Mount, entry: SkillEntry) -> SkillEntry:
        """The entry under its label. URIs differ; digests, sizes and fields do not. Made once for each entry."""
        key = (mount.label, entry.uri)
        known = self._moved.get(key)
        if known is not None and known[0] is entry:
            return known[1]
        resources = entry.resources
        if isinstance(resources, tuple):
            resources = _under_files(mount, resources)
        elif isinstance(resources, Partial):
            resources = Partial(_under_files(mount, resources.known))
        moved = replace(entry, uri=_under(mount, entry.uri), resources=resources, received=None)
        if len(self._moved) >= _MOST_MOVED:
            self._moved.clear()
        self._moved[key] = (entry, moved)
        return moved


class _Uncontested(Claims):
    """Labels are prefixes: no path is anybody else's."""

    async def is_contested(self, path: str) -> bool:  # noqa: ARG002 - none is
        """Never."""
        return False


def _under(mount: Mount, uri: str) -> str:
    if is_plain(uri):
        return f"{_SCHEME}{mount.label}/{uri[len(_SCHEME) :]}"
    return format_uri(f"{mount.label}/{parse_uri(uri).path}", DEFAULT_SCHEME)


def _under_files(mount: Mount, files: tuple[Resource, ...]) -> tuple[Resource, ...]:
    return tuple(file._replace(uri=_under(mount, file.uri)) for file in files)


def _too_large(uri: str, label: str) -> LimitError:
    """B1, for a client: by the address that it knows, and by the key that an operator knows."""
    return LimitError(
        "file-too-large",
        f"{uri!r:.300} is larger than this gateway takes from {label!r}",
        f"whoever runs the gateway can raise max-file-bytes of [upstream.{label}]",
        rule="B1",
    )
