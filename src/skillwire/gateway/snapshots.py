"""Snapshots: skills without digests, read completely and served with the gateway's own digests (V7, B1, C1).

Snapshots are taken only of the skills that the policy lists under ``materialize``. Because the operator chose
them, they are read before a client requests them (V5). Other skills with gaps are served unchanged.

- A snapshot is taken completely or not at all, within the limits of one skill (B1, E6).
- Its entry has the digests of the bytes that were read; ``_meta`` marks them as the gateway's. The bytes are in
  the cache and are compared with the entry on each read (C1, V1). If the cache has lost them, they are read again.
  If they differ then, a new snapshot is taken (A2).
- A snapshot is kept until the upstream changes its listed entry, also over a restart. It is dropped when the
  upstream promises digests itself, or the policy no longer lists the skill (R2).

One skill has up to four entries here:

- *listed*: from the upstream's listing. It is saved with the snapshot, to notice that the upstream changed it.
- *known*: the upstream's fullest entry that is in memory. Some dialects list short entries, without files. Whether
  a skill needs a snapshot is decided by this one.
- *the entry of the snapshot*: the files that were read, with the gateway's digests.
- *served*: the entry of the snapshot with the metadata of the known one. Without a snapshot, the known one.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import anyio

from skillwire.amounts import utc_text
from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Change,
    ChangeFeed,
    ChangeStream,
    DirectoryChild,
    Page,
    SkillFile,
    WrapperCatalog,
    no_file,
)
from skillwire.catalog.cursor import page_of_directory
from skillwire.errors import (
    FormatError,
    LimitError,
    NotFoundError,
    SkillwireError,
    StoreError,
    UpstreamError,
    VerificationError,
)
from skillwire.gateway.federation import safe_error
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.entry import Resource, SkillEntry, digest_of
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.uri import SKILL_MD, SkillUri, is_within, parse_uri, root_of
from skillwire.skill.verify import VerifiedFile, is_same, verify_file
from skillwire.store.content_cache import keep_cached, read_cached
from skillwire.store.records import SeenEntries
from skillwire.wire.meta import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.store.content_cache import ContentCache
    from skillwire.store.store import Store

_RETRY_SECONDS = 30.0
# Errors whose messages contain nothing of the upstream.
_OWN_ERRORS = (FormatError, NotFoundError, VerificationError)

log = logging.getLogger("skillwire.gateway")


@dataclass(frozen=True, slots=True)
class SkillSnapshot:
    """``entry`` describes the bytes that were read, with our digests; ``listed`` was the upstream's entry."""

    entry: SkillEntry
    listed: SkillEntry

    def with_meta_of(self, known: SkillEntry) -> SkillEntry:
        """The entry with the current metadata of the skill."""
        meta = {**known.meta.meta, SNAPSHOT: self.entry.meta.meta[SNAPSHOT]}
        return replace(self.entry, meta=replace(known.meta, meta=meta))


class _Served(NamedTuple):
    """A served entry, and the two objects that it was made of."""

    entry: SkillEntry
    known: SkillEntry
    snapshot: SkillSnapshot


class _Failure(NamedTuple):
    """Why there is no snapshot of the skill that was listed like this."""

    listed: SkillEntry
    error: SkillwireError


