"""Full-text search over the listed skills of a catalog.

- Only listed skills are found (L2).
- The first search builds the index. Each later search first applies the changes, and reads only changed skills
  again (S1). A change during the build is not lost. Concurrent first searches build the index once.
- A body is read through ``Catalog.read_file``, which verifies it (V1). With ``bodies=False`` nothing is read (V5).
  Bodies of dynamic skills are never read, because reading runs their function. A skill whose file cannot be read
  is found by its name and description, until it changes.
- Work on the index is done in a worker thread.

An index finds all skills of its catalog, and a word's frequency in them influences scores. So callers who may see
different skills have an index of their own ``VisibleCatalog`` each.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from anyio import lowlevel, to_thread

from skillwire.errors import NotFoundError, SkillwireError, StoreError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.search.fts5 import Document, Engine
from skillwire.search.text import parse_query
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.uri import parse_uri, root_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence, Set

    from skillwire.catalog.contract import Catalog, ChangeStream
    from skillwire.search.fts5 import Hit
    from skillwire.skill import SkillEntry

_BATCH = 64
_AT_ONCE = 8
_MANY = 16  # from here on, reading the listing is cheaper than one request for each change


class SearchIndex:
    """A search index of ``catalog``. The first search reads the catalog. ``close`` it in the end."""

    def __init__(self, catalog: Catalog, *, bodies: bool = True, limits: Limits = DEFAULT_LIMITS) -> None:
        self._catalog = catalog
        self._bodies = bodies
        self._limits = limits
        self._turn = anyio.Lock()
        self._engine: Engine | None = None
        self._changes: ChangeStream | None = None
        self._due: frozenset[str] = frozenset()  # keys of changes that are not applied yet
        self._closed = False

    async def search(self, query: str, limit: int = 10) -> list[Hit]:
        """Return the best ``limit`` skills for ``query``, best first. Any text is a valid query."""
        parsed = parse_query(query, self._limits)
        if not parsed or limit < 1:
            return []
        engine = await self._current()
        return await to_thread.run_sync(engine.search, parsed, limit)

    def close(self) -> None:
        """Release everything. A running search may fail; later ones do."""
        self._closed = True
        self._release()

    async def _current(self) -> Engine:
        async with self._turn:
            self._refuse_if_closed()
            engine = self._engine or await self._build()
            await self._catch_up(engine)
            return engine

    async def _build(self) -> Engine:
        # Before the listing, so that changes during the listing are not lost.
        self._changes = self._catalog.changes()
        building = Engine()
        try:
            await self._fill(building, self._catalog.entries())
            await to_thread.run_sync(building.optimize)
            self._refuse_if_closed()
        except BaseException:
            building.close()
            self._release()
            raise
        self._engine = building
        return building

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreError("search-closed", "the search index is closed", "make a new one")

    def _release(self) -> None:
        if self._changes is not None:
            self._changes.close()
        if self._engine is not None:
            self._engine.close()
        self._changes, self._engine, self._due = None, None, frozenset()

    async def _catch_up(self, engine: Engine) -> None:
        if self._changes is None:
            return
        try:
            changed = (await self._changes.pending()).uris
        except SkillwireError:  # the changes are lost, so the next search builds the index again
            self._release()
            raise
        self._due |= {_key(uri) for uri in changed}
        if self._due:
            there = await self._fill(engine, self._listed(self._due))
            await to_thread.run_sync(engine.put, (), self._due - there)
            self._due = frozenset()

    async def _listed(self, keys: Set[str]) -> AsyncIterator[SkillEntry]:
        """Yield the entries of ``keys`` that are listed now."""
        if len(keys) > _MANY:
            async for entry in self._catalog.entries():
                if _key(entry.uri) in keys:
                    yield entry
            return
        for key in sorted(keys):
            path, entry = root_of(key).path, None
            with suppress(NotFoundError):
                # Suggestions are listed skills, and an exact path comes first.
                if path in await self._catalog.suggest(path, 1):
                    entry = await self._catalog.peek_skill(key)
            if entry is not None:
                yield entry

    async def _fill(self, engine: Engine, entries: AsyncIterator[SkillEntry]) -> frozenset[str]:
        """Index ``entries`` in batches, and return their keys."""
        keys: set[str] = set()
        batch: list[SkillEntry] = []
        async for entry in entries:
            keys.add(_key(entry.uri))
            batch.append(entry)
            if len(batch) == _BATCH:
                await self._put(engine, batch)
                batch = []
        await self._put(engine, batch)
        return frozenset(keys)

    async def _put(self, engine: Engine, entries: Sequence[SkillEntry]) -> None:
        waiting, documents = iter(entries), list[Document]()

        async def work() -> None:
            for entry in waiting:
                documents.append(await self._document(entry))
                await lowlevel.checkpoint()  # a local catalog reads without waiting

        async with anyio.create_task_group() as group:
            for _ in range(min(_AT_ONCE, len(entries))):
                group.start_soon(work)
        documents.sort()
        await to_thread.run_sync(engine.put, documents)
        self._refuse_if_closed()

    async def _document(self, entry: SkillEntry) -> Document:
        body = ""
        if self._bodies and not entry.is_dynamic:
            with suppress(SkillwireError):
                file = await self._catalog.read_file(entry.uri)
                body = parse_skill_md(file.data, self._limits).body
        bound = self._limits.max_indexed_text
        return Document(_key(entry.uri), entry.uri, entry.name[:bound], entry.description[:bound], body[:bound])


def _key(uri: str) -> str:
    return str(parse_uri(uri))
