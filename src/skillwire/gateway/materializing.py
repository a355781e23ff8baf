"""Snapshots: what an upstream does not promise, read whole once and served with digests of the gateway's own (V7).

A catalog around an upstream's. Only for skills that the policy lists under ``materialize``: an operator's explicit
choice, which is also why they are read before anybody asks for them (V5). Whatever else has gaps stays as it is.

- A snapshot is read within the bounds of one skill (B1, E6), and is there as a whole or not at all.
- Its entry says the digests of what was read; ``_meta`` says that these are the gateway's and not the upstream's.
  Bytes are kept in the cache and compared with that entry on each read (C1, V1). If they are gone from the cache,
  they are read again, and if they are other bytes by then, it is a new snapshot (A2).
- It stays until the upstream says something else about the skill. It is remembered, and survives a restart. Where
  the upstream promises everything itself, or the policy names the skill no more, there is no snapshot (R2).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from skillwire.catalog.changes import Change, ChangeFeed, ChangeStream
from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, DirectoryChild, Page, SkillFile
from skillwire.catalog.cursor import page_of
from skillwire.catalog.manifest import children_in
from skillwire.catalog.snapshot import no_directory, no_file
from skillwire.catalog.wrapper import WrapperCatalog
from skillwire.client.entry_table import root_of
from skillwire.client.refresh import is_same
from skillwire.errors import NotFoundError, SkillwireError, UpstreamError, VerificationError
from skillwire.gateway.snapshots import Snapshot, SnapshotTaker
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.uri import SKILL_MD, SkillUri, parse_uri
from skillwire.skill.verify import verify_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.gateway.snapshots import SnapshotStore
    from skillwire.skill import SkillEntry

_AGAIN_SECONDS = 30.0  # before what an upstream could not give is tried again

log = logging.getLogger("skillwire.gateway")


class MaterializingCatalog(WrapperCatalog):
    """``inner``, with snapshots of the skills that ``is_wanted`` names and that have gaps."""

    def __init__(
        self,
        inner: Catalog,
        label: str,
        is_wanted: Callable[[SkillEntry], bool],
        kept: SnapshotStore,
        *,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(inner)
        self._label = label
        self._is_wanted = is_wanted
        self._kept = kept
        self._taker = SnapshotTaker(inner, label, limits)
        self._limits = limits
        self._snapshots: dict[SkillUri, Snapshot] = {}
        self._failed: dict[SkillUri, tuple[SkillEntry, SkillwireError]] = {}
        self._stated: dict[SkillUri, tuple[SkillEntry, Snapshot, SkillEntry]] = {}
        self._is_remembered = True  # whether the store has the snapshots as they are here
        self._news = anyio.Event()
        self._feed = ChangeFeed()
        self._watch = inner.changes()
        self._watch.forward(self._heard)

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the listing, with snapshots where there are any."""
        page = await self.inner.list_skills(cursor, limit)
        return Page([self._served(await self._known(entry)) for entry in page.items], page.next_cursor)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry, as a snapshot if there is one: then nobody is asked."""
        return await self._snapshot_at(uri) or self._served(await self.inner.get_skill(uri))

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry as it is known."""
        entry = await self.inner.peek_skill(uri)
        return await self._snapshot_at(uri) if entry is None else self._served(entry)

    async def read_file(self, uri: str) -> SkillFile:
        """One file: of a snapshot as it was taken, else as the catalog inside has it."""
        snapshot = await self._around(parse_uri(uri).parent)
        if snapshot is None:
            return await self.inner.read_file(uri)
        resource = snapshot.entry.resource(uri)
        if resource is None or resource.digest is None:
            raise no_file(uri)
        data = await self._kept.read(resource)
        if data is None:
            data = await self._again(snapshot, resource.uri)
        return SkillFile(str(parse_uri(uri)), verify_file(snapshot.entry, uri, data, self._limits).data)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory: of a snapshot as it was taken, else as the catalog inside has it."""
        place = parse_uri(uri)
        snapshot = await self._around(place)
        if snapshot is None:
            return await self.inner.read_directory(uri, cursor, limit)
        children = children_in(snapshot.entry, place)
        if not children:
            raise no_directory(uri)
        return page_of(f"directory {place.path}", sorted(children), lambda name: children[name], cursor, limit)

    def changes(self) -> ChangeStream:
        """What changes inside, and what becomes a snapshot."""
        return self._feed.subscribe()

    async def problems(self) -> Sequence[Diagnostic]:
        """The problems of the catalog inside, and what could not be read whole."""
        own = [
            Diagnostic(
                "snapshot-failed",
                f"no snapshot of {entry.uri!r:.300} from {self._label!r}: {error.message} [{error.reference}]",
                "it stays dynamic, and is tried again when the upstream says something else about it",
                file=entry.path,
                skill=entry.path,
            )
            for entry, error in self._failed.values()
        ]
        return [*await self.inner.problems(), *own]

    async def follow(self) -> None:
        """Follow the catalog inside, and take snapshots of what has none, one after another."""
        self._snapshots = {root_of(each.entry.uri): each for each in await self._kept.recall()}
        async with anyio.create_task_group() as group:
            group.start_soon(self.inner.follow)
            while True:
                self._news = anyio.Event()
                await self._take_missing()
                with anyio.move_on_after(_AGAIN_SECONDS):
                    await self._news.wait()

    def _heard(self, change: Change) -> None:
        for uri in change.removed:
            self._let_go(root_of(uri))
        self._feed.publish(change)
        self._news.set()

    async def _snapshot_at(self, uri: str) -> SkillEntry | None:
        place = parse_uri(uri)
        snapshot = self._snapshots.get(place.parent) if place.segments[-1] == SKILL_MD else None
        known = None if snapshot is None else await self._known(snapshot.listed)
        return None if known is None or not self._needs(known) else self._served(known)

    async def _known(self, entry: SkillEntry) -> SkillEntry:
        """What is known of a skill that may need a snapshot: some dialects list less than they promise."""
        return await self.inner.peek_skill(entry.uri) or entry if self._needs(entry) else entry

    def _served(self, entry: SkillEntry) -> SkillEntry:
        """The snapshot of a skill, if there is one, with what is said about the skill now."""
        root = root_of(entry.uri)
        snapshot = self._snapshots.get(root)
        if snapshot is None or not self._needs(entry):
            return entry
        stated = self._stated.get(root)
        if stated is None or stated[0] is not entry or stated[1] is not snapshot:
            stated = self._stated[root] = (entry, snapshot, snapshot.said_as(entry))
        return stated[2]

    def _needs(self, entry: SkillEntry) -> bool:
        return bool(entry.gaps) and self._is_wanted(entry)

    async def _around(self, place: SkillUri) -> Snapshot | None:
        """The innermost snapshot at or around ``place`` that is what would be served."""
        for root in place.upwards():
            snapshot = self._snapshots.get(root)
            if snapshot is not None and await self._is_needed(snapshot):
                return snapshot
        return None

    async def _is_needed(self, snapshot: Snapshot) -> bool:
        return self._needs(await self.inner.peek_skill(snapshot.entry.uri) or snapshot.listed)

    def _let_go(self, root: SkillUri) -> None:
        self._stated.pop(root, None)
        if self._snapshots.pop(root, None) is not None:
            self._is_remembered = False

    async def _remember(self) -> None:
        self._is_remembered = True
        await self._kept.remember(list(self._snapshots.values()))

    async def _take_missing(self) -> None:
        listed = {
            root_of(entry.uri): entry
            async for entry in self.inner.entries()
            if self._needs(await self._known(entry))
        }
        for root in self._failed.keys() - listed.keys():
            del self._failed[root]
        for root, entry in listed.items():
            known, failed = self._snapshots.get(root), self._failed.get(root)
            is_known = known is not None and is_same(known.listed, entry)
            is_hopeless = failed is not None and is_same(failed[0], entry) and not _may_pass(failed[1])
            if not is_known and not is_hopeless:
                await self._take(root, entry)
        for root, snapshot in list(self._snapshots.items()):
            if not await self._is_needed(snapshot):
                self._let_go(root)
        if not self._is_remembered:
            await self._remember()

    async def _take(self, root: SkillUri, entry: SkillEntry) -> None:
        try:
            if not self._needs(await self.inner.get_skill(entry.uri)):
                self._feed.publish(Change(changed=frozenset({entry.uri})))
                return
            snapshot, files = await self._taker.take(entry)
            await self._kept.keep(files)
        except SkillwireError as error:
            log.info("no snapshot of %s from %r: %s", entry.uri, self._label, error.message)
            before, self._failed[root] = self._failed.get(root), (entry, error)
            if before is None or before[1].message != error.message:
                self._feed.publish(Change(changed=frozenset({entry.uri})))  # whoever tells of problems looks again
            return
        self._failed.pop(root, None)
        before = self._snapshots.get(root)
        self._snapshots[root] = snapshot
        await self._remember()
        if before is None or not is_same(before.entry, snapshot.entry):
            self._feed.publish(Change(changed=frozenset({snapshot.entry.uri})))

    async def _again(self, snapshot: Snapshot, uri: str) -> bytes:
        """Bytes that the cache has lost, if the upstream still gives the same; else the snapshot is over."""
        try:
            data = (await self.inner.read_file(uri)).data
            await self._kept.keep([verify_file(snapshot.entry, uri, data, self._limits)])
        except (NotFoundError, VerificationError) as error:
            self._let_go(root_of(snapshot.entry.uri))
            self._feed.publish(Change(changed=frozenset({snapshot.entry.uri})))
            self._news.set()
            raise no_file(uri) from error
        return data


def _may_pass(error: SkillwireError) -> bool:
    return isinstance(error, UpstreamError)
