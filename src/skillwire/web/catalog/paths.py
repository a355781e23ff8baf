"""What is listed, by path: pages of it, and the folders it lies in.

It is remembered until skills come or go, so that a page costs what it shows, whatever the size of the catalog.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillwire.catalog.changes import Change
    from skillwire.catalog.contract import Catalog

_MOST_VIEWS = 16


class Part(NamedTuple):
    """Some of what is listed: the URIs, where they stand among how many, and the places of the pages around."""

    uris: list[str]
    first: int
    total: int
    before: str | None  # after which the page before begins; None if there is none
    after: str | None

    @property
    def last(self) -> int:
        """The number of the last one."""
        return self.first + len(self.uris) - 1


@dataclass(slots=True)
class _Listing:
    uris: dict[str, str] = field(default_factory=dict[str, str])  # by path
    paths: list[str] = field(default_factory=list[str])  # sorted
    folders: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])  # counts


class Paths:
    """The paths of the listed skills of ``catalog``."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._listing: _Listing | None = None
        self._generation = 0
        self._watch = catalog.changes()
        self._watch.forward(self._forget)

    def close(self) -> None:
        """Stop listening for changes."""
        self._watch.close()

    async def part(self, under: str, after: str, limit: int) -> Part:
        """The skills below the folder ``under`` whose paths come after ``after``."""
        listing = await self._current()
        start, stop = 0, len(listing.paths)
        if under:
            start = bisect_left(listing.paths, f"{under}/")
            stop = bisect_left(listing.paths, f"{under}0")  # '/' < '0'
        at = bisect_right(listing.paths, after, start, stop) if after else start
        end = min(at + limit, stop)
        earlier = max(at - limit, start)
        before = None if at == start else "" if earlier == start else listing.paths[earlier - 1]
        chosen = [listing.uris[path] for path in listing.paths[at:end]]
        return Part(chosen, at - start + 1, stop - start, before, listing.paths[end - 1] if end < stop else None)

    async def folders(self, under: str) -> dict[str, int]:
        """The folders directly in ``under``, with the number of skills below each."""
        return (await self._current()).folders.get(under, {})

    async def has(self, path: str) -> bool:
        """Whether a skill at ``path`` is listed."""
        return path in (await self._current()).uris

    async def _current(self) -> _Listing:
        while self._listing is None:
            generation = self._generation
            listing = _listing_of([(entry.path, entry.uri) async for entry in self._catalog.entries()])
            if generation == self._generation:  # nothing came or went meanwhile
                self._listing = listing
        return self._listing

    def _forget(self, change: Change) -> None:
        if change.added or change.removed:
            self._generation += 1
            self._listing = None


class AllPaths:
    """The paths of each view of the catalog that was looked at last."""

    def __init__(self) -> None:
        self._views: OrderedDict[Catalog, Paths] = OrderedDict()  # used last stands last

    def of(self, catalog: Catalog) -> Paths:
        """The paths of ``catalog``."""
        paths = self._views.pop(catalog, None) or Paths(catalog)
        self._views[catalog] = paths
        while len(self._views) > _MOST_VIEWS:
            self._views.popitem(last=False)[1].close()
        return paths


def _listing_of(skills: Iterable[tuple[str, str]]) -> _Listing:
    listing = _Listing(dict(sorted(skills)))
    listing.paths = list(listing.uris)
    for path in listing.paths:
        parent = ""
        for name in path.split("/")[:-1]:
            inside = listing.folders.setdefault(parent, {})
            inside[name] = inside.get(name, 0) + 1
            parent = f"{parent}/{name}" if parent else name
    return listing
