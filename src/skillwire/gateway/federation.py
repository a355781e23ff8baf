"""All upstreams as one catalog, each below its label (N1, O1, O3).

Each upstream is a ``MappedCatalog`` with its label as the prefix, so every URI belongs to exactly one upstream.
The first segment alone selects it: a read never crosses origins. An upstream also gets requests for skills that it
does not list, and reports the reason itself if it cannot answer (G1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from skillwire.catalog.changes import ChangeFeed, ChangeStream
from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Catalog,
    DirectoryChild,
    Page,
    ReadyArchive,
    SkillFile,
)
from skillwire.catalog.cursor import clamp_limit, decode_cursor, encode_cursor
from skillwire.catalog.snapshot import no_directory, no_file, no_skill
from skillwire.errors import FormatError, LimitError
from skillwire.skill.uri import DEFAULT_SCHEME, parse_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from skillwire.catalog.mapped import MappedCatalog
    from skillwire.skill import Diagnostic, SkillEntry


class FederatedCatalog(Catalog):
    """Upstreams by label. It has no templates: to complete one, input of a client would go to an upstream."""

    def __init__(self, upstreams: Mapping[str, MappedCatalog]) -> None:
        self._upstreams = dict(upstreams)
        self._labels = list(upstreams)

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page: upstreams in order, each in its own order."""
        index, inner = 0, None
        if cursor is not None:
            label, _, inner_cursor = decode_cursor("federated", cursor).partition("\n")
            if label not in self._upstreams:
                return Page([])
            index, inner = self._labels.index(label), inner_cursor or None
        room, entries = clamp_limit(limit), list["SkillEntry"]()
        while index < len(self._labels) and len(entries) < room:
            page = await self._upstreams[self._labels[index]].list_skills(inner, room - len(entries))
            entries += page.items
            inner = page.next_cursor
            index += inner is None
        if index == len(self._labels):
            return Page(entries)
        return Page(entries, encode_cursor("federated", f"{self._labels[index]}\n{inner or ''}"))

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry."""
        upstream = self._upstream(uri)
        if upstream is None:
            raise no_skill(uri)
        return await upstream.get_skill(uri)

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry, if it is known."""
        upstream = self._upstream(uri)
        return None if upstream is None else await upstream.peek_skill(uri)

    async def read_file(self, uri: str) -> SkillFile:
        """One file (O3)."""
        upstream = self._upstream(uri)
        if upstream is None:
            raise no_file(uri)
        try:
            return await upstream.read_file(uri)
        except LimitError as error:
            if error.reference != "file-too-large":
                raise
            label = parse_uri(uri).segments[
                0
            ]  # B1: the upstream's error has its own URI, and no key of the policy
            raise LimitError(
                "file-too-large",
                f"{uri!r:.300} is larger than this gateway accepts from {label!r}",
                f"the operator of the gateway can raise max-file-bytes of [upstream.{label}]",
                rule="B1",
            ) from error

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory."""
        upstream = self._upstream(uri)
        if upstream is None:
            raise no_directory(uri)
        return await upstream.read_directory(uri, cursor, limit)

    def changes(self) -> ChangeStream:
        """A stream of the changes of all upstreams."""
        return _MergedStream(upstream.changes() for upstream in self._upstreams.values())

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> list[str]:
        """Paths of listed skills that begin with ``beginning``."""
        found = [path for each in self._upstreams.values() for path in await each.suggest(beginning, limit)]
        return sorted(found)[:limit]

    async def is_local(self, uri: str) -> bool:
        """Whether the skill's bytes are on this machine."""
        upstream = self._upstream(uri)
        return upstream is not None and await upstream.is_local(uri)

    async def ready_archive(self, uri: str) -> ReadyArchive | None:
        """The archive that a skill came in."""
        upstream = self._upstream(uri)
        return None if upstream is None else await upstream.ready_archive(uri)

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """A test whether the upstream of ``uri`` still gives the same answers; all upstreams without a URI."""
        if uri is not None:
            try:
                upstream = self._upstream(uri)
            except FormatError:
                return None
            return None if upstream is None else await upstream.unchanged(uri)
        tests = [await each.unchanged() for each in self._upstreams.values()]
        known = [test for test in tests if test is not None]
        return (lambda: all(test() for test in known)) if len(known) == len(tests) else None

    async def problems(self) -> list[Diagnostic]:
        """Problems of every upstream."""
        return [problem for each in self._upstreams.values() for problem in await each.problems()]

    async def ignored(self) -> list[str]:
        """Paths that are not served because of their names."""
        return [path for each in self._upstreams.values() for path in await each.ignored()]

    async def follow(self) -> None:
        """Keep every upstream current until cancelled."""
        async with anyio.create_task_group() as group:
            for upstream in self._upstreams.values():
                group.start_soon(upstream.follow)

    def _upstream(self, uri: str) -> MappedCatalog | None:
        place = parse_uri(uri)
        return self._upstreams.get(place.segments[0]) if place.scheme == DEFAULT_SCHEME else None


class _MergedStream(ChangeStream):
    """The changes of several streams."""

    def __init__(self, sources: Iterable[ChangeStream]) -> None:
        super().__init__(ChangeFeed())
        self._sources = list(sources)
        for source in self._sources:
            source.forward(self.push)

    def close(self) -> None:
        """Stop listening to every stream."""
        for source in self._sources:
            source.close()
        super().close()
