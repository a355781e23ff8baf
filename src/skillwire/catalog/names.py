"""Skills by name, for the dialects and tools that have no URIs (N1, P1, M1).

A name that one skill has is enough. Where several have it, each is called by its path, and the bare name is
refused with the candidates: nothing is dropped, preferred or shadowed. A path or a URI always works, for unlisted
skills too.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from skillwire.errors import FormatError, NotFoundError
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, parse_uri, skill_md_uri

if TYPE_CHECKING:
    from skillwire.catalog.changes import Change
    from skillwire.catalog.contract import Catalog
    from skillwire.skill import SkillEntry

_SUGGESTIONS = 5


class Names:
    """The names in ``catalog``. They are gathered on first use, and again when skills came or went."""

    def __init__(self, catalog: Catalog, scheme: str = DEFAULT_SCHEME) -> None:
        self._catalog = catalog
        self._scheme = scheme
        self._paths: dict[str, tuple[str, ...]] | None = None  # by name
        self._generation = 0
        self._watch = catalog.changes()
        self._watch.forward(self._forget)

    async def label(self, entry: SkillEntry) -> str:
        """What ``entry`` is called: its name, or its path where others have that name."""
        paths = (await self._gathered()).get(entry.name, ())
        return entry.name if paths in ((), (entry.path,)) else entry.path

    async def find(self, name: str) -> SkillEntry:
        """The skill called ``name``: a name, a path or a URI. ``NotFoundError`` says which are near."""
        if "://" in name:
            return await self._catalog.get_skill(name)
        paths = (await self._gathered()).get(name, ())
        if len(paths) > 1:
            raise NotFoundError(
                "skill-ambiguous", f"several skills are named {name!r:.100}", f"use one of {', '.join(paths[:20])}"
            )
        try:
            uri = skill_md_uri(paths[0] if paths else name.removesuffix(f"/{SKILL_MD}").strip("/"), self._scheme)
            return await self._catalog.get_skill(str(parse_uri(uri)))
        except (NotFoundError, FormatError) as error:
            raise self._unknown(name) from error

    def _unknown(self, name: str) -> NotFoundError:
        near = get_close_matches(name[:100], self._paths or (), _SUGGESTIONS, 0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else "list the skills to see their names"
        return NotFoundError("skill-unknown", f"no skill is named {name!r:.100}", hint)

    async def _gathered(self) -> dict[str, tuple[str, ...]]:
        while self._paths is None:
            generation = self._generation
            paths: dict[str, tuple[str, ...]] = {}
            async for entry in self._catalog.entries():
                paths[entry.name] = (*paths.get(entry.name, ()), entry.path)
            if generation == self._generation:  # nothing came or went meanwhile
                self._paths = paths
        return self._paths

    def _forget(self, change: Change) -> None:
        if change.added or change.removed:
            self._generation += 1
            self._paths = None
