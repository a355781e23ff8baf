"""A registry as a catalog, for one caller (L, G, R, D, T).

Everything comes from one or two statements of the store, as this caller may see it. What a caller may not read
looks exactly like what does not exist. The ordinary URI of a skill is its ``stable`` version, which is listed.
``skill://acme/@1.2.0/refunds/SKILL.md`` and ``skill://acme/@beta/refunds/SKILL.md`` are exact versions and other
channels: not listed, but served.

``Changes`` tells catalogs and subscribers what was published, by this process or by another one on the same
database.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

import anyio
from anyio import lowlevel

from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Change,
    ChangeFeed,
    ChangeStream,
    DirectoryChild,
    LargeCatalog,
    Page,
    RelayStream,
    SkillFile,
    no_directory,
    no_file,
    no_skill,
)
from skillwire.catalog.cursor import children_in, clamp_limit, decode_cursor, encode_cursor, page_of
from skillwire.errors import NotFoundError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.registry.model import STABLE, Identity, SkillRef, parse_served_path
from skillwire.search.text import parse_query
from skillwire.server.callers import Views
from skillwire.skill.entry import SkillMeta, build_entry
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, format_uri, parse_uri, skill_md_uri
from skillwire.skill.version_status import VersionStatus, with_version_status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.registry.contract import AuditLine, RegistryStore, Release
    from skillwire.skill import SkillEntry, SkillUri

EVERYTHING: Final = Identity("registry", is_admin=True)
"""The registry itself. Its view is never shown to a caller."""

_LISTING = "registry"
_MOST_VIEWS = 256
_POLL_SECONDS = 1.0
# Changes that callers can see. Requests, roles and tokens change nothing that is served.
_SEEN = frozenset(
    {
        "published", "channel-moved", "channel-removed", "review-approved", "yanked", "unyanked", "deleted",
        "deprecated", "undeprecated", "listed", "unlisted",
    }
)  # fmt: skip
_REMOVING = frozenset({"channel-removed", "yanked", "deleted"})

log = logging.getLogger("skillwire.registry")


class RegistryCatalog(LargeCatalog):
    """The skills that ``who`` may read."""

    def __init__(self, store: RegistryStore, who: Identity, changes: Changes) -> None:
        self._store = store
        self._who = who
        self._changes = changes

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the ``stable`` versions."""
        after, limit = "" if cursor is None else decode_cursor(_LISTING, cursor), clamp_limit(limit)
        found = await self._store.skills(self._who, after, limit + 1)
        more = encode_cursor(_LISTING, found[limit - 1].path) if len(found) > limit else None
        return Page([entry_of(release, SkillRef(release.path)) for release in found[:limit]], more)

    async def get_skill(self, uri: str) -> SkillEntry:
        """The version at ``uri``."""
        ref = _skill_at(uri)
        release = None if ref is None else await self._store.release(self._who, ref)
        if ref is None or release is None:
            raise no_skill(uri)
        return entry_of(release, ref)

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """The same, or ``None``."""
        with suppress(NotFoundError):
            return await self.get_skill(uri)
        return None

    async def read_file(self, uri: str) -> SkillFile:
        """The bytes of one file of a version."""
        place = parse_uri(uri)
        for ref, inside in _files_at(place):
            data = await self._store.read(self._who, ref, inside)
            if data is not None:
                return SkillFile(str(place), data)
        raise no_file(uri)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory of a version, or of a folder above listed skills."""
        place = parse_uri(uri)
        if place.scheme != DEFAULT_SCHEME:
            raise no_directory(uri)
        listing = f"directory {place.path}"
        for ref, _ in _skills_around(place):
            release = await self._store.release(self._who, ref)
            if release is not None:
                return self._inside(entry_of(release, ref), release, place, cursor, limit)
        after, limit = "" if cursor is None else decode_cursor(listing, cursor), clamp_limit(limit)
        names = await self._store.children(self._who, place.path, after, limit + 1)
        if not names and cursor is None:
            raise no_directory(uri)
        more = encode_cursor(listing, names[limit - 1]) if len(names) > limit else None
        children = [
            DirectoryChild(format_uri(f"{place.path}/{name}"), name, is_directory=True) for name in names[:limit]
        ]
        return Page(children, more)

    def _inside(
        self, entry: SkillEntry, release: Release, place: SkillUri, cursor: str | None, limit: int
    ) -> Page[DirectoryChild]:
        children = children_in(entry, place)
        if not children:
            raise no_directory(str(place))
        executables = {f"{entry.path}/{file.path}" for file in release.manifest.files if file.executable}

        def child(name: str) -> DirectoryChild:
            found = children[name]
            is_executable = f"{place.path}/{name}" in executables
            return found._replace(executable=is_executable, modified=release.published_at)

        return page_of(f"directory {place.path}", sorted(children), child, cursor, limit)

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``."""
        return await self._store.beginning(self._who, beginning, min(limit, DEFAULT_LIMITS.max_page_size))

    async def named(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        """The paths of the listed skills with each of these names."""
        return await self._store.named(self._who, names)

    async def search(self, query: str, limit: int) -> Sequence[tuple[SkillEntry, float]]:
        """The listed skills that match best."""
        words = [term[0] for term in parse_query(query).terms]
        matches = await self._store.search(self._who, words, limit) if words and limit > 0 else ()
        found: list[tuple[SkillEntry, float]] = []
        for match in matches:
            ref = SkillRef(match.path)
            release = await self._store.release(self._who, ref)
            if release is not None:  # it may have been yanked since
                found.append((entry_of(release, ref), match.score))
        return found

    def changes(self) -> ChangeStream:
        """Changes of what ``who`` may read."""
        return RelayStream([(self._changes.feed.subscribe(), self._visible)])

    def _visible(self, change: Change) -> Change:
        return change.translate(lambda uris: (uri for uri in uris if self._changes.sees(self._who, uri)))

    async def follow(self) -> None:
        """Publish changes until cancelled."""
        await self._changes.follow()


class RegistryViews(Views):
    """The catalog of the caller of the current request. Callers with the same rights share one."""

    def __init__(self, store: RegistryStore, changes: Changes, caller: Callable[[], Identity]) -> None:
        self._store = store
        self._changes = changes
        self._caller = caller
        self._views: OrderedDict[Identity, RegistryCatalog] = OrderedDict()

    async def decide(self) -> None:
        """Nothing has to be prepared."""

    def catalog(self, catalog: Catalog) -> Catalog:  # noqa: ARG002 - every view is one of the store
        """What the caller may see."""
        who = self._caller()
        view = self._views.pop(who, None) or RegistryCatalog(self._store, who, self._changes)
        self._views[who] = view
        if len(self._views) > _MOST_VIEWS:
            self._views.popitem(last=False)
        return view

    def sees(self) -> Callable[[str], bool]:
        """A function that tells whether the caller may see a URI that was just published."""
        who = self._caller()
        return lambda uri: self._changes.sees(who, uri)


class Changes:
    """What is published in a registry. The clock of the store is polled; ``wake`` only makes it sooner.

    The readers of each changed namespace are read again with each change, so that a subscriber whose role was
    withdrawn hears nothing more.
    """

    def __init__(
        self,
        store: RegistryStore,
        wait: Callable[[float], Awaitable[object]] | None = None,
        end_revoked: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """``wait`` returns when the database may have changed, at the latest after the given seconds.

        ``end_revoked`` is called when tokens were revoked, before later changes are published.
        """
        self.feed = ChangeFeed()
        self._store = store
        self._wait = wait or anyio.sleep
        self._end_revoked = end_revoked or lowlevel.checkpoint
        self._woken = anyio.Event()
        self._readers: dict[str, frozenset[str] | None] = {}

    def sees(self, who: Identity, uri: str) -> bool:
        """Whether ``who`` may read the namespace of ``uri``, of which a change is being published."""
        if who is EVERYTHING:
            return True
        namespace = parse_uri(uri).segments[0]
        readers = self._readers.get(namespace, frozenset())
        if readers is None:  # public
            return True
        if who.namespace not in (None, namespace):
            return False
        return who.is_admin or not who.principals.isdisjoint(readers)

    def wake(self) -> None:
        """Look for changes now. For the process that made one."""
        self._woken.set()

    async def follow(self) -> None:
        """Publish every change until cancelled. A database that fails is asked again."""
        clock: int | None = None
        while True:
            try:
                if clock is None:
                    newest = await self._store.clock()
                    await self._end_revoked()  # what was revoked before is in no later change
                    clock = newest
                clock = await self._publish_after(clock)
            except SkillwireError as error:
                log.warning("changes are not known: %s; trying again", error.message)
            await self._pause()

    async def _pause(self) -> None:
        async def wait_for_change() -> None:
            try:
                await self._wait(_POLL_SECONDS)
            except SkillwireError:  # the database fails: poll, without haste
                await anyio.sleep(_POLL_SECONDS)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(wait_for_change)
            await self._woken.wait()
            group.cancel_scope.cancel()
        self._woken = anyio.Event()

    async def _publish_after(self, clock: int) -> int:
        while lines := await self._store.changes(clock):
            if any(line.what == "token-revoked" for line in lines):
                await self._end_revoked()
            found = [line for line in lines if "/" in line.path]
            namespaces = {line.path.partition("/")[0] for line in found}
            if namespaces:
                self._readers = dict(await self._store.readers(namespaces))
            self.feed.publish(await self._change(found))
            clock = lines[-1].number
        return clock

    async def _change(self, lines: Iterable[AuditLine]) -> Change:
        """The URIs of what changed: those that are served now, and those that are not any more."""
        changed: set[str] = set()
        removed: set[str] = set()
        refs: dict[SkillRef, bool] = {}
        for line in lines:
            for ref in _changed_refs(line):
                refs[ref] = refs.get(ref, False) or line.what in _REMOVING
        for ref, may_be_gone in refs.items():
            if await self._store.release(EVERYTHING, ref) is not None:
                changed.add(skill_md_uri(ref.served_path))
            elif may_be_gone:  # otherwise it was not served before either
                removed.add(skill_md_uri(ref.served_path))
        return Change(changed=frozenset(changed), removed=frozenset(removed))


def entry_of(release: Release, ref: SkillRef) -> SkillEntry:
    """The entry of a version at the path that ``ref`` has over MCP."""
    manifest, is_stable = release.manifest, ref.version is None and ref.channel is None
    meta = SkillMeta(listed=release.listed and is_stable)
    files = ((file.path, file.digest, file.size) for file in manifest.files)
    entry = build_entry(
        ref.served_path, manifest.frontmatter, files, meta=meta, modified=release.published_at, local=True
    )
    exact = SkillRef(release.path, version=release.version)
    status = VersionStatus(
        release.version,
        skill_md_uri(exact.served_path),
        release.yanked or "",
        release.deprecated or "",
        release.instead or "",
    )
    return with_version_status(entry, status)


def _changed_refs(line: AuditLine) -> Iterator[SkillRef]:
    """What looks different after a change: the version, and the channels that moved.

    A version that no channel got changes nothing for others, and to them one that was not approved does not exist.
    """
    facts = line.facts
    is_hidden = facts.get("approved") is False or (line.what == "published" and not facts.get("moved"))
    if line.what not in _SEEN or is_hidden:
        return
    if line.version:
        yield SkillRef(line.path, version=line.version)
    moved = facts.get("channels")
    channels = [*cast("Mapping[str, object]", moved)] if isinstance(moved, dict) else []
    for channel in (*channels, facts.get("channel") or STABLE):
        yield SkillRef(line.path, channel=None if channel == STABLE else str(channel))


def _skill_at(uri: str) -> SkillRef | None:
    place = parse_uri(uri)
    if place.scheme != DEFAULT_SCHEME or place.segments[-1] != SKILL_MD:
        return None
    return _served(place.parent)


def _served(place: SkillUri) -> SkillRef | None:
    """The version whose root is ``place``. Each has one URI, so ``@stable`` is none."""
    ref = parse_served_path(place.path)
    return None if ref is None or ref.channel == STABLE else ref


def _skills_around(place: SkillUri) -> Iterator[tuple[SkillRef, str]]:
    """The versions whose root may be ``place`` or around it, innermost first, and the path inside."""
    for root in place.upwards():
        ref = _served(root)
        if ref is not None:
            yield ref, "/".join(place.segments[len(root.segments) :])


def _files_at(place: SkillUri) -> Iterator[tuple[SkillRef, str]]:
    if place.scheme == DEFAULT_SCHEME:
        yield from ((ref, inside) for ref, inside in _skills_around(place) if inside)
