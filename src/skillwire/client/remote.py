"""A connected server as a ``Catalog``: what the server lists, held by digest; what is read, verified.

The listing is asked for anew whenever somebody begins to page through it, unless ``follow`` keeps it current; then
a request costs the server nothing. Bytes are compared with the entry that is held. If they differ, the entry is
asked for once more, since the skill may just have changed; if the new entry does not describe them either, there
are none (R2).

Skills whose bytes cannot be verified are listed, and read only with ``allow_unverified`` (V7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from skillwire.catalog.changes import Change, ChangeFeed, ChangeStream
from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, Catalog, DirectoryChild, Page, SkillFile
from skillwire.catalog.cursor import DirectoryPages, page_of
from skillwire.catalog.snapshot import beginning_with, no_directory, no_file
from skillwire.client.connection import pause_before
from skillwire.client.refresh import Refresh, compare, is_same
from skillwire.errors import NotFoundError, ProtocolError, SkillwireError, VerificationError
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.uri import SKILL_MD, SkillUri, format_uri, parse_uri, skill_root
from skillwire.skill.verify import STALE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.client.skills import SkillsClient
    from skillwire.skill import SkillEntry

_POLL_SECONDS = 60.0


class RemoteCatalog(Catalog):
    """The skills of ``client``'s server."""

    def __init__(
        self, client: SkillsClient, *, allow_unverified: bool = False, poll_seconds: float = _POLL_SECONDS
    ) -> None:
        self._client = client
        self._allow_unverified = allow_unverified
        self._poll_seconds = poll_seconds
        self._listed: dict[SkillUri, SkillEntry] = {}  # by root
        self._got: dict[SkillUri, SkillEntry] = {}  # by root: asked for since, and in some dialects fuller
        self._keys: list[str] | None = None  # canonical URIs of what is listed, sorted
        self._is_current = False
        self._ended: SkillwireError | None = None  # why the listing is partial, if it is
        self._feed = ChangeFeed()
        self._directories = DirectoryPages()

    async def refresh(self) -> Refresh:
        """Ask for the whole listing, and tell whoever listens what changed."""
        listing = await self._client.list_all()
        if listing.error is not None and listing.error.rule != "B3":
            raise listing.error
        self._ended = listing.error
        entries = {_root(entry.uri): entry for entry in listing.entries}
        if listing.error is not None:
            entries = {**self._listed, **entries}  # a partial one does not prove that anything is gone (L2)
        refresh = compare(self._listed.values(), entries.values())
        self._listed, self._got = entries, {}
        first = self._keys is None
        self._keys = sorted(str(parse_uri(entry.uri)) for entry in self._listed.values())
        if not first:
            self._feed.publish(
                Change(_uris(refresh.new), changed=_uris(refresh.changed), removed=_uris(refresh.gone))
            )
        return refresh

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the listing; the first page asks the server."""
        keys, listed = await self._listing(anew=cursor is None), self._listed
        return page_of("skills", keys, lambda key: listed[_root(key)], cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry as the server gives it now."""
        parse_uri(uri)
        entry = await self._client.get_skill(uri)
        self._hold(entry)
        return entry

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """The entry that is held, without asking."""
        place = parse_uri(uri)
        return self._held(place.parent) if place.segments[-1] == SKILL_MD else None

    async def read_file(self, uri: str) -> SkillFile:
        """The bytes that the current entry describes."""
        entry = await self._around(parse_uri(uri))
        try:
            return await self._read(entry, uri)
        except VerificationError as error:
            if error.reference not in STALE:
                raise
            fresh = await self.get_skill(entry.uri)
            if is_same(fresh, entry):
                raise no_file(uri) if error.reference == "file-unlisted" and entry.is_complete else error from None
            return await self._read(fresh, uri)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory: as the server reads it, or else as the entry's files show it."""
        place = parse_uri(uri)

        async def read() -> dict[str, DirectoryChild]:
            has_archives = await self._client.dialect() == "index"  # there, a packed skill is no directory
            if self._client.supports_directory_read or has_archives:
                try:
                    return {child.name: child for child in await self._client.read_directory(uri)}
                except (NotFoundError, ProtocolError) as error:
                    is_none = isinstance(error, NotFoundError) or error.reference == "directory-unsupported"
                    if not (has_archives and is_none):
                        raise
            return await self._children(place)

        return await self._directories.page(place, read, cursor, limit)

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``."""
        paths = sorted(_root(key).path for key in await self._listing(anew=False))
        return beginning_with(paths, beginning, limit)

    def changes(self) -> ChangeStream:
        """What changes from now on, as far as ``refresh`` or ``follow`` sees it."""
        return self._feed.subscribe()

    async def problems(self) -> list[Diagnostic]:
        """What was listed so far and cannot be used; also where a listing or a directory is partial."""
        ended = self._ended
        rest = [] if ended is None else [Diagnostic("listing-partial", ended.message, ended.hint, "other skills")]
        return [*self._client.problems, *rest]

    async def follow(self) -> None:
        """Keep the listing current: when the server says that it changed, and else every minute."""
        attempt = 0
        try:
            while True:
                try:
                    await self.refresh()
                    async with self._client.connection.listening() as wait:
                        while True:
                            await self.refresh()
                            self._is_current, attempt = True, 0
                            await wait(self._poll_seconds)
                except SkillwireError:  # also a listing that breaks a rule: the next one may not
                    self._is_current = False
                    limits = self._client.connection.limits
                    await anyio.sleep(max(limits.relist_seconds, pause_before(attempt, limits)))
                    attempt += 1
        finally:
            self._is_current = False

    async def _listing(self, *, anew: bool) -> list[str]:
        if self._keys is None or (anew and not self._is_current):
            await self.refresh()
        return self._keys or []

    def _hold(self, entry: SkillEntry) -> None:
        root = _root(entry.uri)
        known, listed = self._held(root), self._listed.get(root)
        self._got[root] = entry
        if listed is not None and listed.is_complete:
            self._listed[root] = entry
        # A short listing and a full answer differ although nothing changed.
        if known is not None and known.is_complete and not is_same(known, entry):
            self._feed.publish(Change(changed=frozenset({entry.uri})))

    def _held(self, root: SkillUri) -> SkillEntry | None:
        return self._got.get(root) or self._listed.get(root)

    async def _around(self, place: SkillUri) -> SkillEntry:
        """The innermost skill around a file, with all that its server promises: a listing may say less."""
        for depth in range(len(place.segments) - 1, 0, -1):
            root = SkillUri(place.scheme, place.segments[:depth])
            entry = self._held(root)
            if entry is not None:
                is_short = not entry.is_complete and not entry.is_dynamic and root not in self._got
                return await self.get_skill(entry.uri) if is_short else entry
        entry = await self._client.find_skill(str(place))
        self._hold(entry)
        return entry

    async def _read(self, entry: SkillEntry, uri: str) -> SkillFile:
        if self._allow_unverified and not _is_promised(entry, uri):
            return SkillFile(*await self._client.read_unverified(uri, entry.uri))
        file = await self._client.read_resource(entry, uri)
        return SkillFile(file.uri, file.data)

    async def _children(self, place: SkillUri) -> dict[str, DirectoryChild]:
        """A directory as the files of an entry show it; one that is empty does not show."""
        entry = await self._around(SkillUri(place.scheme, (*place.segments, SKILL_MD)))
        children: dict[str, DirectoryChild] = {}
        depth = len(place.segments)
        for file in entry.files:
            parsed = parse_uri(file.uri)
            if parsed.segments[:depth] == place.segments and len(parsed.segments) > depth:
                name, is_directory = parsed.segments[depth], len(parsed.segments) > depth + 1
                uri = format_uri(f"{place.path}/{name}", place.scheme) if is_directory else file.uri
                children[name] = DirectoryChild(uri, name, is_directory, None if is_directory else file.size)
        if not children:
            raise no_directory(str(place))
        return children


def _root(uri: str) -> SkillUri:
    return skill_root(parse_uri(uri))


def _is_promised(entry: SkillEntry, uri: str) -> bool:
    """Whether there is anything to compare the file at ``uri`` with; a complete entry says that it is no file."""
    resource = entry.resource(uri)
    return entry.is_complete if resource is None else resource.digest is not None


def _uris(entries: Sequence[SkillEntry]) -> frozenset[str]:
    return frozenset(entry.uri for entry in entries)
