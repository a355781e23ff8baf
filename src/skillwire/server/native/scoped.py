"""Which tools, prompts and resources belong to which skills: by code, and by what skills say of themselves (M3).

Gathered from every skill that the catalog knows, listed or not, once, and again after something changed; no
request looks through skills for it. Several skills may bind one thing. A skill that a template makes is not among
them: its frontmatter is unknown before it is made, and binds nothing. Code can bind to it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from anyio import lowlevel

from skillwire.skill.uri import skill_md_uri
from skillwire.wire.native import KINDS, Kind, bound_in
from skillwire.wire.templates import canonical_uri, is_template, matches_template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillwire.catalog.changes import Change, ChangeStream
    from skillwire.catalog.contract import Catalog
    from skillwire.server.binding import Served
    from skillwire.skill import SkillEntry

log = logging.getLogger("skillwire.server")

Paths = tuple[str, ...]
_ATTEMPTS = 3
_PAUSE_EVERY = 256  # skills, so that others get their turn


@dataclass(frozen=True, slots=True)
class Bound:
    """For each kind, the paths of the skills that bind a name or a URI."""

    skills: Mapping[Kind, Mapping[str, Paths]]
    templates: tuple[str, ...]

    def skills_of(self, kind: Kind, key: str) -> Paths:
        """Who binds exactly this, as it is listed; nobody if it belongs to no skill."""
        return self.skills[kind].get(canonical_key(kind, key), ())

    def by_template(self, uri: str) -> Paths:
        """Who binds a template that stands for ``uri``."""
        resources = self.skills["resources"]
        found = [resources[template] for template in self.templates if matches_template(template, uri)]
        return tuple(dict.fromkeys(path for paths in found for path in paths))


class Scoped:
    """The current ``Bound`` of what ``served`` holds."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._watched: tuple[Catalog, ChangeStream] | None = None
        self._missed: set[str] = set()
        self._has_warned = False
        self._generation = 0
        self._turn = anyio.Lock()
        self._known: tuple[tuple[int, int], Bound] | None = None
        self.kinds: frozenset[Kind] = frozenset()  # of which something is bound, as far as it is known

    async def keys_of(self, entry: SkillEntry, kind: Kind) -> frozenset[str]:
        """What one skill binds, listed or not: exactly what is hidden because of it (M3). URIs are canonical."""
        bound, said = await self.current(), bound_in(entry.frontmatter).get(kind, ())
        keys = {canonical_key(kind, key) for key in (*self._served.scopes.bound_by(entry.path, kind), *said)}
        own = frozenset(key for key in keys if entry.path in bound.skills_of(kind, key))
        if own < keys and not self._has_warned:
            self._has_warned = True
            log.warning(
                "the frontmatter of %r, which a template makes, cannot bind %s %s: bind them in code, with"
                " skills.scope(%r).bind(%s=[…])",
                entry.path,
                kind,
                ", ".join(sorted(keys - own)),
                entry.path,
                kind,
            )
        return own

    async def current(self) -> Bound:
        """Everything that is bound. A change meanwhile has it gathered again."""
        async with self._turn:
            bound: Bound | None = None
            for _ in range(_ATTEMPTS):
                catalog, mark = self._watch(), self._mark()
                if self._known is not None and self._known[0] == mark:
                    return self._known[1]
                bound = await self._gather(catalog)
                self._known = (mark, bound)
                self.kinds = frozenset(kind for kind in KINDS if bound.skills[kind])
            return bound or await self._gather(self._watch())  # of a catalog that never rests, the last one

    async def _gather(self, catalog: Catalog) -> Bound:
        scopes = self._served.scopes
        skills: dict[Kind, dict[str, Paths]] = {kind: {} for kind in KINDS}
        for path in scopes.paths:
            await self._expect(catalog, path)
            for kind in KINDS:
                _add(skills[kind], kind, scopes.bound_by(path, kind), path)
        for entry in await catalog.unlisted():
            _add_said(skills, entry)
        count = 0
        async for entry in catalog.entries():
            count += 1
            if count % _PAUSE_EVERY == 0:
                await lowlevel.checkpoint()
            _add_said(skills, entry)
        return Bound(skills, tuple(filter(is_template, skills["resources"])))

    async def _expect(self, catalog: Catalog, path: str) -> None:
        """Nobody can activate a skill that is not there: whoever mistyped its path is told, once."""
        if path not in self._missed and await catalog.peek_skill(skill_md_uri(path, self._served.scheme)) is None:
            self._missed.add(path)
            log.warning("code binds something to the skill %r, which is not there: it is hidden", path)

    def _watch(self) -> Catalog:
        catalog = self._served.whole()
        if self._watched is None or self._watched[0] is not catalog:
            if self._watched is not None:  # more skills were declared since
                self._watched[1].close()
            self._watched = (catalog, catalog.changes())
            self._watched[1].forward(self._forget)
            self._generation += 1
        return catalog

    def _forget(self, change: Change) -> None:  # noqa: ARG002 - whatever changed may bind something else now
        self._generation += 1

    def _mark(self) -> tuple[int, int]:
        return self._generation, self._served.scopes.version


def canonical_key(kind: Kind, key: str) -> str:
    """What is compared: names as they are, URIs in one spelling."""
    return canonical_uri(key) if kind == "resources" and not is_template(key) else key


def _add_said(skills: dict[Kind, dict[str, Paths]], entry: SkillEntry) -> None:
    for kind, keys in bound_in(entry.frontmatter).items():
        _add(skills[kind], kind, keys, entry.path)


def _add(skills: dict[str, Paths], kind: Kind, keys: Iterable[str], path: str) -> None:
    for key in keys:
        canonical = canonical_key(kind, key)
        known = skills.get(canonical, ())
        skills[canonical] = known if path in known else (*known, path)
