"""The lists of the catalog: listed skills by path, filtered, search results, and problems.

The paths are cached until skills are added or removed, and the entries until anything changes, so that a page
costs the same for every size of catalog. What the files of a skill contain is examined within a time limit; a list
shows what is known, and more with the next request.

A problem must not reveal an unlisted skill. A served skill has a ``listed`` flag. For a skill that is not served,
its problems have the flag, or its path matches one of the globs for unlisted skills.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from markupsafe import Markup

from skillwire.errors import FormatError
from skillwire.search.text import parse_query
from skillwire.skill.model import estimate_tokens
from skillwire.skill.review import is_script, requested_tools, review_entry
from skillwire.skill.uri import skill_md_uri
from skillwire.web.escape import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillwire.catalog.contract import Catalog, Change
    from skillwire.catalog.examination import Examined, Examiner
    from skillwire.search.fts5 import Hit
    from skillwire.skill import Diagnostic, SkillEntry
    from skillwire.skill.review import Risk
    from skillwire.web.catalog.site import Site

MAX_VIEWS = 16
PAGE_SIZE = 100
_LONGEST = 240  # characters of a description; the page of the skill shows all of it
_FOUND = Markup('<mark class="found">{}</mark>')
_MARKDOWN = re.compile(r"[#*`|~\[\]]+|\]\([^)\s]*\)|-{3,}|={3,}")
_MAX_PROBLEMS = 500
_MAX_IGNORED = 1000
_MAX_SELECTIONS = 8
_EXAMINING_SECONDS = 2.0
_SEVERITIES = ("error", "warning", "note")
_DAYS = {"day": 1, "week": 7, "month": 30}
HAS = ("scripts", "tools", "domains", "hidden", "problems", "none")
SORTS: dict[str, Callable[[SkillEntry], Any]] = {
    "path": lambda entry: entry.path,
    "name": lambda entry: entry.path.rpartition("/")[2],
    "changed": lambda entry: -(entry.modified or 0),
    "size": lambda entry: -entry.size,
    "tokens": lambda entry: -(estimate_tokens(entry).loaded or 0),
}


class ListFilter(NamedTuple):
    """Which of the listed skills, in which order, and which page of them."""

    under: str = ""
    has: str = ""
    license: str = ""
    since: str = ""
    sort: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> ListFilter:
        """Parse the query of a request. Invalid values select everything."""
        number = query.get("page", "")[:6]
        return cls(
            query.get("under", "").strip("/"),
            query.get("has", "") if query.get("has", "") in HAS else "",
            query.get("license", "")[:_LONGEST],
            query.get("since", "") if query.get("since", "") in _DAYS else "",
            query.get("sort", "") if query.get("sort", "") in SORTS else "",
            max(int(number), 1) if number.isascii() and number.isdigit() else 1,
        )

    @property
    def is_plain(self) -> bool:
        """Whether it selects all skills below a folder, by path."""
        return not (self.has or self.license or self.since or self.sort not in ("", "path"))

    @property
    def query(self) -> dict[str, str]:
        """The query of its address, without the page."""
        return {name: str(value) for name, value in self._replace(page=0)._asdict().items() if value}

    def fits(self, entry: SkillEntry, examined: Examined | None, now: float) -> bool:
        """Whether a skill matches, as far as it was examined."""
        if self.license and _license(entry) != self.license:
            return False
        if self.since and now - (entry.modified or 0) > _DAYS[self.since] * 86_400:
            return False
        risk = None if examined is None else examined.risk
        match self.has:
            case "scripts":
                return bool(risk.scripts) if risk else any(is_script(file.uri) for file in entry.files)
            case "tools":
                return bool(requested_tools(entry))
            case "domains" | "hidden":
                return risk is not None and bool(getattr(risk, self.has))
            case "problems":
                return examined is not None and bool(examined.others)
            case "none":
                return risk is not None and risk.is_low
            case _:
                return True


def _license(entry: SkillEntry) -> str:
    return str(entry.frontmatter.get("license", "") or "")[:_LONGEST]


class PathPage(NamedTuple):
    """One page of the listed skills, and its position."""

    uris: Sequence[str]
    page: int
    total: int

    @property
    def pages(self) -> int:
        """The number of pages."""
        return max(1, -(-self.total // PAGE_SIZE))

    @property
    def first(self) -> int:
        """The number of the first skill of the page."""
        return (self.page - 1) * PAGE_SIZE + 1

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
    """The listed skills of ``catalog``, and a number that grows with each change."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._listing: _Listing | None = None
        self._entries: list[SkillEntry] | None = None
        self._selections: dict[ListFilter, list[SkillEntry]] = {}
        self._generation = 0
        self.number = 0
        self.changed = anyio.Event()
        self._watch = catalog.changes()
        self._watch.forward(self._forget)

    def close(self) -> None:
        """Stop listening for changes."""
        self._watch.close()

    async def page(self, wanted: ListFilter, examiner: Examiner) -> PathPage:
        """One page of the skills that ``wanted`` selects."""
        if not wanted.is_plain:
            found = await self._selected(wanted._replace(page=1), examiner)
            begin = (wanted.page - 1) * PAGE_SIZE
            return PathPage([each.uri for each in found[begin : begin + PAGE_SIZE]], wanted.page, len(found))
        listing = await self._current()
        start, stop = 0, len(listing.paths)
        if wanted.under:
            start = bisect_left(listing.paths, f"{wanted.under}/")
            stop = bisect_left(listing.paths, f"{wanted.under}0")  # '/' < '0'
        begin = start + (wanted.page - 1) * PAGE_SIZE
        paths = listing.paths[begin : min(begin + PAGE_SIZE, stop)]
        return PathPage([listing.uris[path] for path in paths], wanted.page, stop - start)

    async def _selected(self, wanted: ListFilter, examiner: Examiner) -> list[SkillEntry]:
        """The entries that ``wanted`` selects, sorted. They are cached if only the entries decide."""
        known = self._selections.get(wanted)
        if known is not None:
            return known
        under, now, number = f"{wanted.under}/" if wanted.under else "", time.time(), self.number
        if wanted.has in ("domains", "hidden", "problems", "none"):
            await examiner.examine(self._catalog, await self.entries(), _EXAMINING_SECONDS)
        found = [
            entry
            for entry in await self.entries()
            if entry.path.startswith(under) and wanted.fits(entry, examiner.known(entry), now)
        ]
        found.sort(key=SORTS[wanted.sort or "path"])
        if wanted.has in ("", "tools") and not wanted.since and number == self.number:
            while len(self._selections) >= _MAX_SELECTIONS:
                self._selections.pop(next(iter(self._selections)))
            self._selections[wanted] = found
        return found

    async def entries(self) -> list[SkillEntry]:
        """All listed entries, by path."""
        while self._entries is None:
            number = self.number
            entries = sorted([entry async for entry in self._catalog.entries()], key=lambda entry: entry.path)
            if number == self.number:
                self._entries = entries
        return self._entries

    async def licenses(self) -> list[str]:
        """The licences of the listed skills."""
        return sorted({_license(entry) for entry in await self.entries()} - {""})[:50]

    async def similar(self, query: str) -> list[str]:
        """Words of names that are similar to the words of a query without results."""
        words = {word for path in (await self._current()).paths for word in re.split(r"[/_-]", path)}
        found = (get_close_matches(word, words, 2, 0.7) for word in query.lower().split()[:4])
        return list(dict.fromkeys(word for close in found for word in close))

    async def folders(self, under: str) -> dict[str, int]:
        """The folders directly in ``under``, with the number of skills below each."""
        return (await self._current()).folders.get(under, {})

    async def has(self, path: str) -> bool:
        """Whether a skill at ``path`` is listed."""
        return path in (await self._current()).uris

    async def count(self) -> int:
        """The number of listed skills."""
        return len((await self._current()).paths)

    async def _current(self) -> _Listing:
        while self._listing is None:
            generation = self._generation
            listing = _listing_of([(entry.path, entry.uri) for entry in await self.entries()])
            if generation == self._generation:  # no skill was added or removed meanwhile
                self._listing = listing
        return self._listing

    def _forget(self, change: Change) -> None:
        if change.added or change.removed:
            self._generation += 1
            self._listing = None
        self._entries = None
        self._selections.clear()
        self.number += 1
        self.changed.set()
        self.changed = anyio.Event()


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
    """One skill in a list. ``snippet`` is the matching part of its text, if it was searched for."""

    path: str
    folder: str
    name: str
    summary: Markup
    snippet: Markup
    files: int | None
    size: int | None
    modified: float | None
    is_dynamic: bool
    risk: Risk
    problems: int


