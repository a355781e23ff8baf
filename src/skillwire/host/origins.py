"""Origins: where a host's skills come from, each under a label that the host assigns (O1).

An origin is a catalog with a label: a folder of the user's own (``FolderOrigin``), whose skills need no approval,
or a server (``ServerOrigin``), which ``RemoteCatalog`` keeps current. Each runs in its own task, so that a server
that does not answer delays no other. Until a server has answered, its last listing is used.

Listings of older dialects are short: files and digests are known only after a request for the skill. Nothing is
fetched before it is needed (V5), so ``whole`` makes that request when a skill is loaded or reviewed.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import anyio

from skillwire.catalog.directory import DirectoryCatalog
from skillwire.client.entry_table import is_same
from skillwire.client.link import ServerLink
from skillwire.client.remote import RemoteCatalog
from skillwire.errors import NotFoundError, OriginError, SkillwireError, UpstreamError
from skillwire.skill.approval import agrees, contents_of, has_contents
from skillwire.skill.uri import parse_uri
from skillwire.skill.verify import verify_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from skillwire.catalog.contract import Change
    from skillwire.client.connect import ConnectTarget
    from skillwire.client.dialects.contract import Children
    from skillwire.client.remote import CatalogState
    from skillwire.limits import Limits
    from skillwire.skill import Diagnostic, SkillEntry
    from skillwire.skill.verify import VerifiedFile
    from skillwire.store.contract import Store

_POLL_SECONDS = 300.0  # each agent has a host, and most servers report their changes
_FOLLOW_SECONDS = 0.5

log = logging.getLogger("skillwire.host")


class Origin(ABC):
    """One origin. ``state`` is how current ``entries`` are; ``client/remote.py`` explains the values."""

    is_local = False  # whether it is the user's own, so that its skills need no approval

    def __init__(self, label: str) -> None:
        self.label = label
        self.is_removed = False
        self.scope: anyio.CancelScope | None = None  # of the task that keeps it current

    @property
    @abstractmethod
    def state(self) -> CatalogState:
        """How current ``entries`` are."""

    @property
    @abstractmethod
    def error(self) -> SkillwireError | None:
        """Why ``entries`` are not complete."""

    @property
    @abstractmethod
    def seen_at(self) -> float | None:
        """When a server listed ``entries``."""

    @property
    @abstractmethod
    def entries(self) -> tuple[SkillEntry, ...]:
        """The skills that are known now, each with everything that is known about it."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """``folder``, or the dialect that the server speaks; empty while it is unknown."""

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """Whether unlisted skills can be requested now."""

    @abstractmethod
    def listed(self, uri: str) -> SkillEntry | None:
        """The entry of a skill as it was listed."""

    @abstractmethod
    def entry(self, uri: str) -> SkillEntry | None:
        """The entry of a skill, with everything that is known about it."""

    @abstractmethod
    async def problems(self) -> Sequence[Diagnostic]:
        """The problems of its skills."""

    @abstractmethod
    async def find(self, uri: str) -> SkillEntry:
        """Request one skill, which need not be listed (G1); ``OriginError`` if that is not possible now."""

    @abstractmethod
    async def whole(self, entry: SkillEntry) -> SkillEntry:
        """The whole entry, for a skill that is loaded or reviewed (G1, V5)."""

    @abstractmethod
    async def fetch(self, entry: SkillEntry, uri: str) -> VerifiedFile:
        """One file, verified against ``entry`` (V1, V2, V4)."""

    @abstractmethod
    async def read_unverified(self, entry: SkillEntry, uri: str) -> bytes:
        """One file about which ``entry`` promises nothing (V7), or of a folder."""

    @abstractmethod
    async def list_directory(self, uri: str) -> Children | None:
        """A directory as the origin reads it; ``None`` if the entries show everything."""

    @abstractmethod
    async def settle(self) -> None:
        """Wait until it has answered or failed."""

    @abstractmethod
    async def run(self, changed: Callable[[], None]) -> None:
        """Keep it current until cancelled, and call ``changed`` after each change."""

    def has_other(self, entry: SkillEntry) -> bool:
        """Whether the skill has other files or frontmatter now (A2, A6).

        A skill that is not listed proves nothing, and neither does a short listing that agrees with ``entry``.
        What was approved before its files were known is compared with the listing.
        """
        known, listed = self.entry(entry.uri), self.listed(entry.uri)
        if known is None or is_same(known, entry) or (known is listed and _is_part(known, entry)):
            return False
        return listed is None or not is_same(listed, entry)


class FolderOrigin(Origin):
    """A folder on this machine. It is watched, and a skill that is loaded is read again."""

    is_local = True

    def __init__(self, label: str, path: Path, limits: Limits) -> None:
        super().__init__(label)
        self._state: CatalogState = "complete"
        self._error: SkillwireError | None = None
        self._limits = limits
        self._catalog = DirectoryCatalog(path)
        self._entries: tuple[SkillEntry, ...] = ()
        try:
            self._catalog.load()
            self._take()
        except SkillwireError as error:
            self._state, self._error = "unreachable", error

    @property
    def state(self) -> CatalogState:
        """``partial`` if a skill cannot be used."""
        return self._state

    @property
    def error(self) -> SkillwireError | None:
        """Why the folder cannot be read."""
        return self._error

    @property
    def seen_at(self) -> float | None:
        """A folder is always current."""
        return None

    @property
    def kind(self) -> str:
        """It is a folder."""
        return "folder"

    @property
    def is_connected(self) -> bool:
        """A folder lists all its skills, so there is nothing to request."""
        return False

    @property
    def entries(self) -> tuple[SkillEntry, ...]:
        """The skills of the folder."""
        return self._entries

    def listed(self, uri: str) -> SkillEntry | None:
        """The entry of a skill."""
        return next((entry for entry in self._entries if entry.uri == uri), None)

    entry = listed

    async def problems(self) -> Sequence[Diagnostic]:
        """Skills that are not served, and why."""
        found = () if self._error is not None else self._catalog.snapshot().problems()
        return [problem for problem in found if problem.refuses]

    async def find(self, uri: str) -> SkillEntry:  # noqa: ARG002
        """A folder lists all its skills."""
        raise _not_asked(self.label)

    async def whole(self, entry: SkillEntry) -> SkillEntry:
        """The skill, read again."""
        await self._catalog.refresh([self._catalog.on_disk(parse_uri(entry.uri).path)])
        self._take()
        now = self.entry(entry.uri)
        if now is None:
            raise NotFoundError(
                "skill-unknown",
                f"the folder {self.label!r} no longer has a skill at {entry.uri!r:.300}",
                "look at its problems: skillwire check FOLDER",
                rule="G1",
            )
        return now

    async def fetch(self, entry: SkillEntry, uri: str) -> VerifiedFile:
        """One file, verified."""
        return verify_file(entry, uri, await self.read_unverified(entry, uri), self._limits)

    async def read_unverified(self, entry: SkillEntry, uri: str) -> bytes:  # noqa: ARG002
        """The current bytes of one file: the user may have edited it after the skill was loaded."""
        return (await self._catalog.read_file(uri)).data

    async def list_directory(self, uri: str) -> Children | None:  # noqa: ARG002
        """The entries show everything."""
        return None

    async def settle(self) -> None:
        """It was read when it was added."""

    async def run(self, changed: Callable[[], None]) -> None:
        """Watch the folder."""
        if self._error is not None:
            return

        def take(_: Change) -> None:
            self._take()
            changed()

        await anyio.sleep(_FOLLOW_SECONDS)  # a short-lived program has ended by then
        with self._catalog.changes() as changes:
            changes.forward(take)
            try:
                await self._catalog.follow()
            except (SkillwireError, OSError) as error:  # a skill that is loaded is read again anyway
                log.warning("the folder %r is not watched: %s", self.label, error)

    def _take(self) -> None:
        snapshot = self._catalog.snapshot()
        self._entries = tuple(record.entry for _, record in snapshot.records())
        self._state = "partial" if any(problem.refuses for problem in snapshot.problems()) else "complete"


class ServerOrigin(Origin):
    """An MCP server."""

    def __init__(self, label: str, catalog: RemoteCatalog) -> None:
        super().__init__(label)
        self.catalog = catalog

    @property
    def state(self) -> CatalogState:
        """How current the entries are."""
        return self.catalog.state

    @property
    def error(self) -> SkillwireError | None:
        """Why they are not complete."""
        return self.catalog.error

    @property
    def seen_at(self) -> float | None:
        """When they were listed."""
        return self.catalog.seen_at

    @property
    def entries(self) -> tuple[SkillEntry, ...]:
        """The listed skills; those that were requested with their whole entries."""
        return self.catalog.known

    @property
    def kind(self) -> str:
        """The dialect, once the server has listed its skills in this run."""
        return self.catalog.dialect or "" if self.state in ("complete", "partial") else ""

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self.catalog.client is not None

    def listed(self, uri: str) -> SkillEntry | None:
        """The entry of a skill as it was listed."""
        return self.catalog.listed(uri)

    def entry(self, uri: str) -> SkillEntry | None:
        """The entry of a skill; the whole one if it was requested."""
        return self.catalog.held(uri)

    async def problems(self) -> Sequence[Diagnostic]:
        """Entries that cannot be used."""
        return [problem for problem in await self.catalog.problems() if problem.reference != "listing-partial"]

    async def find(self, uri: str) -> SkillEntry:
        """Request one skill."""
        if not self.is_connected:
            raise _not_asked(self.label)
        return await self.catalog.ask_skill(uri)

    async def whole(self, entry: SkillEntry) -> SkillEntry:
        """The entry, requested from the server if the listing is short.

        If all its files have digests then, these are the skill: an unlisted file is never read (V2). If not, the
        entry stays as it was listed, and cannot be verified (V7). A skill that the server knows by name has files
        only then (P2).
        """
        listed = self.listed(entry.uri)
        if not entry.is_short and not (listed is not None and listed.is_short):
            return entry
        if not self.is_connected:
            return self._still_known(entry)
        given = {name: value for name, value in entry.arguments.items() if value is not None}
        whole = await self.catalog.ask_skill(entry.uri, given)
        if given or has_contents(whole) or whole.is_named:
            return whole
        return listed or whole

    async def fetch(self, entry: SkillEntry, uri: str) -> VerifiedFile:
        """One file, verified."""
        self._check_connected()
        return await self.catalog.fetch(entry, uri)

    async def read_unverified(self, entry: SkillEntry, uri: str) -> bytes:
        """One file about which nothing is promised."""
        self._check_connected()
        return await self.catalog.read_unverified(entry, uri)

    async def list_directory(self, uri: str) -> Children | None:
        """A directory as the server reads it."""
        self._check_connected()
        return await self.catalog.ask_directory(uri)

    async def settle(self) -> None:
        """Wait for the first listing."""
        await self.catalog.settle()

    async def run(self, changed: Callable[[], None]) -> None:
        """Connect, and follow the listing."""

        async def watch_state() -> None:
            while True:
                await self.catalog.next_state()
                changed()

        with self.catalog.changes() as changes:
            changes.forward(lambda _: changed())
            async with anyio.create_task_group() as group:
                group.start_soon(watch_state)
                await self.catalog.follow()

    def _check_connected(self) -> None:
        if not self.is_connected:
            raise UpstreamError(
                "origin-away",
                f"{self.label!r} cannot be reached now",
                "try again later; skills that were loaded before work from the cache",
                rule="C1",
            )

    def _still_known(self, entry: SkillEntry) -> SkillEntry:
        """The last entry of the skill that the server gave."""
        known = self.entry(entry.uri)
        if known is not None and has_contents(known):
            return known
        if not has_contents(entry):
            raise UpstreamError(
                "origin-away",
                f"{self.label!r} cannot be reached now, and listed too little of {entry.uri!r:.300} to decide",
                "try again later",
                rule="V7",
            )
        return entry


class Origins:
    """All origins of a host. ``changed`` is called after every change of one.

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

    def __iter__(self) -> Iterator[Origin]:
        return iter(self._origins.values())

    def get(self, label: str) -> Origin:
        """The origin with that label; ``OriginError`` lists the known ones."""
        origin = self._origins.get(label)
        if origin is None:
            known = ", ".join(sorted(self._origins)) or "none"
            raise OriginError("origin-unknown", f"unknown origin {label!r:.80}", f"known: {known:.300}", rule="O1")
        return origin

    def add_folder(self, label: str, path: Path) -> Origin:
        """Add a folder. It is read at once; ``run`` keeps it current."""
        self._check_label(label)
        self._origins[label] = FolderOrigin(label, path, self._limits)
        return self._origins[label]

    async def add_server(self, label: str, target: ConnectTarget) -> Origin:
        """Add a server with its last listing; ``run`` connects to it."""
        self._check_label(label)
        link = ServerLink(
            label, target, limits=self._limits, instructions=self._instructions, poll_seconds=_POLL_SECONDS
        )
        catalog = RemoteCatalog(link, store=self._store, limits=self._limits, closed=True)
        self._origins[label] = ServerOrigin(label, catalog)
        await catalog.load_saved()
        return self._origins[label]

    def remove(self, label: str) -> None:
        """Remove an origin, and disconnect from it."""
        origin = self.get(label)
        origin.is_removed = True
        del self._origins[label]
        if origin.scope is not None:
            origin.scope.cancel()
        self._changed()

    async def settle(self, seconds: float) -> None:
        """Wait until every origin has answered or failed once, for at most ``seconds``."""
        with anyio.move_on_after(seconds):
            for origin in list(self._origins.values()):
                await origin.settle()

    async def whole(self, origin: Origin, entry: SkillEntry) -> SkillEntry:
        """The whole entry of a skill that is loaded or reviewed."""
        try:
            whole = await origin.whole(entry)
        except NotFoundError:
            self._changed()
            raise
        if whole is not entry:
            self._changed()
        return whole

    async def run(self, origin: Origin) -> None:
        """Keep one origin current, until cancelled or removed."""
        with anyio.CancelScope() as origin.scope:
            await origin.run(self._changed)

    def _check_label(self, label: str) -> None:
        if label in self._origins:
            raise OriginError(
                "origin-taken", f"the label {label!r:.80} is used twice", "rename one of the origins", rule="O1"
            )
        if not label or not label.isprintable() or len(label) > 64 or any(c in label for c in ":/\\ "):
            raise OriginError(
                "origin-invalid", f"{label!r:.80} is not a valid label", "use letters, digits, - _ .", rule="O1"
            )


def _is_part(listed: SkillEntry, entry: SkillEntry) -> bool:
    """Whether a short listing agrees with ``entry``. Of a skill known by name, it has the whole frontmatter."""
    if not listed.is_short or not has_contents(entry):
        return False
    return agrees(contents_of(entry), listed) and not (listed.is_named and listed.frontmatter != entry.frontmatter)


def _not_asked(label: str) -> OriginError:
    return OriginError("origin-away", f"{label!r:.80} cannot be reached now", "try again later", rule="O1")
