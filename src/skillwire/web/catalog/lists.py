"""The lists of the catalog: listed skills by path, filtered, search results, and problems.

The list is read again after a change, in the background, so that a page costs the same for every size of catalog.
What the files of skills contain is examined in the background too: a list shows what is known.

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

from anyio import to_thread
from markupsafe import Markup

from skillwire.errors import FormatError
from skillwire.search.text import parse_query
from skillwire.skill.review import is_script, requested_tools, review_entry
from skillwire.skill.uri import parse_uri, skill_md_uri
from skillwire.skill.version_status import version_status
from skillwire.web.escape import visible
from skillwire.web.events import ChangeCounter
from skillwire.web.theme import PAGE_SIZE, ListPage, list_page, page_number

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from skillwire.catalog.contract import Catalog, Change
    from skillwire.catalog.examination import Examined, Examiner
    from skillwire.search.fts5 import Hit
    from skillwire.skill import Diagnostic, SkillEntry
    from skillwire.skill.review import Risk
    from skillwire.web.catalog.site import Site

MAX_VIEWS = 16
_LONGEST = 240  # characters of a description; the page of the skill shows all of it
_FOUND = Markup('<mark class="found">{}</mark>')
_MARKDOWN = re.compile(r"[#*`|~\[\]]+|\]\([^)\s]*\)|-{3,}|={3,}")
_MAX_PROBLEMS = 500
_MAX_IGNORED = 1000
_MAX_SELECTIONS = 8
_MAX_LICENSES = 50
_SEVERITIES = ("error", "warning", "note")
_DAYS = {"day": 1, "week": 7, "month": 30}
HAS = ("scripts", "tools", "domains", "hidden", "problems", "none")
SORTS: dict[str, Callable[[SkillEntry], Any]] = {
    "path": lambda entry: entry.path,
    "name": lambda entry: entry.folder_name,
    "changed": lambda entry: -(entry.modified or 0),
    "size": lambda entry: -entry.size,
    "tokens": lambda entry: -_skill_md_size(entry),
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

        def one_of(name: str, values: Container[str]) -> str:
            return query[name] if query.get(name, "") in values else ""

        return cls(
            query.get("under", "").strip("/"),
            one_of("has", HAS),
            query.get("license", "")[:_LONGEST],
            one_of("since", _DAYS),
            one_of("sort", SORTS),
            page_number(query),
        )

    @property
    def is_plain(self) -> bool:
        """Whether it selects all skills below a folder, by path."""
        return not (self.has or self.license or self.since or self.sort not in ("", "path"))

    @property
    def needs_files(self) -> bool:
        """Whether the files of skills decide, so that it selects only skills that were examined."""
        return self.has in ("domains", "hidden", "problems", "none")

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


def _skill_md_size(entry: SkillEntry) -> int:
    file = entry.resource(entry.uri)
    return 0 if file is None else file.size or 0


@dataclass(slots=True)
class _Listing:
    """The listed entries, by path."""

    entries: list[SkillEntry]
    uris: dict[str, str] = field(default_factory=dict[str, str])  # by path
    paths: list[str] = field(default_factory=list[str])  # sorted
    folders: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])  # counts
    licenses: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.entries.sort(key=lambda entry: entry.path)
        self.uris = {entry.path: entry.uri for entry in self.entries}
        self.paths = list(self.uris)
        self.licenses = sorted({_license(entry) for entry in self.entries} - {""})[:_MAX_LICENSES]
        for path in self.paths:
            parent = ""
            for name in path.split("/")[:-1]:
                inside = self.folders.setdefault(parent, {})
                inside[name] = inside.get(name, 0) + 1
                parent = f"{parent}/{name}" if parent else name

    def below(self, folder: str) -> tuple[int, int]:
        """The positions of the skills below ``folder``."""
        if not folder:
            return 0, len(self.paths)
        return bisect_left(self.paths, f"{folder}/"), bisect_left(self.paths, f"{folder}0")  # '/' < '0'


class SkillPaths(ChangeCounter):
    """The listed skills of ``catalog``, and a number that grows with each change.

    ``on_change`` is called at once and with each change, so that the list can be read before the next request.
    """

    def __init__(self, catalog: Catalog, on_change: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.catalog = catalog
        self._on_change = on_change
        self._listing: _Listing | None = None
        self._selections: dict[tuple[ListFilter, int], list[SkillEntry]] = {}
        self._generation = 0
        self._watch = catalog.changes()
        self._watch.forward(self._forget)
        on_change()

    def close(self) -> None:
        """Stop listening for changes."""
        self._watch.close()

    def tell(self) -> None:
        """Tell open pages that they may be outdated."""
        self._selections.clear()
        super().tell()

    def _forget(self, change: Change) -> None:  # noqa: ARG002 - every change outdates the list
        self._listing = None
        self._generation += 1
        self.tell()
        self._on_change()

    async def listing(self) -> _Listing:
        """The current list."""
        while self._listing is None:
            generation = self._generation
            listing = _Listing([entry async for entry in self.catalog.entries()])
            if generation == self._generation:
                self._listing = listing
        return self._listing

    async def page(self, wanted: ListFilter, examiner: Examiner) -> ListPage[str]:
        """One page of the URIs of the skills that ``wanted`` selects."""
        listing = await self.listing()
        if not wanted.is_plain:
            found = await self._selected(listing, wanted._replace(page=1), examiner)
            return list_page([entry.uri for entry in found], wanted.page)
        start, stop = listing.below(wanted.under)
        begin = start + (wanted.page - 1) * PAGE_SIZE
        paths = listing.paths[begin : min(begin + PAGE_SIZE, stop)]
        return ListPage([listing.uris[path] for path in paths], wanted.page, stop - start)

    async def _selected(self, listing: _Listing, wanted: ListFilter, examiner: Examiner) -> Sequence[SkillEntry]:
        """The entries that ``wanted`` selects, sorted. They are cached, but not longer than a minute."""
        now, number = time.time(), self.number
        key = wanted, int(now // 60)
        known = self._selections.get(key)
        if known is not None:
            return known

        def select() -> list[SkillEntry]:
            start, stop = listing.below(wanted.under)
            entries = listing.entries[start:stop]
            found = [entry for entry in entries if wanted.fits(entry, examiner.known(entry), now)]
            return sorted(found, key=SORTS[wanted.sort or "path"])

        found = await to_thread.run_sync(select)  # every skill is looked at: other requests do not wait for it
        if number == self.number:
            while len(self._selections) >= _MAX_SELECTIONS:
                self._selections.pop(next(iter(self._selections)))
            self._selections[key] = found
        return found

    async def similar(self, query: str) -> list[str]:
        """Words of names that are similar to the words of a query without results."""
        words = {word for path in (await self.listing()).paths for word in re.split(r"[/_-]", path)}
        found = (get_close_matches(word, words, 2, 0.7) for word in query.lower().split()[:4])
        return list(dict.fromkeys(word for close in found for word in close))


class CatalogRow(NamedTuple):
    """One skill in a list. ``snippet`` is the matching part of its text, if it was searched for."""

    entry: SkillEntry
    summary: Markup
    snippet: Markup
    risk: Risk
    problems: int
    is_deprecated: bool


def list_row(entry: SkillEntry, examined: Examined | None, hit: Hit | None = None, query: str = "") -> CatalogRow:
    """The row of a skill, with the matching part of its text if it is a search result."""
    snippet = " ".join(_MARKDOWN.sub(" ", hit.snippet).split()) if hit else ""
    is_repeated = not snippet or snippet.strip("… ")[:60] in " ".join(entry.description.split())
    return CatalogRow(
        entry,
        _with_marks(_short(entry.description), query) if query else visible(_short(entry.description)),
        Markup("") if is_repeated else _with_marks(_short(snippet), query),
        review_entry(entry).risk if examined is None else examined.risk,
        0 if examined is None else len(examined.others),
        bool(version_status(entry).deprecated),
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


async def visible_problems(paths: SkillPaths, site: Site, examiner: Examiner) -> dict[str, Any]:
    """What ``check`` finds: problems that exclude skills, those of examined skills, and ignored paths."""
    catalog, found = paths.catalog, await paths.catalog.problems()
    unlisted = frozenset(problem.skill for problem in found if problem.skill and not problem.listed)
    disclosure = _Disclosure(paths, site, unlisted)
    problems = [problem for problem in found if problem.listed and await disclosure.may_mention_problem(problem)]
    noted = [problem for problem in problems if not problem.refuses]
    listed = await paths.listing()
    for uri in examiner.problematic():
        path = parse_uri(uri).parent.path
        entry = await catalog.peek_skill(uri) if path in listed.uris else None
        examined = examiner.known(entry) if entry is not None else None
        noted += () if examined is None else examined.problems
    noted = sorted(
        dict.fromkeys(noted), key=lambda each: (_SEVERITIES.index(each.severity), each.file, each.line or 0)
    )
    refused = [problem for problem in problems if problem.refuses]
    ignored = [path for path in await catalog.ignored() if await disclosure.may_mention(path)]
    return {
        "refused": refused[:_MAX_PROBLEMS],
        "noted": noted[:_MAX_PROBLEMS],
        "ignored": ignored[:_MAX_IGNORED],
        "refused_count": len(refused),
        "noted_count": len(noted),
        "ignored_count": len(ignored),
        "unexamined": examiner.remaining(catalog),
    }


class _Disclosure:
    """Decides which paths a page may mention. Results are cached for one request."""

    def __init__(self, paths: SkillPaths, site: Site, unlisted: frozenset[str]) -> None:
        self._unlisted = unlisted  # skills that are not served, and would not be listed
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
            is_skill = folder in (await self._paths.listing()).uris
            self._known[folder] = is_skill or (
                is_listed and await self._is_inside_listed(folder.rpartition("/")[0])
            )
        return self._known[folder]

    async def _is_listed(self, path: str) -> bool:
        """Whether the skill at ``path``, if there is one, is listed."""
        if path in (await self._paths.listing()).uris:  # faster than a request to the catalog
            return True
        try:
            entry = await self._paths.catalog.peek_skill(skill_md_uri(path, self._site.skills.scheme))
        except FormatError:  # an ignored path may not be a valid path of a skill
            return True
        return entry is None or entry.listed

    def _is_unlisted(self, path: str) -> bool:
        return path in self._unlisted or any(fnmatchcase(path, glob) for glob in self._site.unlisted)