def list_row(entry: SkillEntry, examined: Examined | None, hit: Hit | None = None, query: str = "") -> CatalogRow:
    """The row of a skill, with the matching part of its text if it is a search result."""
    folder, slash, name = entry.path.rpartition("/")
    is_whole = entry.is_complete
    snippet = " ".join(_MARKDOWN.sub(" ", hit.snippet).split()) if hit else ""
    is_repeated = not snippet or snippet.strip("… ")[:60] in " ".join(entry.description.split())
    return CatalogRow(
        path=entry.path,
        folder=folder + slash,
        name=name,
        summary=_with_marks(_short(entry.description), query) if query else visible(_short(entry.description)),
        snippet=Markup("") if is_repeated else _with_marks(_short(snippet), query),
        files=len(entry.files) if is_whole else None,
        size=entry.size if is_whole and "size" not in entry.gaps else None,
        modified=entry.modified,
        is_dynamic=entry.is_dynamic,
        risk=review_entry(entry).risk if examined is None else examined.risk,
        problems=0 if examined is None else len(examined.others),
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


async def visible_problems(catalog: Catalog, paths: Paths, site: Site, examiner: Examiner) -> dict[str, Any]:
    """Everything that ``check`` finds: problems that exclude skills, other problems, and ignored paths."""
    found = await catalog.problems()
    unlisted = frozenset(problem.skill for problem in found if problem.skill and not problem.listed)
    disclosure = _Disclosure(catalog, paths, site, unlisted)
    problems = [problem for problem in found if problem.listed and await disclosure.may_mention_problem(problem)]
    refused = [problem for problem in problems if problem.refuses]
    entries = [entry for entry in await paths.entries() if entry.local and not entry.is_dynamic]
    examined = await examiner.examine(catalog, entries, _EXAMINING_SECONDS)
    texts = [problem for each in examined.values() for problem in each.problems]
    noted = list(dict.fromkeys([*(problem for problem in problems if not problem.refuses), *texts]))
    noted.sort(key=lambda each: (_SEVERITIES.index(each.severity), each.file, each.line or 0))
    ignored = [path for path in await catalog.ignored() if await disclosure.may_mention(path)]
    return {
        "refused": refused[:_MAX_PROBLEMS],
        "noted": noted[:_MAX_PROBLEMS],
        "ignored": ignored[:_MAX_IGNORED],
        "refused_count": len(refused),
        "noted_count": len(noted),
        "ignored_count": len(ignored),
        "unexamined": len(entries) - len(examined),
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
