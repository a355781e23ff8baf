"""Search over what callers may see: an index for each view of the skills, made by the first search in it.

A caller's index holds what it may see and nothing else, so that not even the order of hits depends on the rest.
The views searched last are kept, up to a bound, for as long as the server runs.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcp.server.lowlevel import Server

    from skillwire.catalog.contract import Catalog
    from skillwire.search.index import Hit, SearchIndex
    from skillwire.skill import SkillEntry

_MOST_VIEWS = 16


class Searching:
    """Finds skills in what callers of ``server`` may see. Ends with the server."""

    def __init__(self, server: Server[Any]) -> None:
        self._indexes: OrderedDict[Catalog, SearchIndex] = OrderedDict()  # used last stands last
        self._running = 0
        self._end_with(server)

    async def search(self, catalog: Catalog, query: str, limit: int) -> list[tuple[Hit, SkillEntry]]:
        """The best skills of ``catalog`` for ``query``, best first."""
        hits = await self._index(catalog).search(query, limit)
        found = [(hit, await catalog.peek_skill(hit.uri)) for hit in hits]
        return [(hit, entry) for hit, entry in found if entry is not None]

    def _index(self, catalog: Catalog) -> SearchIndex:
        from skillwire.search.index import SearchIndex  # late: only the first search needs it

        index = self._indexes.pop(catalog, None) or SearchIndex(catalog)
        self._indexes[catalog] = index
        while len(self._indexes) > _MOST_VIEWS:
            self._indexes.popitem(last=False)[1].close()
        return index

    def _end_with(self, server: Server[Any]) -> None:
        """Close everything when the last of the server's runs ends: in memory each connection is a run."""
        inner = server.lifespan

        @asynccontextmanager
        async def lifespan(app: Server[Any]) -> AsyncGenerator[Any]:
            self._running += 1
            try:
                async with inner(app) as state:
                    yield state
            finally:
                self._running -= 1
                while not self._running and self._indexes:
                    self._indexes.popitem()[1].close()

        server.lifespan = lifespan
