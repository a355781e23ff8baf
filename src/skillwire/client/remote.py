"""A server as a ``Catalog``: the listing is kept current, and files are verified and cached.

- While ``follow`` runs, listings come from memory and never wait for the server. If the connection is lost, the
  last listing stays and is marked stale; with a store it survives a restart. An empty or missing listing does not
  prove that there are no skills (L2).
- A catalog of a client that the caller opened sends a request each time, unless ``follow`` runs.
- Bytes are compared with the entry of their skill (V1, V2, V4), and cached by digest (C1). Callers that need the
  same file share one request. After a mismatch the entry is fetched again; if the bytes do not match the new entry
  either, the read fails (V3, R2).
- Files without a digest are read only with ``allow_unverified``, and never cached (V7).
- Skills that the server identifies by name get a ``SKILL.md`` and URIs for their files (``relocation.py``).

States: ``connecting`` (no listing yet), ``complete``, ``partial`` (the listing ended with an error, or has invalid
entries), ``stale`` (from before the connection was lost) and ``unreachable``.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Catalog,
    Change,
    ChangeFeed,
    ChangeStream,
    DirectoryChild,
    Page,
    SkillFile,
    no_directory,
    no_file,
    no_skill,
)
from skillwire.catalog.cursor import DirectoryPages, beginning_with, children_in, page_of
from skillwire.client.dialects.contract import problem_of
from skillwire.client.entry_table import EntryTable
from skillwire.client.link import ServerLink
from skillwire.client.relocation import Relocation, relabelled
from skillwire.client.skills import SkillsClient
from skillwire.errors import (
    FormatError,
    LimitError,
    NotFoundError,
    ProtocolError,
    SkillwireError,
    StoreError,
    VerificationError,
)
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.approval import has_contents
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.uri import SKILL_MD, SkillUri, parse_uri, root_of
from skillwire.skill.verify import STALE, VerifiedFile, expect_file, is_same, verify_file, verify_skill_md
from skillwire.store.content_cache import keep_cached, read_cached
from skillwire.store.records import SeenEntries
from skillwire.telemetry import event, span

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from skillwire.client.dialects.contract import Children
    from skillwire.client.skills import Listing
    from skillwire.skill import Resource, SkillEntry
    from skillwire.store.content_cache import ContentCache
    from skillwire.store.store import Store

CatalogState: TypeAlias = Literal["connecting", "complete", "partial", "stale", "unreachable"]
Prepare: TypeAlias = "Callable[[SkillEntry, RemoteCatalog], SkillEntry]"

_PATIENCE_SECONDS = 10.0
_SAVE_SECONDS = 600.0  # how often an unchanged listing is saved again
_WRITE_SECONDS = 5.0
_MAX_UNKNOWN, _UNKNOWN_SECONDS = 1024, 10.0
_MAX_REFUSED = 100
_MAX_COMPARED = 65_536

log = logging.getLogger("skillwire.client")


class RemoteCatalog(Catalog):
    """The skills of one server.

    ``source`` is a client, or a ``ServerLink`` that connects by itself while ``follow`` runs. ``store`` keeps the
    listing, and ``cache`` the files. ``prepare`` is called for every entry: it may add metadata, or reject the
    entry with a ``FormatError``. With ``closed``, a requested entry with digests for all its files counts as
    complete, so that it can be approved: other files of the skill are never read (V2).
    """

    def __init__(
        self,
        source: SkillsClient | ServerLink,
        *,
        store: Store | None = None,
        cache: ContentCache | None = None,
        limits: Limits | None = None,
        allow_unverified: bool = False,
        closed: bool = False,
        prepare: Prepare | None = None,
    ) -> None:
        given = source.limits if isinstance(source, SkillsClient) else DEFAULT_LIMITS
        self._link = ServerLink("", source, limits=given) if isinstance(source, SkillsClient) else source
        self.label = self._link.label
        self.state: CatalogState = "connecting"
        self.error: SkillwireError | None = None
        self.seen_at: float | None = None
        self.dialect: str | None = None
        self.schemes: frozenset[str] = frozenset()  # of the listed URIs
        self._limits = limits or given
        self._store = store
        self._allow_unverified = allow_unverified
        self._closed = closed
        self._prepare = prepare
        self._patience = _PATIENCE_SECONDS  # how long all callers together wait for the first listing
        self._table = EntryTable()
        self._is_whole = False  # whether the table has everything that the server listed
        self._is_listed = False  # whether the server listed its skills in this run
        self._is_followed = not self._link.is_given
        self._problems: tuple[Diagnostic, ...] = ()  # of the last listing
        self._unusable: list[Diagnostic] = []  # entries that ``prepare`` rejected
        self._refused: dict[str, Diagnostic] = {}  # requested entries that are invalid, by URI
        self._unknown: OrderedDict[SkillUri, float] = OrderedDict()  # missing skills, and when they were requested
        self._compared: dict[str, SkillEntry] = {}  # entries whose fields were compared with their SKILL.md (V4)
        self._feed = ChangeFeed()
        self._directories = DirectoryPages()
        self._relocation = Relocation()
        self._cache = cache
        self._refreshing = anyio.Lock()
        self._settled = anyio.Event()  # the first attempt to list has ended
        self._state_changed = anyio.Event()
        self._saved_at = 0.0
        self._earlier: dict[SkillUri, SkillEntry] = {}  # requested entries, for use while the server is away

    @property
    def client(self) -> SkillsClient | None:
        """The connected client, if there is one."""
        return self._link.client

    # The catalog

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the last listing. Without ``follow``, the first page refreshes the listing."""
        if self._is_followed:
            await self._ready()
        elif cursor is None or self.state == "connecting":
            await self.refresh()
        return page_of("skills", self._table.keys, self._table.listed, cursor, limit)

    async def incoming(self) -> AsyncIterator[SkillEntry]:
        """Every listed entry. Without ``follow``, each is given when the server has sent it (B3)."""
        client = self._link.client
        if self._is_followed or client is None:
            async for entry in self.entries():
                yield entry
            return
        is_empty = True
        try:
            async for entry in client.list_skills():
                for usable in self._usable([entry])[0]:
                    is_empty = False
                    yield usable
        except SkillwireError:
            if is_empty:
                raise

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry. It is requested if it is unlisted or short, and always without ``follow`` (G1)."""
        place = parse_uri(uri)
        if place.segments[-1] != SKILL_MD or len(place.segments) < 2:
            raise no_skill(uri)
        if self._is_followed:
            await self._ready()
            known = self._table.at(place.parent)
            if known is not None and not self._table.is_short(known):
                return known
        return await self._link.flights.share(("get", place), partial(self._get, place))

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry, if it is in the table."""
        place = parse_uri(uri)
        return self._table.at(place.parent) if place.segments[-1] == SKILL_MD else None

    async def skill_around(self, place: SkillUri) -> SkillEntry | None:
        """The innermost skill at or around ``place`` in the table."""
        return self._table.around(place)

    async def read_file(self, uri: str) -> SkillFile:
        """One file, verified with the entry of its skill. After a mismatch the entry is fetched again (V3)."""
        place = parse_uri(uri)
        entry = await self._around(place.parent)
        if entry is None:
            raise no_file(uri)
        if self._allow_unverified and entry.is_unpromised(uri):
            return SkillFile(str(place), await self.read_unverified(entry, uri))
        try:
            file = await self.fetch(entry, uri)
        except (NotFoundError, VerificationError) as error:
            if isinstance(error, VerificationError) and error.reference not in STALE:
                raise
            if self._is_followed and error.reference == "file-unlisted":
                raise no_file(uri) from error  # V2
            fresh = await self._link.flights.share(("fresh", entry.uri), partial(self._fresh, entry, uri, error))
            try:
                file = await self.fetch(fresh, uri)
            except NotFoundError as missing:
                raise no_file(uri) from missing
        return SkillFile(str(place), file.data)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory, derived from the files of the entry.

        A directory that the entry does not show is requested from the server (D1), and always without ``follow``.
        """
        place = parse_uri(uri)
        if not self._is_followed:
            return await self._directories.page(place, lambda: self._read_directory(place), cursor, limit)
        entry = await self._around(place)
        if entry is None:
            raise no_directory(uri)
        known = children_in(entry, place)
        if known and entry.is_complete:
            return page_of(f"directory {place.path}", sorted(known), known.__getitem__, cursor, limit)

        async def read() -> dict[str, DirectoryChild]:
            try:
                children = await self._link.flights.share(
                    ("directory", place), lambda: self._link.ask(lambda client: client.read_directory(uri))
                )
            except (NotFoundError, ProtocolError) as error:
                if not known:
                    raise no_directory(uri) from error
                return known
            # W3: a directory read adds no file to a complete list
            return {child.name: child for child in children if child.is_directory or not entry.is_complete}

        return await self._directories.page(place, read, cursor, limit)

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``."""
        if self.state == "connecting" and not self._is_followed:
            await self.refresh()
        return beginning_with(sorted(root_of(key).path for key in self._table.keys), beginning, limit)

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """A function that tests whether the entries are unchanged; ``None`` without ``follow``."""
        if not self._is_followed or self.state == "connecting":
            return None
        try:
            return self._table.unchanged(None if uri is None else parse_uri(uri))
        except FormatError:
            return None

    def changes(self) -> ChangeStream:
        """A stream of changes, as ``follow`` or ``refresh`` sees them."""
        return self._feed.subscribe()

    async def problems(self) -> list[Diagnostic]:
        """Entries that cannot be used, and why a listing is partial."""
        partial = [] if self.error is None or self.state not in ("partial", "stale") else [self.error]
        cut = [Diagnostic("listing-partial", error.message, error.hint, "other skills") for error in partial]
        client = self._link.client if self._link.is_given else None  # it has the problems of directories too
        listed = self._problems if client is None else client.problems
        return [*listed, *self._unusable, *self._refused.values(), *cut]

    # Keeping it current

    async def follow(self) -> None:
        """Keep the listing current until cancelled: refresh it after each reported change, and regularly."""
        await self.load_saved()
        self._is_followed = True
        try:
            await self._link.run(self.refresh, self.lost)
        finally:
            self._is_followed = not self._link.is_given
            self._settled.set()

    async def refresh(self) -> Change:
        """Refresh the listing. One call at a time: a late response would bring back removed skills."""
        async with self._refreshing:
            return await self._take(await self._link.list())

    async def settle(self, seconds: float = inf) -> None:
        """Wait until the first listing succeeded or failed, at most so long."""
        with anyio.move_on_after(seconds):
            await self._settled.wait()

    async def next_state(self) -> CatalogState:
        """Wait until the state changes."""
        await self._state_changed.wait()
        return self.state

    async def _take(self, listed: Listing) -> Change:
        """Take a listing, unless it is partial and would remove skills (L2)."""
        self.dialect = listed.dialect
        entries, self._unusable = self._usable(listed.entries)
        self._problems = listed.problems
        self._refused.clear()
        if listed.error is not None and not self._is_followed and not listed.entries:
            raise listed.error  # the caller asked for this listing
        if listed.error is not None and len(self._table) and not self._may_replace(listed, entries):
            self.lost(listed.error)
            return Change()
        is_first, was_stale = self.state == "connecting", self.state == "stale"
        if not self._is_listed:
            self._table.forget_asked()  # they are from an earlier run
            self._is_listed = True
        self._is_whole, self.error, self.seen_at = listed.error is None, listed.error, time.time()
        self._set_state("partial" if listed.error is not None or self._problems or self._unusable else "complete")
        change = self._replace(entries)
        if was_stale:
            self._update_all()
        if self._is_followed or not is_first:
            self._feed.publish(change)
        self._settled.set()
        if change or self.seen_at - self._saved_at > _SAVE_SECONDS:
            await self._save(listed)
        return change

    def _may_replace(self, listed: Listing, entries: Sequence[SkillEntry]) -> bool:
        """Whether a partial listing may replace the current one.

        It may not replace a complete listing. It may if a limit of ours cut it, since the limit cuts every listing
        at the same place. Otherwise no current skill may be missing.
        """
        if self._is_whole:
            return False
        roots = {entry.root for entry in entries}
        return isinstance(listed.error, LimitError) or all(each.root in roots for each in self._table)

    def lost(self, error: SkillwireError) -> None:
        """Keep the last listing: the connection or the listing failed."""
        self.error = error
        self._use_earlier()
        if self._set_state("stale" if len(self._table) else "unreachable"):
            self._update_all()
        self._settled.set()

    def _set_state(self, state: CatalogState) -> bool:
        if state == self.state:
            return False
        self.state = state
        self._state_changed.set()
        self._state_changed = anyio.Event()
        return True

    def _replace(self, entries: Sequence[SkillEntry]) -> Change:
        self._unknown.clear()
        change = self._table.replace(entries)
        for uri in change.changed | change.removed:
            self._earlier.pop(root_of(uri), None)
        self.schemes = frozenset(parse_uri(key).scheme for key in self._table.keys)
        return change

    def _update_all(self) -> None:
        """Prepare every entry again, since its metadata may depend on the state."""
        if self._prepare is not None:
            self._feed.publish(self._table.update_all(self._prepared))

    def _prepared(self, entry: SkillEntry) -> SkillEntry:
        entry = relabelled(entry)
        return entry if self._prepare is None else self._prepare(entry, self)

    def _usable(self, entries: Sequence[SkillEntry]) -> tuple[list[SkillEntry], list[Diagnostic]]:
        """The prepared entries, and a diagnostic for each rejected one."""
        usable: list[SkillEntry] = []
        problems: list[Diagnostic] = []
        for entry in entries:
            try:
                usable.append(self._prepared(entry))
            except FormatError as error:
                problems.append(problem_of(error, entry.name if entry.is_named else entry.uri))
        return usable, problems

    async def load_saved(self) -> None:
        """Use the listing of an earlier run until the server responds."""
        if self._store is None or self.state != "connecting":
            return
        try:
            seen = await self._store.entries(self.label)
        except StoreError as error:
            log.warning("the last listing of %r cannot be read: %s", self.label, error.message)
            return
        if seen is not None and self.state == "connecting":
            self._set_state("stale")
            self.seen_at = self._saved_at = seen.at
            bound = self._link.max_skills  # it may be lower than when the listing was saved
            self._is_whole = seen.is_complete and (bound is None or len(seen.entries) <= bound)
            change = self._replace(self._usable(seen.entries[:bound])[0])
            self._earlier = {entry.root: entry for entry in self._usable(seen.asked)[0]}
            self._use_earlier()
            self._feed.publish(change)

    async def _save(self, listed: Listing) -> None:
        if self._store is None or self.seen_at is None:
            return
        self._saved_at = self.seen_at
        asked = tuple(self._earlier.values())
        seen = SeenEntries(listed.entries, self.seen_at, is_complete=listed.error is None, asked=asked)
        await self._write(self._store.put_entries(self.label, seen))

    async def _save_asked(self, entry: SkillEntry) -> None:
        """Save the requested entry of a skill whose listed entry is short, for use while the server is away."""
        root = entry.root
        listed = self._table.listed_at(root)
        if listed is None or not listed.is_short or not has_contents(entry):
            return
        self._earlier[root] = entry
        if self._store is not None and self._saved_at:
            await self._write(self._store.add_entry(self.label, entry))

    def _use_earlier(self) -> None:
        """Use saved entries for skills whose listed entry is short, since requests are not possible now."""
        for root, entry in self._earlier.items():
            listed = self._table.listed_at(root)
            if listed is not None and self._table.is_short(listed):
                self._table.put(entry)

    async def _write(self, writing: Awaitable[None]) -> None:
        try:
            with anyio.move_on_after(_WRITE_SECONDS, shield=True):  # also while the process stops
                await writing
        except StoreError as error:
            log.warning("the listing of %r cannot be saved: %s", self.label, error.message)

    async def _ready(self) -> None:
        """Wait for the first listing; all callers together wait at most ``_PATIENCE_SECONDS``."""
        if self.state == "connecting":
            begun = time.monotonic()
            await self.settle(self._patience)
            self._patience = max(0.0, self._patience - (time.monotonic() - begun))

    # Entries

    @property
    def known(self) -> tuple[SkillEntry, ...]:
        """The listed skills, each with its requested entry if there is one."""
        return self._table.known

    def listed(self, uri: str) -> SkillEntry | None:
        """The entry of a skill as it was listed."""
        return self._table.listed_at(root_of(uri))

    def held(self, uri: str) -> SkillEntry | None:
        """The entry of a skill: the requested one if there is one, else the listed one."""
        return self._table.at(root_of(uri))

    async def ask_skill(self, uri: str, arguments: Mapping[str, str] | None = None) -> SkillEntry:
        """Request the entry of one skill. With arguments it is not kept, since it is valid for these only (P2)."""
        asked = await self._link.ask(lambda client: client.get_skill(uri, arguments))
        if arguments:
            return self._moved(asked)
        entry = self._hold(asked)
        await self._save_asked(entry)
        return entry

    async def ask_directory(self, uri: str) -> Children:
        """Request a directory from the server."""
        return await self._link.ask(lambda client: client.read_directory(uri))

    async def _around(self, place: SkillUri) -> SkillEntry | None:
        """The entry of the innermost skill at or around ``place``; a short entry is requested."""
        if self._is_followed:
            await self._ready()
        entry = self._table.around(place)
        if entry is None:
            if self._is_followed and len(self._table) == 0 and self.state in ("unreachable", "connecting"):
                raise self._link.away()
            return None if self._is_followed else await self._find(place)
        return await self.get_skill(entry.uri) if self._table.is_short(entry) else entry

    async def _find(self, place: SkillUri) -> SkillEntry | None:
        if not place.segments:
            return None
        inside = f"{place}/{SKILL_MD}"
        return self._hold(await self._link.ask(lambda client: client.find_skill(inside)))

    async def _get(self, place: SkillUri) -> SkillEntry:
        known, now = self._table.at(place.parent), time.monotonic()
        if self._is_followed and now - self._unknown.get(place, -_UNKNOWN_SECONDS) < _UNKNOWN_SECONDS:
            raise no_skill(str(place))
        uri = str(place) if known is None else known.uri
        try:
            return await self.ask_skill(uri)
        except NotFoundError:
            if known is None:
                self._unknown[place] = now
                while len(self._unknown) > _MAX_UNKNOWN:
                    self._unknown.popitem(last=False)
            raise
        except (FormatError, ProtocolError) as error:
            is_invalid = isinstance(error, FormatError) or error.reference == "entry-other"
            if is_invalid and len(self._refused) < _MAX_REFUSED:
                self._refused[uri] = problem_of(error, uri)
            raise

    async def _fresh(self, entry: SkillEntry, uri: str, failure: SkillwireError) -> SkillEntry:
        """V3: fetch the entry again; raise ``failure`` if it is the same."""
        try:
            asked = await self._link.ask(lambda client: client.get_skill(entry.uri))
            fresh = self._moved(asked)
        except NotFoundError as error:
            self._feed.publish(self._table.drop(entry.root))
            raise no_file(uri) from error
        except FormatError:  # the new entry is invalid
            raise failure from None
        if is_same(fresh, entry):
            is_unlisted = failure.reference == "file-unlisted" and entry.is_complete
            raise no_file(uri) if is_unlisted or isinstance(failure, NotFoundError) else failure
        self._feed.publish(self._table.put(fresh))
        return fresh

    def _hold(self, asked: SkillEntry) -> SkillEntry:
        entry = self._moved(asked)
        self._feed.publish(self._table.put(entry))
        return entry

    def _moved(self, asked: SkillEntry) -> SkillEntry:
        entry = self._prepared(self._relocation.moved(asked))
        is_promised = entry.resource(entry.uri) is not None and "digest" not in entry.gaps
        return replace(entry, resources=entry.files) if self._closed and is_promised else entry

    # Bytes

    async def fetch(self, entry: SkillEntry, uri: str, *, keep: bool = True) -> VerifiedFile:
        """One file of ``entry``, verified, from the cache or the server. A mismatch is an error (V1, V2, V4).

        Without ``keep`` it is not put into the cache.
        """
        expected = expect_file(entry, uri, self._limits)
        data = None if self._cache is None else await read_cached(self._cache, self.label, expected)
        if data is not None:
            event("cache_hit", origin=self.label, file=expected.uri)
            return self._verified(entry, expected, data)
        # Only for callers with this entry: another one may claim other fields (V4).
        key = (id(entry), expected.uri, keep)
        return await self._link.flights.share(key, lambda: self._download(entry, expected, keep=keep))

    async def _download(self, entry: SkillEntry, expected: Resource, *, keep: bool) -> VerifiedFile:
        at_most = self._limits.max_file_bytes if expected.size is None else expected.size

        async def ask(client: SkillsClient) -> bytes:
            if entry.is_named:
                return await self._relocation.read(client, entry, expected.uri)
            return await client.read_bytes(expected.uri, at_most, entry.uri)

        with span("fetch", origin=self.label, skill=entry.uri, file=expected.uri) as record:
            try:
                data = await self._link.ask(ask)
            except LimitError as error:
                if error.reference != "file-too-large" or expected.size is None:
                    raise
                raise VerificationError(
                    "size-mismatch",
                    f"{expected.uri!r:.300} has more than the {expected.size} bytes that its entry claims",
                    "get the entry of the skill again",
                    rule="V1",
                ) from error
            file = self._verified(entry, expected, data)
            event("verify", file=file.uri, bytes=len(file.data))
            record.set(bytes=len(file.data))
        if self._cache is not None and keep:
            await keep_cached(self._cache, self.label, file)
        return file

    async def read_unverified(self, entry: SkillEntry, uri: str) -> bytes:
        """One file without verification (V7). It is not cached."""

        async def read() -> bytes:
            return await self._link.ask(lambda client: self._relocation.read(client, entry, uri))

        try:
            return await self._link.flights.share(("unverified", entry.uri, uri), read)
        except NotFoundError as error:
            raise no_file(uri) from error

    def _verified(self, entry: SkillEntry, expected: Resource, data: bytes) -> VerifiedFile:
        """Verify bytes (V1), and the fields of a ``SKILL.md`` once for each entry (V4)."""
        if expected.path != SKILL_MD or self._compared.get(entry.uri) is entry:
            return verify_file(entry, expected.uri, data, self._limits)
        file = verify_skill_md(entry, data, self._limits)
        if len(self._compared) >= _MAX_COMPARED:
            self._compared.clear()
        self._compared[entry.uri] = entry
        return file

    async def _read_directory(self, place: SkillUri) -> dict[str, DirectoryChild]:
        """A directory as the server reads it; if it reads none, derived from the files of the entry."""
        uri = str(place)

        async def read(client: SkillsClient) -> dict[str, DirectoryChild] | None:
            # A skill in an archive is not a directory on the server.
            has_archives = await client.dialect() == "index"
            if not client.supports_directory_read and not has_archives:
                return None
            try:
                return {child.name: child for child in await client.read_directory(uri)}
            except (NotFoundError, ProtocolError) as error:
                is_none = isinstance(error, NotFoundError) or error.reference == "directory-unsupported"
                if not (has_archives and is_none):
                    raise
                return None

        children = await self._link.ask(read)
        if children is not None:
            return children
        entry = await self._around(place)
        known = {} if entry is None else children_in(entry, place)
        if not known:
            raise no_directory(uri)
        return known
