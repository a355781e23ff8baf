"""Origins: folders and servers under labels that the host assigns (O1), each saying how current it is.

What an origin listed last is remembered, so that a host knows its skills before any server has answered. Each
server has a task of its own that connects, lists, and tries again with growing pauses; nobody waits for one that
is dead. A folder is watched, and the skill that is wanted is read again.

Servers of older dialects list less of a skill than they promise once it is asked for: files, digests. Nothing is
fetched ahead of need (V5), so this waits until the skill is loaded or looked at (``wanted``); what was got then is
held until the listing says otherwise.

    connecting    nothing is known yet
    complete      the whole listing, from this run
    partial       a listing that ended in an error, or with entries that had to be left out
    stale         from an earlier run, or from before the connection was lost
    unreachable   no answer, and nothing is remembered
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from skillwire.catalog.directory import DirectoryCatalog
from skillwire.client.connection import pause_before
from skillwire.client.opening import connect
from skillwire.client.refresh import is_same
from skillwire.client.relocation import Relocation, relabelled
from skillwire.errors import NotFoundError, OriginError, SkillwireError, StoreError, UpstreamError
from skillwire.skill.approval import agrees, contents_of, has_contents
from skillwire.skill.uri import parse_uri
from skillwire.store.contract import SeenEntries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from skillwire.catalog.changes import Change
    from skillwire.client.opening import ConnectTarget
    from skillwire.client.skills import SkillsClient
    from skillwire.limits import Limits
    from skillwire.skill import SkillEntry
    from skillwire.store.contract import Store

OriginState: TypeAlias = Literal["connecting", "complete", "partial", "stale", "unreachable"]
log = logging.getLogger("skillwire.host")


@dataclass
class Origin:
    """Where skills come from, as the host knows it."""

    label: str
    state: OriginState = "connecting"
    entries: tuple[SkillEntry, ...] = ()
    error: SkillwireError | None = None
    seen_at: float | None = None
    removed: bool = False
    running: anyio.CancelScope | None = field(default=None, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of the person's own, whose skills need no approval."""
        return False

    def entry(self, uri: str) -> SkillEntry | None:
        """What is held about one skill."""
        return next((entry for entry in self.entries if entry.uri == uri), None)

    def has_other(self, entry: SkillEntry) -> bool:
        """Whether the origin now lists that skill with other files or frontmatter (A2, A6).

        Not being listed proves nothing.
        """
        current = self.entry(entry.uri)
        return current is not None and not is_same(current, entry)


@dataclass
class FolderOrigin(Origin):
    """A folder on this machine."""

    catalog: DirectoryCatalog | None = None

    def take(self, catalog: DirectoryCatalog) -> None:
        """Know what the folder holds now."""
        snapshot = catalog.snapshot()
        self.entries = tuple(record.entry for _, record in snapshot.records())
        self.state = "partial" if any(p.refuses for p in snapshot.problems()) else "complete"

    @property
    def is_local(self) -> bool:
        """A folder is the person's own."""
        return True


@dataclass
class ServerOrigin(Origin):
    """An MCP server. ``client`` is there while it is connected.

    ``short`` are the entries, by URI, of which its listing may say less than the server does when it is asked.
    ``relocation`` has the files of skills that the server knows by name (P4).
    """

    target: ConnectTarget | None = None
    client: SkillsClient | None = None
    relocation: Relocation = field(default_factory=Relocation, repr=False)
    short: dict[str, SkillEntry] = field(default_factory=dict[str, "SkillEntry"], repr=False)

    def has_other(self, entry: SkillEntry) -> bool:
        """The same. What was asked about before its files were known is compared with the listing."""
        listed = self.short.get(entry.uri)
        return super().has_other(entry) and (listed is None or not is_same(listed, entry))

    async def get_skill(
        self, client: SkillsClient, uri: str, arguments: Mapping[str, str] | None = None
    ) -> SkillEntry:
        """The entry that the server gives now. If all its files have digests, exactly these are the skill (V2)."""
        got = self.relocation.moved(await client.get_skill(uri, arguments), verifiable=True)
        if got.resource(got.uri) is None or "digest" in got.gaps:
            return got
        return replace(got, resources=got.files)