class MaterializedCatalog(WrapperCatalog):
    """``inner``, with snapshots of the skills that ``is_selected`` selects and that have gaps."""

    def __init__(
        self,
        inner: Catalog,
        label: str,
        is_selected: Callable[[SkillEntry], bool],
        saved: SnapshotStore,
        *,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(inner)
        self._label = label
        self._is_selected = is_selected
        self._saved = saved
        self._limits = limits
        self._snapshots: dict[SkillUri, SkillSnapshot] = {}
        self._failed: dict[SkillUri, _Failure] = {}
        # Caches around this catalog compare entries by identity, so an entry is made once and kept.
        self._served: dict[SkillUri, _Served] = {}
        self._is_saved = True
        self._wake = anyio.Event()
        self._feed = ChangeFeed()
        self._watch = inner.changes()
        self._watch.forward(self._receive)

    # The catalog

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the listing."""
        page = await self.inner.list_skills(cursor, limit)
        return Page([self._serve(await self._known(entry)) for entry in page.items], page.next_cursor)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry; the upstream is not asked if there is a snapshot."""
        return await self._snapshot_at(uri) or self._serve(await self.inner.get_skill(uri))

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry, if it is known."""
        entry = await self.inner.peek_skill(uri)
        return await self._snapshot_at(uri) if entry is None else self._serve(entry)

    async def read_file(self, uri: str) -> SkillFile:
        """One file, from the snapshot if there is one."""
        snapshot = await self._around(parse_uri(uri).parent)
        if snapshot is None:
            return await self.inner.read_file(uri)
        resource = snapshot.entry.resource(uri)
        if resource is None or resource.digest is None:
            raise no_file(uri)
        data = await self._saved.read(resource)
        if data is None:
            data = await self._read_again(snapshot, resource.uri)
        return SkillFile(str(parse_uri(uri)), verify_file(snapshot.entry, uri, data, self._limits).data)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory, from the snapshot if there is one."""
        snapshot = await self._around(parse_uri(uri))
        if snapshot is None:
            return await self.inner.read_directory(uri, cursor, limit)
        return page_of_directory(snapshot.entry, uri, cursor, limit)

    def changes(self) -> ChangeStream:
        """Changes of the source and of the snapshots."""
        return self._feed.subscribe()

    async def problems(self) -> Sequence[Diagnostic]:
        """Problems of the source, and snapshots that could not be taken."""
        own = [
            Diagnostic(
                "snapshot-failed",
                f"no snapshot of {entry.uri!r:.300} from {self._label!r}: {error.message} [{error.reference}]",
                "the skill stays dynamic; the gateway tries again when the upstream changes its entry",
                file=entry.path,
                skill=entry.path,
            )
            for entry, error in self._failed.values()
        ]
        return [*await self.inner.problems(), *own]

    async def follow(self) -> None:
        """Keep the source current and take missing snapshots, one after another, until cancelled."""
        self._snapshots = {each.entry.root: each for each in await self._saved.load()}
        async with anyio.create_task_group() as group:
            group.start_soon(self.inner.follow)
            while True:
                self._wake = anyio.Event()
                await self._update()
                with anyio.move_on_after(_RETRY_SECONDS):
                    await self._wake.wait()

    # Which snapshot is served

    async def _snapshot_at(self, uri: str) -> SkillEntry | None:
        place = parse_uri(uri)
        snapshot = self._snapshots.get(place.parent) if place.segments[-1] == SKILL_MD else None
        # After a restart the upstream's entry may not be in memory yet. Then the saved listed one takes its place.
        known = None if snapshot is None else await self._known(snapshot.listed)
        return None if known is None or not self._needs_snapshot(known) else self._serve(known)

    async def _known(self, entry: SkillEntry) -> SkillEntry:
        """The known entry of a skill that may need a snapshot; ``entry`` if there is none in memory."""
        return await self.inner.peek_skill(entry.uri) or entry if self._needs_snapshot(entry) else entry

    def _serve(self, known: SkillEntry) -> SkillEntry:
        """The served entry of a skill: from its snapshot, or ``known`` if it has or needs none."""
        root = known.root
        snapshot = self._snapshots.get(root)
        if snapshot is None or not self._needs_snapshot(known):
            return known
        served = self._served.get(root)
        if served is None or served.known is not known or served.snapshot is not snapshot:
            served = self._served[root] = _Served(snapshot.with_meta_of(known), known, snapshot)
        return served.entry

    def _needs_snapshot(self, entry: SkillEntry) -> bool:
        return bool(entry.gaps) and self._is_selected(entry)

    async def _is_needed(self, snapshot: SkillSnapshot) -> bool:
        return self._needs_snapshot(await self.inner.peek_skill(snapshot.entry.uri) or snapshot.listed)

    async def _around(self, place: SkillUri) -> SkillSnapshot | None:
        """The innermost snapshot at or around ``place`` that is served."""
        for root in place.upwards():
            snapshot = self._snapshots.get(root)
            if snapshot is not None and await self._is_needed(snapshot):
                return snapshot
        return None

    # Taking and dropping snapshots

    def _receive(self, change: Change) -> None:
        for uri in change.removed:
            self._drop(root_of(uri))
        self._feed.publish(change)
        self._wake.set()

    def _drop(self, root: SkillUri) -> None:
        self._served.pop(root, None)
        if self._snapshots.pop(root, None) is not None:
            self._is_saved = False

    async def _save(self) -> None:
        self._is_saved = True
        await self._saved.save(list(self._snapshots.values()))

    async def _update(self) -> None:
        """Take missing snapshots and drop those that are no longer needed."""
        listed = {
            entry.root: entry
            async for entry in self.inner.entries()
            if self._needs_snapshot(await self._known(entry))
        }
        for root in self._failed.keys() - listed.keys():
            del self._failed[root]
        for root, entry in listed.items():
            snapshot, failure = self._snapshots.get(root), self._failed.get(root)
            is_current = snapshot is not None and is_same(snapshot.listed, entry)
            # Only an unreachable upstream is worth another attempt before the entry changes.
            is_final = (
                failure is not None
                and is_same(failure.listed, entry)
                and not isinstance(failure.error, UpstreamError)
            )
            if not is_current and not is_final:
                await self._take(root, entry)
        for root, snapshot in list(self._snapshots.items()):
            if not await self._is_needed(snapshot):
                self._drop(root)
        if not self._is_saved:
            await self._save()

    async def _take(self, root: SkillUri, entry: SkillEntry) -> None:
        try:
            if not self._needs_snapshot(await self.inner.get_skill(entry.uri)):
                self._feed.publish(Change(changed=frozenset({entry.uri})))
                return
            snapshot, files = await take_snapshot(self.inner, self._label, entry, self._limits)
            await self._saved.put_files(files)
        except SkillwireError as raised:
            log.info("no snapshot of %s from %r: %s", entry.uri, self._label, raised.message)
            error = raised if isinstance(raised, _OWN_ERRORS) else safe_error(raised, self._label, entry.uri)
            before, self._failed[root] = self._failed.get(root), _Failure(entry, error)
            if before is None or before.error.message != error.message:
                self._feed.publish(Change(changed=frozenset({entry.uri})))  # so that problems are reported again
            return
        self._failed.pop(root, None)
        before = self._snapshots.get(root)
        self._snapshots[root] = snapshot
        await self._save()
        if before is None or not is_same(before.entry, snapshot.entry):
            self._feed.publish(Change(changed=frozenset({snapshot.entry.uri})))

    async def _read_again(self, snapshot: SkillSnapshot, uri: str) -> bytes:
        """Bytes that the cache has lost, from the upstream. If they changed, the snapshot is dropped."""
        try:
            data = (await self.inner.read_file(uri)).data
            await self._saved.put_files([verify_file(snapshot.entry, uri, data, self._limits)])
        except (NotFoundError, VerificationError) as error:
            self._drop(snapshot.entry.root)
            self._feed.publish(Change(changed=frozenset({snapshot.entry.uri})))
            self._wake.set()
            raise no_file(uri) from error
        return data


async def take_snapshot(
    catalog: Catalog, label: str, listed: SkillEntry, limits: Limits
) -> tuple[SkillSnapshot, list[VerifiedFile]]:
    """Read a skill completely; ``LimitError`` if it is too large for a snapshot."""

    def too_large(amount: str) -> LimitError:
        message = f"{listed.uri!r:.300} of {label!r} has {amount}"
        return LimitError("skill-too-large", message, "remove it from 'materialize'", rule="B1")

    full = await catalog.get_skill(listed.uri)
    root = full.root
    places = {file.uri: parse_uri(file.uri) for file in full.files}
    found = {str(place): uri for uri, place in places.items() if is_within(root, place)}
    try:
        async for child in catalog.walk(str(root)):
            found.setdefault(str(parse_uri(child.uri)), child.uri)
            if len(found) > limits.skill_resources:
                raise too_large(f"more than {limits.skill_resources} files")
    except NotFoundError:
        pass  # the upstream has no directories: only the files of the entry are known
    found[str(parse_uri(full.uri))] = full.uri
    contents, size = dict[str, bytes](), 0
    for uri in found.values():
        contents[uri] = (await catalog.read_file(uri)).data
        size += len(contents[uri])
        if size > limits.skill_bytes:
            raise too_large(f"more than {limits.skill_bytes} bytes")
    resources = tuple(sorted(Resource(uri, digest_of(data), len(data)) for uri, data in contents.items()))
    frontmatter = parse_skill_md(contents[listed.uri], limits).frontmatter
    if frontmatter.get("name") != root.segments[-1]:
        message = f"the SKILL.md of {listed.uri!r:.300} has another name"
        raise FormatError("name-mismatch", message, "the name must be the last segment of the path", rule="U3")
    meta = replace(full.meta, meta={**full.meta.meta, SNAPSHOT: utc_text(time.time(), "seconds")})
    entry = SkillEntry(listed.uri, frontmatter, resources, meta)
    return SkillSnapshot(entry, listed), [verify_file(entry, uri, data) for uri, data in contents.items()]


class SnapshotStore:
    """The saved snapshots of one upstream: entries in the store, bytes in the cache."""

    def __init__(self, label: str, store: Store, cache: ContentCache, *, ignores_saved: bool = False) -> None:
        self._label = label
        self._store = store
        self._cache = cache
        self._ignores_saved = ignores_saved

    async def read(self, file: Resource) -> bytes | None:
        """The bytes of one file, if the cache has them and they match (C1)."""
        return await read_cached(self._cache, self._label, file)

    async def put_files(self, files: Sequence[VerifiedFile]) -> None:
        """Put files into the cache."""
        for file in files:
            await keep_cached(self._cache, self._label, file)

    async def save(self, snapshots: Sequence[SkillSnapshot]) -> None:
        """Save the entries. A failure is logged; the snapshots are served anyway."""
        entries = tuple(entry for each in snapshots for entry in (each.entry, each.listed))
        try:
            await self._store.put_entries(snapshot_label(self._label), SeenEntries(entries, time.time()))
        except StoreError as error:
            log.warning("snapshots of %r could not be saved: %s", self._label, error.message)

    async def load(self) -> list[SkillSnapshot]:
        """The snapshots of an earlier run."""
        if self._ignores_saved:
            return []
        try:
            seen = await self._store.entries(snapshot_label(self._label))
        except StoreError as error:
            log.warning("saved snapshots of %r could not be read: %s", self._label, error.message)
            return []
        if seen is None:
            return []
        pairs = zip(seen.entries[::2], seen.entries[1::2], strict=False)
        meta = {SNAPSHOT: utc_text(seen.at, "seconds")}
        return [
            SkillSnapshot(replace(entry, meta=replace(entry.meta, meta=meta)), listed) for entry, listed in pairs
        ]


def snapshot_label(label: str) -> str:
    """The key of an upstream's snapshots in the store. No label contains '#'."""
    return f"{label}#snapshots"
