"""The problems of the catalog, as far as the caller may see them.

A problem must not reveal an unlisted skill. A served skill has a ``listed`` flag. For a skill that is not served,
its problems have the flag, or its path matches one of the globs for unlisted skills.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from skillwire.errors import FormatError
from skillwire.skill.uri import skill_md_uri

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog
    from skillwire.skill import Diagnostic
    from skillwire.web.catalog.list_view import Paths
    from skillwire.web.catalog.site import Site

_MAX_PROBLEMS = 500
_MAX_IGNORED = 1000


async def visible_problems(catalog: Catalog, paths: Paths, site: Site) -> dict[str, Any]:
    """The problems that exclude skills, other problems, and paths that are ignored by name."""
    found = await catalog.problems()
    unlisted = frozenset(problem.skill for problem in found if problem.skill and not problem.listed)
    disclosure = _Disclosure(catalog, paths, site, unlisted)
    problems = [problem for problem in found if problem.listed and await disclosure.may_mention_problem(problem)]
    refused = [problem for problem in problems if problem.refuses]
    noted = [problem for problem in problems if not problem.refuses]
    ignored = [path for path in await catalog.ignored() if await disclosure.may_mention(path)]
    return {
        "refused": refused[:_MAX_PROBLEMS],
        "noted": noted[:_MAX_PROBLEMS],
        "ignored": ignored[:_MAX_IGNORED],
        "refused_count": len(refused),
        "noted_count": len(noted),
        "ignored_count": len(ignored),
    }


class _Disclosure:
    """Decides which paths a page may mention. Results are cached for one request."""

    def __init__(self, catalog: Catalog, paths: Paths, site: Site, unlisted: frozenset[str]) -> None:
        self._unlisted = unlisted  # skills that are not served, and would not be listed
        self._catalog = catalog
        self._paths = paths
        self._site = site
        self._known: dict[str, bool] = {"": True}  # by folder

    async def may_mention_problem(self, problem: Diagnostic) -> bool:
        """Whether a problem mentions no unlisted skill."""
        named = [path for path in (problem.skill, problem.other) if path]
        if any(map(self._is_unlisted, named)):
            return False
        if problem.refuses and problem.skill:  # the skill is not served, so there is no entry to check
            return True
        for path in named:
            if not await self._is_listed(path):
                return False
        return bool(named) or await self.may_mention(problem.file)

    async def may_mention(self, path: str) -> bool:
        """Whether neither ``path`` nor the innermost skill around it is unlisted."""
        return not self._is_unlisted(path) and await self._is_inside_listed(path.rpartition("/")[0])

    async def _is_inside_listed(self, folder: str) -> bool:
        if folder not in self._known:
            is_listed = not self._is_unlisted(folder) and await self._is_listed(folder)
            is_skill = await self._paths.has(folder)
            self._known[folder] = is_skill or (
                is_listed and await self._is_inside_listed(folder.rpartition("/")[0])
            )
        return self._known[folder]

    async def _is_listed(self, path: str) -> bool:
        """Whether the skill at ``path``, if there is one, is listed."""
        if await self._paths.has(path):  # faster than a request to the catalog
            return True
        try:
            entry = await self._catalog.peek_skill(skill_md_uri(path, self._site.skills.scheme))
        except FormatError:  # an ignored path may not be a valid path of a skill
            return True
        return entry is None or entry.listed

    def _is_unlisted(self, path: str) -> bool:
        return path in self._unlisted or any(fnmatchcase(path, glob) for glob in self._site.unlisted)