class Origins:
    """All origins of a host. ``changed`` is called whenever one knows something new.

    With ``instructions``, skills that a server's instructions name are known too, once the server gave them (I5).
    """

    def __init__(
        self, store: Store, limits: Limits, changed: Callable[[], None], *, instructions: bool = False
    ) -> None:
        self._store = store
        self._limits = limits
        self._changed = changed
        self._instructions = instructions
        self._origins: dict[str, Origin] = {}
        self._settled: dict[str, anyio.Event] = {}

    def __iter__(self) -> Iterator[Origin]:
        return iter(self._origins.values())

    def get(self, label: str) -> Origin:
        """The origin with that label; ``OriginError`` lists those there are."""
        origin = self._origins.get(label)
        if origin is None:
            known = ", ".join(sorted(self._origins)) or "none"
            raise OriginError(
                "origin-unknown", f"there is no origin {label!r:.80}", f"known: {known:.300}", rule="O1"
            )
        return origin

    def servers(self) -> list[ServerOrigin]:
        """The origins that are servers."""
        return [origin for origin in self._origins.values() if isinstance(origin, ServerOrigin)]

    def folders(self) -> list[FolderOrigin]:
        """The origins that are folders."""
        return [origin for origin in self._origins.values() if isinstance(origin, FolderOrigin)]

    def add_folder(self, label: str, path: Path) -> FolderOrigin:
        """A folder, read at once: it is on this machine. ``follow`` keeps it current."""
        origin = FolderOrigin(self._free(label))
        try:
            origin.catalog = DirectoryCatalog(path)
            origin.catalog.load()
            origin.take(origin.catalog)
        except SkillwireError as error:
            origin.state, origin.error = "unreachable", error
        self._origins[label] = origin
        self._settled[label] = anyio.Event()
        self._settled[label].set()
        return origin

    async def add_server(self, label: str, target: ConnectTarget) -> ServerOrigin:
        """A server, with what it listed last; ``run`` connects to it."""
        origin = ServerOrigin(self._free(label), target=target)
        seen = await self._store.entries(label)
        if seen is not None:
            origin.entries, origin.seen_at, origin.state = seen.entries, seen.at, "stale"
        self._origins[label] = origin
        self._settled[label] = anyio.Event()
        return origin

    def remove(self, label: str) -> None:
        """Forget an origin, and let go of its server."""
        origin = self.get(label)
        origin.removed = True
        del self._origins[label]
        self._settled.pop(label).set()
        if origin.running is not None:
            origin.running.cancel()
        self._changed()

    async def settle(self, seconds: float) -> None:
        """Wait until every origin has answered or failed once, at most so long."""
        with anyio.move_on_after(seconds):
            for settled in list(self._settled.values()):
                await settled.wait()

    async def follow(self, origin: FolderOrigin) -> None:
        """Keep what is known of a folder current, until cancelled or removed."""
        catalog = origin.catalog
        if catalog is None:
            return

        def take(_: Change) -> None:
            origin.take(catalog)
            self._changed()

        with anyio.CancelScope() as origin.running:
            await anyio.sleep(_FOLLOW_SECONDS)  # a program that only asks something has ended before
            changes = catalog.changes()
            changes.forward(take)
            try:
                await catalog.follow()
            except (SkillwireError, OSError) as error:  # a skill that is loaded is read again all the same
                log.warning("the folder %r is not watched: %s", origin.label, error)
            finally:
                changes.close()

    async def run(self, origin: ServerOrigin) -> None:
        """Keep one server connected and its listing current, until cancelled or removed."""
        attempt = 0
        with anyio.CancelScope() as origin.running:
            while not origin.removed and origin.target is not None:
                try:
                    async with connect(origin.target, limits=self._limits, mine=self._instructions) as client:
                        origin.client = client
                        await self.refresh(origin)
                        attempt = 0  # not before: one that connects and then fails would be asked without a pause
                        await self._listen(origin, client)
                except SkillwireError as error:
                    self._lost(origin, error)
                finally:
                    origin.client = None
                await anyio.sleep(max(self._limits.relist_seconds, pause_before(attempt, self._limits)))
                attempt = min(attempt + 1, _MOST_ATTEMPTS)

    async def _listen(self, origin: ServerOrigin, client: SkillsClient) -> None:
        async with client.connection.listening() as wait:
            while True:
                await self.refresh(origin)  # what changed before anybody listened
                await wait(_POLL_SECONDS)

    async def refresh(self, origin: ServerOrigin) -> None:
        """Ask a connected server for its listing. That it cannot be remembered is no fault of the server's."""
        client = origin.client
        if client is None:
            return
        listing = await client.list_all()
        if origin.removed:
            return
        listed = [relabelled(entry, verifiable=True) for entry in listing.entries]
        origin.short = {entry.uri: entry for entry in listed if entry.is_short}
        origin.entries, origin.error = _with_got(listed, origin), listing.error
        origin.seen_at = time.time()
        origin.state = "partial" if listing.error is not None or client.problems else "complete"
        self._changed()
        await self._remember(origin)
        if not origin.removed:
            self._settled[origin.label].set()

    async def wanted(self, origin: Origin, entry: SkillEntry) -> SkillEntry:
        """The whole entry, now that the skill is loaded or looked at (G1, V5): a short one is fetched again.

        Where all its files have digests then, it is held with exactly these: an unlisted file is never read (V2).
        Where not, it stays as it was listed, and cannot be verified (V7). What is known by name has its files only
        then (P2). A skill of a folder is read again.
        """
        if isinstance(origin, FolderOrigin) and origin.catalog is not None:
            return await self._read_again(origin, origin.catalog, entry)
        if not isinstance(origin, ServerOrigin) or not (entry.uri in origin.short or entry.is_short):
            return entry
        if origin.client is None:
            return _still_known(origin, entry)
        given = {name: value for name, value in entry.arguments.items() if value is not None}
        fresh = await origin.get_skill(origin.client, entry.uri, given)
        if given:  # P2: it is for these arguments only
            return fresh
        if not has_contents(fresh) and not fresh.is_named:
            fresh = origin.short.get(entry.uri, fresh)
        known = origin.entry(fresh.uri)
        if known is not None and known != fresh and not origin.removed:
            origin.entries = tuple(fresh if each.uri == fresh.uri else each for each in origin.entries)
            self._changed()
            await self._remember(origin)
        return fresh

    async def _read_again(self, origin: FolderOrigin, catalog: DirectoryCatalog, entry: SkillEntry) -> SkillEntry:
        await catalog.refresh([catalog.on_disk(parse_uri(entry.uri).path)])
        origin.take(catalog)
        now = origin.entry(entry.uri)
        if now is None or not is_same(now, entry):
            self._changed()
        if now is None:
            raise NotFoundError(
                "skill-unknown",
                f"the folder {origin.label!r} no longer has a skill at {entry.uri!r:.300}",
                "look at its problems: skillwire check FOLDER",
                rule="G1",
            )
        return now

    async def _remember(self, origin: ServerOrigin) -> None:
        seen = SeenEntries(origin.entries, origin.seen_at or time.time(), is_complete=origin.error is None)
        try:
            await self._store.put_entries(origin.label, seen)
        except StoreError as error:
            log.warning("what %r lists is not remembered: %s", origin.label, error.message)

    def _lost(self, origin: ServerOrigin, error: SkillwireError) -> None:
        log.info("origin %r cannot be reached: %s", origin.label, error.reference)
        origin.error = error
        origin.state = "stale" if origin.entries else "unreachable"
        if origin.label in self._settled:
            self._settled[origin.label].set()
        self._changed()

    def _free(self, label: str) -> str:
        if label in self._origins:
            raise OriginError("origin-taken", f"there are two origins {label!r:.80}", "rename one", rule="O1")
        if not label or not label.isprintable() or len(label) > 64 or any(c in label for c in ":/\\ "):
            raise OriginError(
                "origin-invalid", f"{label!r:.80} cannot be a label", "use letters, digits, - _ .", rule="O1"
            )
        return label


def _with_got(listed: Iterable[SkillEntry], origin: ServerOrigin) -> tuple[SkillEntry, ...]:
    """A listing, with what was got of its skills before in place of what says less and nothing else."""
    got = {entry.uri: entry for entry in origin.entries if entry.uri in origin.short}
    return tuple(
        got[entry.uri] if entry.uri in got and _says_more(got[entry.uri], entry) else entry for entry in listed
    )


def _says_more(got: SkillEntry, listed: SkillEntry) -> bool:
    if got.is_named and got.frontmatter != listed.frontmatter:  # both were made from what the server lists
        return False
    return agrees(contents_of(got), listed) if has_contents(got) else got.is_named


def _still_known(origin: Origin, entry: SkillEntry) -> SkillEntry:
    """What was got of a skill before its server went away."""
    if not has_contents(entry):
        raise UpstreamError(
            "origin-away",
            f"{origin.label!r} cannot be reached now, and lists too little of {entry.uri!r:.300} to decide on it",
            "try again later",
            rule="V7",
        )
    return entry


_POLL_SECONDS = 300.0
_FOLLOW_SECONDS = 0.5
_MOST_ATTEMPTS = 16  # the pause has long been the longest
