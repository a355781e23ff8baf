"""Taking and keeping snapshots of skills whose upstream promises no digests (V7, B1, C1)."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anyio import to_thread

from skillwire.errors import FormatError, LimitError, NotFoundError, StoreError
from skillwire.gateway.provenance import SNAPSHOT, moment
from skillwire.skill.digest import digest_of
from skillwire.skill.entry import Resource, SkillEntry
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.uri import is_within, parse_uri, skill_root
from skillwire.skill.verify import VerifiedFile, verify_file
from skillwire.store.contract import SeenEntries
from skillwire.store.write_behind import read_cached

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.limits import Limits
    from skillwire.store.content_cache import ContentCache
    from skillwire.store.contract import Store

log = logging.getLogger("skillwire.gateway")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was read (``entry``, with digests of our own), and what the upstream had said about it (``listed``)."""

    entry: SkillEntry
    listed: SkillEntry

    def said_as(self, listed: SkillEntry) -> SkillEntry:
        """The entry, with what is said about the skill now."""
        said = {**listed.meta.meta, SNAPSHOT: self.entry.meta.meta[SNAPSHOT]}
        return replace(self.entry, meta=replace(listed.meta, meta=said))


class SnapshotTaker:
    """Reads skills of ``catalog`` whole."""

    def __init__(self, catalog: Catalog, label: str, limits: Limits) -> None:
        self._catalog = catalog
        self._label = label
        self._limits = limits

    async def take(self, listed: SkillEntry) -> tuple[Snapshot, list[VerifiedFile]]:
        """A snapshot of the skill, and its files; ``LimitError`` if it is too large to be one."""
        full = await self._catalog.get_skill(listed.uri)
        contents = await self._read(full, await self._files(full))
        resources = tuple(sorted(Resource(uri, digest_of(data), len(data)) for uri, data in contents.items()))
        frontmatter = parse_skill_md(contents[listed.uri], self._limits).frontmatter
        if frontmatter.get("name") != skill_root(parse_uri(listed.uri)).segments[-1]:
            raise FormatError(
                "name-mismatch", f"the SKILL.md of {listed.uri!r:.300} has another name", "mend it", rule="U3"
            )
        meta = replace(full.meta, meta={**full.meta.meta, SNAPSHOT: moment(time.time())})
        entry = SkillEntry(listed.uri, frontmatter, resources, meta)
        return Snapshot(entry, listed), [verify_file(entry, uri, data) for uri, data in contents.items()]

    async def _read(self, entry: SkillEntry, uris: Sequence[str]) -> dict[str, bytes]:
        contents, size = dict[str, bytes](), 0
        for uri in uris:
            contents[uri] = (await self._catalog.read_file(uri)).data
            size += len(contents[uri])
            if size > self._limits.skill_bytes:
                raise self._too_large(entry, f"more than {self._limits.skill_bytes} bytes")
        return contents

    async def _files(self, entry: SkillEntry) -> list[str]:
        """The files that are known: those of the entry, and those that its directories show."""
        root = skill_root(parse_uri(entry.uri))
        places = {file.uri: parse_uri(file.uri) for file in entry.files}
        found = {str(place): uri for uri, place in places.items() if is_within(root, place)}
        try:
            async for child in self._catalog.walk(str(root)):
                found.setdefault(str(parse_uri(child.uri)), child.uri)
                if len(found) > self._limits.skill_resources:
                    raise self._too_large(entry, f"more than {self._limits.skill_resources} files")
        except NotFoundError:
            pass  # an upstream that reads no directories: what its entry names is what there is
        found[str(parse_uri(entry.uri))] = entry.uri
        return list(found.values())

    def _too_large(self, entry: SkillEntry, what: str) -> LimitError:
        return LimitError(
            "skill-too-large",
            f"{entry.uri!r:.300} of {self._label!r} has {what}",
            "leave it out of 'materialize'",
            rule="B1",
        )


class SnapshotStore:
    """Where the snapshots of one upstream are kept: entries in the store, bytes in the cache."""

    def __init__(self, label: str, store: Store, cache: ContentCache, *, forget: bool = False) -> None:
        self._label = label
        self._store = store
        self._cache = cache
        self._forget = forget

    async def read(self, file: Resource) -> bytes | None:
        """The bytes of one file, if they are still there and still the same (C1)."""
        return await read_cached(self._cache, self._label, file)

    async def keep(self, files: Sequence[VerifiedFile]) -> None:
        """Keep bytes."""
        for file in files:
            await to_thread.run_sync(self._cache.put, self._label, file)

    async def remember(self, snapshots: Sequence[Snapshot]) -> None:
        """Keep entries, over a restart. That it fails is logged; the snapshots are served all the same."""
        entries = tuple(entry for each in snapshots for entry in (each.entry, each.listed))
        try:
            await self._store.put_entries(snapshot_label(self._label), SeenEntries(entries, time.time()))
        except StoreError as error:
            log.warning("snapshots of %r are not remembered: %s", self._label, error.message)

    async def recall(self) -> list[Snapshot]:
        """The snapshots of an earlier run."""
        if self._forget:
            return []
        try:
            seen = await self._store.entries(snapshot_label(self._label))
        except StoreError as error:
            log.warning("snapshots of %r are not known any more: %s", self._label, error.message)
            return []
        if seen is None:
            return []
        pairs = zip(seen.entries[::2], seen.entries[1::2], strict=False)
        said = {SNAPSHOT: moment(seen.at)}
        return [Snapshot(replace(entry, meta=replace(entry.meta, meta=said)), listed) for entry, listed in pairs]


def snapshot_label(label: str) -> str:
    """Where the store has the snapshots of an upstream: no label can be that."""
    return f"{label}#snapshots"
