"""The lists of the catalog: listed skills by path, search results, and problems.

The paths are cached until skills are added or removed, so that a page costs the same for every size of catalog.

A problem must not reveal an unlisted skill. A served skill has a ``listed`` flag. For a skill that is not served,
its problems have the flag, or its path matches one of the globs for unlisted skills.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from skillwire.errors import FormatError
from skillwire.search.text import parse_query
from skillwire.skill.uri import skill_md_uri
from skillwire.web.escape import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillwire.catalog.contract import Catalog, Change
    from skillwire.search.fts5 import Hit
    from skillwire.skill import Diagnostic, SkillEntry
    from skillwire.web.catalog.site import Site

MAX_VIEWS = 16
_LONGEST = 240  # characters of a description; the page of the skill shows all of it
_FOUND = Markup('<mark class="found">{}</mark>')
_MAX_PROBLEMS = 500
_MAX_IGNORED = 1000


class PathPage(NamedTuple):
    """One page of the listed skills, with its position and the cursors of the pages around it."""

    uris: list[str]
    first: int
    total: int
    before: str | None  # the cursor of the previous page; None on the first page
    after: str | None

    @property
    def last(self) -> int:
        """The number of the last skill of the page."""
        return self.first + len(self.uris) - 1


@dataclass(slots=True)
class _Listing:
    uris: dict[str, str] = field(default_factory=dict[str, str])  # by path
    paths: list[str] = field(default_factory=list[str])  # sorted
    folders: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])  # counts


class Paths:
    """The paths of the listed skills of ``catalog``."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._listing: _Listing | None = None
        self._generation = 0
        self._watch = catalog.changes()
        self._watch.forward(self._forget)

    def close(self) -> None:
        """Stop listening for changes."""
        self._watch.close()

    async def page(self, under: str, after: str, limit: int) -> PathPage:
        """The next ``limit`` skills below the folder ``under`` after the path ``after``."""
        listing = await self._current()
        start, stop = 0, len(listing.paths)
        if under:
            start = bisect_left(listing.paths, f"{under}/")
            stop = bisect_left(listing.paths, f"{under}0")  # '/' < '0'
        at = bisect_right(listing.paths, after, start, stop) if after else start
        end = min(at + limit, stop)
        earlier = max(at - limit, start)
        before = None if at == start else "" if earlier == start else listing.paths[earlier - 1]
        after_page = listing.paths[end - 1] if end < stop else None
        uris = [listing.uris[path] for path in listing.paths[at:end]]
        return PathPage(uris, at - start + 1, stop - start, before, after_page)

    async def folders(self, under: str) -> dict[str, int]:
        """The folders directly in ``under``, with the number of skills below each."""
        return (await self._current()).folders.get(under, {})

    async def has(self, path: str) -> bool:
        """Whether a skill at ``path`` is listed."""
        return path in (await self._current()).uris

    async def _current(self) -> _Listing:
        while self._listing is None:
            generation = self._generation
            listing = _listing_of([(entry.path, entry.uri) async for entry in self._catalog.entries()])
            if generation == self._generation:  # no skill was added or removed meanwhile
                self._listing = listing
        return self._listing

    def _forget(self, change: Change) -> None:
        if change.added or change.removed:
            self._generation += 1
            self._listing = None


def _listing_of(skills: Iterable[tuple[str, str]]) -> _Listing:
    listing = _Listing(dict(sorted(skills)))
    listing.paths = list(listing.uris)
    for path in listing.paths:
        parent = ""
        for name in path.split("/")[:-1]:
            inside = listing.folders.setdefault(parent, {})
            inside[name] = inside.get(name, 0) + 1
            parent = f"{parent}/{name}" if parent else name
    return listing


class CatalogRow(NamedTuple):
    """One skill in a list."""

    path: str
    folder: str
    name: str
    summary: Markup
    files: int | None
    size: int | None
    modified: float | None
    is_dynamic: bool


def list_row(entry: SkillEntry) -> CatalogRow:
    """The row of a listed skill."""
    return _row(entry, visible(_short(entry.description)))


def search_row(hit: Hit, entry: SkillEntry, query: str) -> CatalogRow:
    """The row of a search result, with the matching part of its text."""
    return _row(entry, _with_marks(_short(hit.snippet or entry.description), query))


def _row(entry: SkillEntry, summary: Markup) -> CatalogRow:
    folder, slash, name = entry.path.rpartition("/")
    is_whole = entry.is_complete
    return CatalogRow(
        path=entry.path,
        folder=folder + slash,
        name=name,
        summary=summary,
        files=len(entry.files) if is_whole else None,
        size=entry.size if is_whole and "size" not in entry.gaps else None,
        modified=entry.modified,
        is_dynamic=entry.is_dynamic,
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"


def _with_marks(text: str, query: str) -> Markup:
    """``text`` with a mark around every word that starts with a search term."""
    forms = {form for term in parse_query(query).terms for form in term}
    if not forms:
        return visible(text)
    any_form = "|".join(sorted(map(re.escape, forms), key=len, reverse=True))
    pieces: list[Markup] = []
    at = 0
    for match in re.finditer(rf"\b(?:{any_form})\w*", text, re.IGNORECASE):
        pieces += (visible(text[at : match.start()]), _FOUND.format(match.group()))
        at = match.end()
    return Markup("").join((*pieces, visible(text[at:])))


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
