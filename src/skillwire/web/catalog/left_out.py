"""What was left out of the catalog and why, as far as the caller may see it.

What is not listed is not named here either. A skill that is served says itself whether it is listed; of one that
is not, its problems do, and the globs by which it would not be.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from skillwire.errors import FormatError
from skillwire.skill.uri import skill_md_uri

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog
    from skillwire.skill import Diagnostic
    from skillwire.web.catalog.paths import Paths
    from skillwire.web.catalog.site import Site

_MOST_PROBLEMS = 500
_MOST_IGNORED = 1000


async def left_out(catalog: Catalog, paths: Paths, site: Site) -> dict[str, Any]:
    """The problems that keep skills out, those that do not, and paths that are left out by their names."""
    found = await catalog.problems()
    unlisted = frozenset(problem.skill for problem in found if problem.skill and not problem.listed)
    telling = _Telling(catalog, paths, site, unlisted)
    problems = [problem for problem in found if problem.listed and await telling.may_tell(problem)]
    refused = [problem for problem in problems if problem.refuses]
    noted = [problem for problem in problems if not problem.refuses]
    ignored = [path for path in await catalog.ignored() if await telling.may_name(path)]
    return {
        "refused": refused[:_MOST_PROBLEMS],
        "noted": noted[:_MOST_PROBLEMS],
        "ignored": ignored[:_MOST_IGNORED],
        "refused_count": len(refused),
        "noted_count": len(noted),
        "ignored_count": len(ignored),
    }


class _Telling:
    """What may be named to whoever did not name it; remembered for the length of one request."""

    def __init__(self, catalog: Catalog, paths: Paths, site: Site, unlisted: frozenset[str]) -> None:
        self._unlisted = unlisted  # skills that cannot be served, and would not be listed
        self._catalog = catalog
        self._paths = paths
        self._site = site
        self._known: dict[str, bool] = {"": True}  # by folder

    async def may_tell(self, problem: Diagnostic) -> bool:
        """Whether nothing that a problem names is unlisted."""
        named = [path for path in (problem.skill, problem.other) if path]
        if any(map(self._is_unlisted, named)):
            return False
        if problem.refuses and problem.skill:  # so there is no skill that could be asked
            return True
        for path in named:
            if not await self._is_clear(path):
                return False
        return bool(named) or await self.may_name(problem.file)

    async def may_name(self, path: str) -> bool:
        """Whether neither ``path`` nor the innermost skill around it is unlisted."""
        return not self._is_unlisted(path) and await self._is_around(path.rpartition("/")[0])

    async def _is_around(self, folder: str) -> bool:
        if folder not in self._known:
            is_clear = not self._is_unlisted(folder) and await self._is_clear(folder)
            is_skill = await self._paths.has(folder)
            self._known[folder] = is_skill or (is_clear and await self._is_around(folder.rpartition("/")[0]))
        return self._known[folder]

    async def _is_clear(self, path: str) -> bool:
        """Whether there is no skill at ``path``, or one that is listed."""
        if await self._paths.has(path):  # which is quick; asking the catalog for each is not
            return True
        try:
            entry = await self._catalog.peek_skill(skill_md_uri(path, self._site.skills.scheme))
        except FormatError:  # names that cannot be a skill's are among what is left out
            return True
        return entry is None or entry.listed

    def _is_unlisted(self, path: str) -> bool:
        return path in self._unlisted or any(fnmatchcase(path, glob) for glob in self._site.unlisted)
