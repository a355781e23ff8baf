"""All upstreams as one catalog, each below its label (N1, O1, O3).

The label is the first segment of every URI, and it alone selects the upstream: a read never crosses origins. The
rest of the URI is mapped to that of the upstream (``catalog/uri_map.py``). An upstream also gets requests for
skills that it does not list, and reports the reason itself if it cannot answer (G1). Errors are made safe for
clients (``upstream.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio

from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Catalog,
    Change,
    ChangeStream,
    DirectoryChild,
    Page,
    ReadyArchive,
    RelayStream,
    SkillFile,
    no_directory,
    no_file,
    no_skill,
)
from skillwire.catalog.cursor import beginning_with, page_of_sources
from skillwire.errors import FormatError, NotFoundError, ProtocolError, SkillwireError, VerificationError
from skillwire.gateway.upstream import safe_error, upstream_problems, uri_map_of
from skillwire.skill.uri import DEFAULT_SCHEME, parse_uri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from skillwire.catalog.uri_map import UriMap
    from skillwire.client.remote import RemoteCatalog
    from skillwire.gateway.approval_gate import ApprovalGate
    from skillwire.skill import Diagnostic, SkillEntry

T = TypeVar("T")

_MAX_MAPPED = 100_000  # entries


@dataclass(frozen=True, slots=True)
class Upstream:
    """One upstream. ``gate`` serves the admitted skills, under the URIs of the upstream.

    ``address`` is for the operator only: clients must not learn it (R4).
    """

    label: str
    remote: RemoteCatalog | None  # None for a folder
    gate: ApprovalGate
    address: str = ""

    def uri_map(self) -> UriMap:
        """The map of the upstream's URIs to those of the gateway."""
        return uri_map_of(self.label, self.remote)


class FederatedCatalog(Catalog):
    """Upstreams by label. It has no templates: to complete one, input of a client would go to an upstream."""

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = dict(upstreams)
        self._mapped: dict[tuple[str, str], tuple[SkillEntry, UriMap, SkillEntry]] = {}  # by label and inner URI
        self._paths: list[str] | None = None  # of listed skills, sorted; None after skills were added or removed
        self._watch = self.changes()
        self._watch.forward(self._forget_paths)

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page: upstreams in order, each in its own order."""

        async def list_outer(upstream: Upstream, cursor: str | None, limit: int) -> Page[SkillEntry]:
            page = await upstream.gate.list_skills(cursor, limit)
            return Page([self._outer(upstream, entry) for entry in page.items], page.next_cursor)

        sources = {label: partial(list_outer, upstream) for label, upstream in self._upstreams.items()}
        return await page_of_sources("federated", sources, cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry; an invalid one does not exist for clients."""
        upstream, inner = self._find(uri, no_skill)
        try:
            return self._outer(upstream, await _answer(upstream, uri, upstream.gate.get_skill(inner)))
        except (NotFoundError, ProtocolError, VerificationError, FormatError) as error:
            raise no_skill(uri) from error

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry, if it is known."""
        found = self._known(uri)
        entry = None if found is None else await found[0].gate.peek_skill(found[1])
        return None if found is None or entry is None else self._outer(found[0], entry)

    async def read_file(self, uri: str) -> SkillFile:
        """One file (O3)."""
        upstream, inner = self._find(uri, no_file)
        try:
            file = await _answer(upstream, uri, upstream.gate.read_file(inner))
        except NotFoundError as error:
            raise no_file(uri) from error
        return file._replace(uri=str(parse_uri(uri)))

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory."""
        upstream, inner = self._find(uri, no_directory)
        try:
            page = await _answer(upstream, uri, upstream.gate.read_directory(inner, cursor, limit))
        except NotFoundError as error:
            raise no_directory(uri) from error
        outer = upstream.uri_map().outer
        return Page([child._replace(uri=outer(child.uri)) for child in page.items], page.next_cursor)

    def changes(self) -> ChangeStream:
        """A stream of the changes of all upstreams."""
        return RelayStream(
            (each.gate.changes(), lambda change, each=each: change.translate(partial(map, each.uri_map().outer)))
            for each in self._upstreams.values()
        )

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``."""
        if self._paths is None:
            self._paths = sorted([entry.path async for entry in self.entries()])
        return beginning_with(self._paths, beginning, limit)

    async def ready_archive(self, uri: str) -> ReadyArchive | None:
        """The archive that a skill came in."""
        found = self._known(uri)
        return None if found is None else await found[0].gate.ready_archive(found[1])

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """A test whether the upstream of ``uri`` still gives the same answers; all upstreams without a URI."""
        if uri is None:
            each = [(upstream, await upstream.gate.unchanged()) for upstream in self._upstreams.values()]
        else:
            try:
                found = self._known(uri)
            except FormatError:
                return None
            each = [] if found is None else [(found[0], await found[0].gate.unchanged(found[1]))]
        tests = [(test, upstream, upstream.uri_map()) for upstream, test in each if test is not None]
        if len(tests) < len(each) or (uri is not None and not each):
            return None
        return lambda: all(test() and upstream.uri_map() == uri_map for test, upstream, uri_map in tests)

    async def problems(self) -> list[Diagnostic]:
        """Problems of every upstream."""
        return [
            problem.under(label)
            for label, upstream in self._upstreams.items()
            for problem in await upstream_problems(upstream.gate, upstream.remote)
        ]

    async def ignored(self) -> list[str]:
        """Paths that are not served because of their names."""
        return [f"{label}/{path}" for label, each in self._upstreams.items() for path in await each.gate.ignored()]

    async def follow(self) -> None:
        """Keep every upstream current until cancelled."""
        async with anyio.create_task_group() as group:
            for upstream in self._upstreams.values():
                group.start_soon(upstream.gate.follow)

    def _known(self, uri: str) -> tuple[Upstream, str] | None:
        """The upstream of ``uri``, and the URI there; ``None`` if there is no such upstream."""
        place = parse_uri(uri)
        upstream = self._upstreams.get(place.segments[0]) if place.scheme == DEFAULT_SCHEME else None
        inner = None if upstream is None else upstream.uri_map().inner(uri)
        return None if upstream is None or inner is None else (upstream, inner)

    def _find(self, uri: str, missing: Callable[[str], NotFoundError]) -> tuple[Upstream, str]:
        found = self._known(uri)
        if found is None:
            raise missing(uri)
        return found

    def _outer(self, upstream: Upstream, entry: SkillEntry) -> SkillEntry:
        """The mapped entry. The same object for the same entry: caches further out compare identities."""
        uri_map, key = upstream.uri_map(), (upstream.label, entry.uri)
        known = self._mapped.get(key)
        if known is not None and known[0] is entry and known[1] == uri_map:
            return known[2]
        if len(self._mapped) >= _MAX_MAPPED:
            self._mapped.clear()
        mapped = uri_map.entry(entry)
        self._mapped[key] = entry, uri_map, mapped
        return mapped

    def _forget_paths(self, change: Change) -> None:
        if change.added or change.removed:
            self._paths = None


async def _answer(upstream: Upstream, uri: str, asked: Awaitable[T]) -> T:
    """The answer of an upstream. An error that may contain text of the upstream is replaced."""
    try:
        return await asked
    except (NotFoundError, VerificationError, FormatError):
        raise
    except SkillwireError as error:
        safe = safe_error(error, upstream.label, uri)
        if safe is error:
            raise
        raise safe from error
