"""Bytes of an upstream's files: from the cache, or fetched once for everybody, and verified either way.

- A hit is hashed again (C1, V1); the fields of a ``SKILL.md`` are compared with each entry that claims them (V4).
- A mismatch, or a file that is gone, ends in a fresh entry, asked for once (V3). If that claims the same, the
  upstream lies, and there are no bytes.
- What nothing was promised about is passed on, bounded, and kept nowhere (V7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.catalog.snapshot import no_file
from skillwire.client.refresh import is_same
from skillwire.errors import FormatError, NotFoundError, VerificationError
from skillwire.skill.verify import STALE, VerifiedFile, expect_file, verify_file, verify_skill

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillwire.client.relocation import Relocation
    from skillwire.client.single_flight import SingleFlight
    from skillwire.errors import SkillwireError
    from skillwire.gateway.link import UpstreamLink
    from skillwire.limits import Limits
    from skillwire.skill import Resource, SkillEntry
    from skillwire.store.write_behind import WriteBehind

_MOST_PROVED = 65_536


class UpstreamReads:
    """Reads through ``link``. ``hold`` hears of a fresh entry, ``drop`` of a skill that is gone."""

    def __init__(
        self,
        link: UpstreamLink,
        keeper: WriteBehind,
        flights: SingleFlight,
        limits: Limits,
        hold: Callable[[SkillEntry], SkillEntry],
        drop: Callable[[SkillEntry], None],
        relocation: Relocation,
    ) -> None:
        self._link = link
        self._keeper = keeper
        self._flights = flights
        self._limits = limits
        self._hold = hold
        self._drop = drop
        self._relocation = relocation
        self._proved: dict[str, SkillEntry] = {}  # entries whose fields were compared with their SKILL.md, by URI

    async def read(self, entry: SkillEntry, uri: str) -> bytes:
        """The bytes of a file of ``entry``; ``NotFoundError`` if the entry says that there is none (V2)."""
        if entry.is_unpromised(uri):
            return await self._flights.share(("raw", uri), lambda: self._read_raw(entry, uri))
        try:
            expected = expect_file(entry, uri, self._limits)
        except VerificationError as error:
            raise no_file(uri) from error
        file = await self._cached(entry, expected)
        if file is None:
            file = await self._shared(entry, expected)
        return file.data

    async def _shared(self, entry: SkillEntry, expected: Resource) -> VerifiedFile:
        """Fetched for us, or for somebody whose entry has other fields (V4).

        Another content than expected is one that a fresh entry promises (V3), and was compared with that.
        """
        is_ours = False

        async def fetch() -> VerifiedFile:
            nonlocal is_ours
            is_ours = True
            file = await self._fetch(entry, expected.uri)
            self._keeper.put(file)
            return file

        file = await self._flights.share((entry.uri, expected.uri, expected.digest), fetch)
        is_checked = is_ours or file.digest != expected.digest
        return file if is_checked else self._proven(entry, expected, file.data)

    async def _fetch(self, entry: SkillEntry, uri: str) -> VerifiedFile:
        try:
            return await self._ask(entry, uri)
        except (NotFoundError, VerificationError) as error:
            if isinstance(error, VerificationError) and error.reference not in STALE:
                raise
            fresh = await self._fresh(entry, uri, error)
        try:
            return await self._ask(fresh, uri)
        except NotFoundError as error:
            raise no_file(uri) from error

    async def _ask(self, entry: SkillEntry, uri: str) -> VerifiedFile:
        if entry.is_complete or not entry.is_named:
            return await self._link.ask(lambda client: client.read_resource(entry, uri))
        expect_file(entry, uri, self._limits)
        return verify_file(entry, uri, await self._read_raw(entry, uri), self._limits)

    async def _fresh(self, entry: SkillEntry, uri: str, failure: SkillwireError) -> SkillEntry:
        """V3: another entry of the same skill; ``failure``, if there is none that differs."""
        try:
            asked = await self._link.ask(lambda client: client.get_skill(entry.uri))
        except NotFoundError as error:
            self._drop(entry)
            raise no_file(uri) from error
        except FormatError:  # there is no entry that could be served instead
            raise failure from None
        fresh = self._relocation.moved(asked)
        if is_same(fresh, entry):
            raise no_file(uri) if isinstance(failure, NotFoundError) else failure
        return self._hold(fresh)

    async def _read_raw(self, entry: SkillEntry, uri: str) -> bytes:
        try:
            return await self._link.ask(lambda client: self._relocation.read(client, entry, uri))
        except NotFoundError as error:
            raise no_file(uri) from error

    async def _cached(self, entry: SkillEntry, expected: Resource) -> VerifiedFile | None:
        data = await self._keeper.get(expected)
        return None if data is None else self._proven(entry, expected, data)

    def _proven(self, entry: SkillEntry, expected: Resource, data: bytes) -> VerifiedFile:
        """V1, and V4 once for each entry."""
        if expected.uri != entry.uri or self._proved.get(entry.uri) is entry:
            return verify_file(entry, expected.uri, data, self._limits)
        file = verify_skill(entry, data, self._limits).file
        if len(self._proved) >= _MOST_PROVED:
            self._proved.clear()
        self._proved[entry.uri] = entry
        return file
