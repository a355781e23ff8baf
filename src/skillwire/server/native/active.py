"""What a caller may use right now: what no skill binds, and what one of its active skills binds (M3, M5).

What a skill binds is in no list, active or not: activating the skill returns its definition. Of what was
activated, only what still exists, may be seen by the caller, and stands inside nothing that is not active counts.
A skill inside a listed skill is a scoped primitive like the others: it can be activated once that one is active.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.server.native.scoped import Bound, Scoped, canonical_key
from skillwire.skill.uri import skill_md_uri

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from skillwire.catalog.contract import Catalog
    from skillwire.server.binding import Context, Served
    from skillwire.server.native.activation import Activations
    from skillwire.skill import SkillEntry
    from skillwire.wire.native import Kind


class ActiveSkills:
    """The one place that decides what is hidden. With ``keep_listed`` that is only what is never seen (M5)."""

    def __init__(self, served: Served, activations: Activations, *, keep_listed: bool) -> None:
        self._served = served
        self._activations = activations
        self.scoped = Scoped(served)
        self.keep_listed = keep_listed

    async def live(self, ctx: Context) -> frozenset[str]:
        """Paths of the skills that are active, now and for this caller."""
        catalog = self._served.catalog_for(ctx)
        live: set[str] = set()
        for path in sorted(self._activations.paths(ctx)):  # an enclosing one comes before what is inside
            if await self._peek(catalog, path) is not None:
                outer = await self.enclosing(catalog, path)
                if self.keep_listed or outer is None or outer.path in live:
                    live.add(path)
        return frozenset(live)

    async def enclosing(self, catalog: Catalog, path: str) -> SkillEntry | None:
        """The innermost listed skill around ``path``, as far as ``catalog`` shows it."""
        while path := path.rpartition("/")[0]:
            entry = await self._peek(catalog, path)
            if entry is not None and entry.listed:
                return entry
        return None

    async def is_offered(self, ctx: Context, path: str, live: Iterable[str]) -> bool:
        """Whether the skill at ``path`` can be activated: nothing is around it, or what is around it is active."""
        if self.keep_listed:
            return True
        outer = await self.enclosing(self._served.catalog_for(ctx), path)
        return outer is None or outer.path in live

    async def is_listed(self, ctx: Context, path: str) -> bool:
        """Whether the skill at ``path`` is in the listing: nothing that the caller may see is around it."""
        return self.keep_listed or await self.enclosing(self._served.catalog_for(ctx), path) is None

    async def hidden(self, kind: Kind) -> frozenset[str] | None:
        """Names or URIs (canonical) that are in no list; ``None`` if nothing of the kind is bound."""
        keys = (await self.scoped.current()).skills[kind]
        if not keys or not self.keep_listed:
            return frozenset(keys) or None
        sees = self._served.sees()
        return frozenset(key for key, paths in keys.items() if not any(map(sees, self._uris(paths))))

    async def refusal(self, ctx: Context, paths: tuple[str, ...]) -> list[SkillEntry] | None:
        """``None`` if one of ``paths`` lets the caller in; else the listed ones that it may see and activate.

        A refusal does not tell of skills that are not listed, and makes none.
        """
        if not paths or await self._usable(ctx, paths):
            return None
        catalog = self._served.catalog_for(ctx)
        entries = [await self._peek(catalog, path) for path in paths]
        return [entry for entry in entries if entry is not None and entry.listed]

    async def binders(self, kind: Kind, key: str) -> tuple[Bound, tuple[str, ...]]:
        """Who binds ``key``, exactly."""
        bound = await self.scoped.current()
        return bound, bound.skills_of(kind, key)

    async def _usable(self, ctx: Context, paths: Collection[str]) -> frozenset[str]:
        if self.keep_listed:
            sees = self._served.sees()
            return frozenset(path for path, uri in zip(paths, self._uris(paths), strict=True) if sees(uri))
        return (await self.live(ctx)).intersection(paths)

    def _uris(self, paths: Iterable[str]) -> list[str]:
        return [skill_md_uri(path, self._served.scheme) for path in paths]

    async def _peek(self, catalog: Catalog, path: str) -> SkillEntry | None:
        return await catalog.peek_skill(skill_md_uri(path, self._served.scheme))


def is_hidden(kind: Kind, key: object, hidden: frozenset[str]) -> bool:
    """Whether a listed thing is among ``hidden``."""
    return isinstance(key, str) and canonical_key(kind, key) in hidden
