"""The central interface: everything that holds skills is a ``Catalog``.

A folder, an archive, a package, a function, another server, several of these combined: each lists entries, gets
one, reads a file, reads a directory, and reports changes. The server serves any catalog, and the client returns
one. A cross-cutting concern, such as visibility for a caller, is a catalog that wraps another.

Every implementation guarantees (tested by ``tests/contracts``):

- ``list_skills`` pages by key: a change between two pages neither skips nor repeats an unaffected entry (L3).
- ``get_skill`` returns every served skill, listed or not. Anything else is ``NotFoundError`` (G1).
- ``read_file`` returns exactly the bytes that the current entry describes, or raises (R2).
- ``read_directory`` returns only direct children. An empty directory is an empty page (D1).
- One call sees one consistent state, even during a change.

An unchanged entry should be returned as the same object each time: catalogs around another one cache by identity.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

import anyio
from anyio import NoEventLoopError
from anyio.lowlevel import current_token

from skillwire.errors import FormatError, LimitError, NotFoundError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.uri import skill_md_uri

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
    from types import TracebackType

    from skillwire.skill import Diagnostic, Json, SkillEntry, SkillUri
    from skillwire.skill.archive import ArchiveFormat

DEFAULT_PAGE_SIZE = 100

T = TypeVar("T")


class Page(NamedTuple, Generic[T]):
    """Items, and the cursor of the next page; ``None`` after the last page."""

    items: Sequence[T]
    next_cursor: str | None = None


class SkillFile(NamedTuple):
    """The bytes of one file, as the current entry of its skill describes them. ``meta`` is its ``_meta`` (R4)."""

    uri: str
    data: bytes
    modified: float | None = None
    meta: Mapping[str, Json] | None = None


class DirectoryChild(NamedTuple):
    """A file or folder directly inside a directory of a skill."""

    uri: str
    name: str
    is_directory: bool
    size: int | None = None
    modified: float | None = None
    executable: bool = False


class ReadyArchive(NamedTuple):
    """The original archive of a skill, byte for byte."""

    form: ArchiveFormat
    data: bytes
    digest: str


class SkillTemplate(NamedTuple):
    """Skills that are generated from variables in their path, such as ``docs/{product}`` (I1)."""

    path: str
    description: str
    complete: Callable[[str, str], Awaitable[Sequence[str]]]  # values of a variable that begin with a text (T1)

    @property
    def stem(self) -> str:
        """The path before the first variable, which is a prefix of every skill of the template. May be empty."""
        return self.path.partition("{")[0].rstrip("/")

    @property
    def name(self) -> str:
        """The name for lists: the literal segments, or the variables if there are none."""
        segments = self.path.split("/")
        literal = [segment for segment in segments if not segment.startswith("{")]
        return "-".join(literal or segments).replace("{", "").replace("}", "")

    def uri(self, scheme: str) -> str:
        """The URI template of its ``SKILL.md``. Everything except the variables is encoded (U7)."""
        return skill_md_uri(self.path, scheme).replace("%7B", "{").replace("%7D", "}")


@dataclass(frozen=True, slots=True)
class Change:
    """The URIs of the ``SKILL.md`` files of skills that were added, changed or removed."""

    added: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    @property
    def uris(self) -> frozenset[str]:
        """The URIs of all affected skills."""
        return self.added | self.changed | self.removed

    def translate(self, uris: Callable[[frozenset[str]], Iterable[str]]) -> Change:
        """The change with each of its three sets replaced by the result of ``uris``."""
        return Change(*(frozenset(uris(each)) for each in (self.added, self.changed, self.removed)))

    def then(self, later: Change) -> Change:
        """Both changes merged. Added then removed is nothing; removed then added is a change."""
        returned = self.removed & later.added
        vanished = self.added & later.removed
        added = (self.added | later.added) - returned - vanished
        removed = (self.removed | later.removed) - returned - vanished
        changed = (self.changed | later.changed | returned) - added - removed - vanished
        return Change(added, changed, removed)


class ChangeFeed:
    """Publishes changes to any number of streams."""

    def __init__(self) -> None:
        self._streams: list[ChangeStream] = []
        self.published = 0  # number of calls of ``publish``

    def subscribe(self) -> ChangeStream:
        """A stream of all changes from now on."""
        stream = ChangeStream(self)
        self._streams.append(stream)
        return stream

    def publish(self, change: Change) -> None:
        """Send ``change`` to every stream."""
        self.published += 1
        if change:
            for stream in tuple(self._streams):
                stream.push(change)

    def drop(self, stream: ChangeStream) -> None:
        """Remove a closed stream."""
        with suppress(ValueError):
            self._streams.remove(stream)


class ChangeStream:
    """An async iterator of changes that ends when it is closed.

    Changes from other threads are passed to the event loop in which the stream was created, in their order.
    """

    def __init__(self, feed: ChangeFeed) -> None:
        self._feed = feed
        self._pending = Change()
        self._wake = anyio.Event()
        self._closed = False
        self._sink: Callable[[Change], None] | None = None
        self._thread = threading.get_ident()
        try:
            self._loop: Any = current_token().native_token
        except NoEventLoopError:
            self._loop = None

    def forward(self, sink: Callable[[Change], None]) -> None:
        """Call ``sink`` with every further change immediately, instead of storing it.

        Use it only as a signal that something changed: the URIs may belong to a source and not be visible.
        """
        self._sink = sink

    def push(self, change: Change) -> None:
        """Merge ``change`` into the pending change, or forward it."""
        if not change:
            return
        if self._loop is not None and threading.get_ident() != self._thread:
            # asyncio and trio name this function differently, and anyio has none that does not wait
            call_soon = getattr(self._loop, "call_soon_threadsafe", None) or self._loop.run_sync_soon
            with suppress(RuntimeError):  # the loop has ended, and so has every reader of the stream
                call_soon(self._push, change)
        else:
            self._push(change)

    def _push(self, change: Change) -> None:
        if self._sink is not None:
            self._sink(change)
            return
        self._pending = self._pending.then(change)
        self._wake.set()

    async def pending(self) -> Change:
        """Take the pending change, which may be empty. Does not wait."""
        change, self._pending = self._pending, Change()
        return change

    def close(self) -> None:
        """Unsubscribe. A running iteration ends."""
        self._closed = True
        self._feed.drop(self)
        self._wake.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        while True:
            self._wake = anyio.Event()  # before ``pending``, so that no change in between is missed
            change = await self.pending()
            if change:
                return change
            if self._closed:
                raise StopAsyncIteration
            await self._wake.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RelayStream(ChangeStream):
    """The changes of other streams, each translated by the function beside its stream when it happens.

    A stream that translates when a change is taken, as that of a combined catalog does, cannot be a source: it
    forwards other URIs (see ``forward``).
    """

    def __init__(self, sources: Iterable[tuple[ChangeStream, Callable[[Change], Change]]]) -> None:
        super().__init__(ChangeFeed())
        self._sources = list(sources)
        for source, translate in self._sources:
            source.forward(lambda change, translate=translate: self.push(translate(change)))

    def close(self) -> None:
        """Unsubscribe from all streams."""
        for source, _ in self._sources:
            source.close()
        super().close()


class Catalog(ABC):
    """Something that holds skills. Five members are abstract.

    The others have defaults that return nothing, or only what the five return. So a gate, such as visibility for a
    caller, is closed by default: a member that it does not state reveals nothing.
    """

    commit: str | None = None  # the commit that is served, if this is a Git repository

    @abstractmethod
    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the listing, in the order of URIs. ``ProtocolError`` if the cursor is invalid."""

    @abstractmethod
    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry of the skill whose ``SKILL.md`` is at ``uri``."""

    @abstractmethod
    async def read_file(self, uri: str) -> SkillFile:
        """The bytes of one file of a skill."""

    @abstractmethod
    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of the direct children of a directory of a skill."""

    @abstractmethod
    def changes(self) -> ChangeStream:
        """A stream of all further changes. Close it, or use it in a ``with`` block."""

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``, sorted, for completion (T1).

        Includes the skills of templates whose values are lists. This default reads every entry; a catalog that can
        be large should keep its paths sorted instead.
        """
        paths = [entry.path async for entry in self.entries() if entry.path.startswith(beginning)]
        return sorted(paths)[:limit]

    def templates(self) -> Sequence[SkillTemplate]:
        """Templates of skills that are served on request and are not listed (L2, I1)."""
        return ()

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """The known entry, or ``None``. Nothing is generated for it."""
        try:
            return await self.get_skill(uri)
        except NotFoundError:
            return None

    async def ready_archive(self, uri: str) -> ReadyArchive | None:  # noqa: ARG002 - most skills have none
        """The original archive of the skill at ``uri``, if it has one (I2)."""
        return None

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:  # noqa: ARG002
        """A cheap function that tells later whether responses of now would still be the same.

        It is about the skill or file at ``uri``, or about everything without ``uri``. ``None`` if this is unknown.
        """
        return None

    async def unlisted(self) -> Sequence[SkillEntry]:
        """Known entries of skills that are served but not listed.

        For the server that serves the catalog, never for a caller. A view for a caller returns none.
        """
        return ()

    async def problems(self) -> Sequence[Diagnostic]:
        """Problems of the source, including skills that are not served because of them."""
        return ()

    async def ignored(self) -> Sequence[str]:
        """Paths that are ignored because of their names: version control, caches, credentials."""
        return ()

    async def follow(self) -> None:
        """Watch the source and publish changes, until cancelled. Returns at once if it cannot change."""
        return

    def entries(self) -> AsyncIterator[SkillEntry]:
        """Every listed entry, fetched page by page."""
        return _all_pages(self.list_skills)

    def incoming(self) -> AsyncIterator[SkillEntry]:
        """Every listed entry as soon as it arrives, for lookups that may end before the listing does."""
        return self.entries()

    async def skill_around(self, place: SkillUri) -> SkillEntry | None:
        """The innermost known skill at or around ``place``."""
        for root in place.upwards():
            with suppress(FormatError):  # of a path that is incomplete, or too long with the name of a file
                entry = await self.peek_skill(skill_md_uri(root.path, root.scheme))
                if entry is not None:
                    return entry
        return None

    def children(self, uri: str) -> AsyncIterator[DirectoryChild]:
        """Every direct child of a directory, fetched page by page."""
        return _all_pages(lambda cursor: self.read_directory(uri, cursor))

    async def walk(self, uri: str) -> AsyncIterator[DirectoryChild]:
        """Every file below a directory, parents before children.

        A server may send nested folders without end, so their number is limited like that of files (B3).
        """
        pending, folders = [uri], 0
        while pending:
            folders += 1
            if folders > DEFAULT_LIMITS.max_resources:
                raise LimitError(
                    "listing-too-long",
                    f"{uri!r:.300} has more than {DEFAULT_LIMITS.max_resources} folders below it",
                    "the server must be fixed",
                    rule="B3",
                )
            async for child in self.children(pending.pop()):
                if child.is_directory:
                    pending.append(child.uri)
                else:
                    yield child


class LargeCatalog(Catalog):
    """A catalog that is never read whole, because it can have any number of skills, as that of a registry.

    It finds names and words itself, in its own index. What others would collect from its listing (labels, a search
    index, an index of everything) is asked from it, or made of its first skills only.
    """

    @abstractmethod
    async def named(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        """The paths of the listed skills with each of these names."""

    @abstractmethod
    async def search(self, query: str, limit: int) -> Sequence[tuple[SkillEntry, float]]:
        """The listed skills that match best, each with its score, best first."""


class WrapperCatalog(Catalog):
    """``inner``, unchanged: the base of a catalog around a catalog that states only what it changes.

    A gate, which decides what a caller may see, extends ``Catalog`` instead: see there.
    """

    def __init__(self, inner: Catalog) -> None:
        self.inner = inner

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the listing."""
        return await self.inner.list_skills(cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry."""
        return await self.inner.get_skill(uri)

    async def read_file(self, uri: str) -> SkillFile:
        """One file."""
        return await self.inner.read_file(uri)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory."""
        return await self.inner.read_directory(uri, cursor, limit)

    def changes(self) -> ChangeStream:
        """A stream of changes."""
        return self.inner.changes()

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``."""
        return await self.inner.suggest(beginning, limit)

    def templates(self) -> Sequence[SkillTemplate]:
        """Templates of skills."""
        return self.inner.templates()

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry, if it is known."""
        return await self.inner.peek_skill(uri)

    async def ready_archive(self, uri: str) -> ReadyArchive | None:
        """The archive that a skill came in."""
        return await self.inner.ready_archive(uri)

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """A test whether the catalog still gives the same answers."""
        return await self.inner.unchanged(uri)

    async def unlisted(self) -> Sequence[SkillEntry]:
        """Entries that are served but not listed."""
        return await self.inner.unlisted()

    async def problems(self) -> Sequence[Diagnostic]:
        """Problems of the source."""
        return await self.inner.problems()

    async def ignored(self) -> Sequence[str]:
        """Paths that are not served because of their names."""
        return await self.inner.ignored()

    async def follow(self) -> None:
        """Keep the source current until cancelled."""
        await self.inner.follow()


async def _all_pages(ask: Callable[[str | None], Awaitable[Page[T]]]) -> AsyncIterator[T]:
    cursor: str | None = None
    while True:
        page = await ask(cursor)
        for item in page.items:
            yield item
        if page.next_cursor is None:
            return
        cursor = page.next_cursor


def no_skill(uri: str) -> NotFoundError:
    """The error for an unknown skill."""
    return NotFoundError(
        "skill-unknown",
        f"no skill is served at {uri!r:.300}",
        f"list the skills to see their URIs; a skill's URI looks like {skill_md_uri('acme/refunds')}",
    )


def no_file(uri: str) -> NotFoundError:
    """The error for an unknown file."""
    return NotFoundError(
        "file-unknown",
        f"no skill has a file at {uri!r:.300}",
        "the entry of a skill lists the URIs of all its files",
    )


def no_directory(uri: str) -> NotFoundError:
    """The error for an unknown directory."""
    return NotFoundError(
        "directory-unknown",
        f"no skill has a directory at {uri!r:.300}",
        "use a skill's root (its SKILL.md without '/SKILL.md') or a folder inside it",
    )
