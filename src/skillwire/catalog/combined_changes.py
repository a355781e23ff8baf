"""What changes in several catalogs that are one, under the names that a caller sees (S1, N1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.catalog.changes import Change, ChangeFeed, ChangeStream
from skillwire.catalog.collisions import Claims, Mount
from skillwire.skill.uri import parse_uri, skill_md_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Sequence


class CombinedStream(ChangeStream):
    """The streams of several sources; names are settled when a change is taken, by the state of then."""

    def __init__(self, mounts: Sequence[Mount], scheme: str) -> None:
        super().__init__(ChangeFeed())
        self._mounts = mounts
        self._scheme = scheme
        self._waiting: dict[Mount, Change] = {}
        self._sources = [mount.catalog.changes() for mount in mounts]
        for mount, stream in zip(mounts, self._sources, strict=True):
            stream.forward(lambda change, mount=mount: self._note(mount, change))

    def close(self) -> None:
        """Stop listening to every source."""
        for stream in self._sources:
            stream.close()
        super().close()

    async def pending(self) -> Change:
        """What changed, under the names that are visible now."""
        await super().pending()
        waiting, self._waiting = self._waiting, {}
        claims = Claims(self._mounts, self._scheme)
        merged = Change()
        try:
            for mount, change in waiting.items():
                merged = merged.then(await self._outside(claims, mount, change))
        except BaseException:  # whoever asked was broken off, or a source failed: it is asked about again
            later, self._waiting = self._waiting, waiting
            for mount, change in later.items():
                self._note(mount, change)
            raise
        return merged

    def _note(self, mount: Mount, change: Change) -> None:
        if self._sink is None:  # forwarded, a change only says that there is one: nothing waits to be taken
            self._waiting[mount] = self._waiting.get(mount, Change()).then(change)
        self.push(change)

    async def _outside(self, claims: Claims, mount: Mount, change: Change) -> Change:
        """A skill that comes to a taken path, or leaves one, also moves the skill that was there."""
        added, changed, removed = set[str](), set[str](), set[str]()
        for uri in change.changed:
            path = mount.outer(skill_root(parse_uri(uri)).path)
            changed.add(await claims.visible_path(mount, path))
        for uri in change.added:
            path = mount.outer(skill_root(parse_uri(uri)).path)
            others = await self._others(claims, mount, path)
            added.add(await claims.visible_path(mount, path))
            if len(others) == 1:
                removed.add(path)
                added.add(others[0].qualified(path))
        for uri in change.removed:
            path = mount.outer(skill_root(parse_uri(uri)).path)
            others = await self._others(claims, mount, path)
            plain = claims.may_claim(mount, path) and not others
            removed.add(path if plain else mount.qualified(path))
            if len(others) == 1:
                removed.add(others[0].qualified(path))
                added.add(path)
        return Change(*(frozenset(skill_md_uri(p, self._scheme) for p in s) for s in (added, changed, removed)))

    async def _others(self, claims: Claims, mount: Mount, path: str) -> list[Mount]:
        """Whoever else claims ``path``, if ``mount`` may claim it."""
        if not claims.may_claim(mount, path):
            return []
        return [claim.mount for claim in await claims.of(path) if claim.mount is not mount]
