"""The part of a catalog that one caller may see.

A caller sees the skills under certain path prefixes. For every method, other skills look exactly like skills that
do not exist. The visible paths are cached until skills are added or removed, so a page costs the same for every
caller.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Catalog,
    Change,
    ChangeFeed,
    ChangeStream,
    DirectoryChild,
    Page,
    ReadyArchive,
    SkillFile,
    SkillTemplate,
    no_directory,
    no_file,
    no_skill,
)
from skillwire.catalog.cursor import beginning_with, page_of
from skillwire.errors import FormatError, NotFoundError
from skillwire.skill.uri import parse_path, parse_uri, root_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from skillwire.skill import Diagnostic, SkillEntry, SkillUri

EVERYTHING = "*"  # the prefix of all skills


def is_visible(visible: Container[str] | Callable[[str], bool], path: str) -> bool:
    """Whether ``path``, or a path above it, is one of the prefixes, or one for which the function is true."""
    test = visible if callable(visible) else visible.__contains__
    while path:
        if test(path):
            return True
        path = path.rpartition("/")[0]
    return False


class VisibleCatalog(Catalog):
    """The skills of ``inner`` that are ``visible``: prefixes, or a function that is asked for each path.

    With prefixes the listing is kept until it changes. With a function it is made for each request.
    """

    def __init__(self, inner: Catalog, visible: Iterable[str] | Callable[[str], bool]) -> None:
        self.inner = inner
        self._visible_paths: Container[str] | Callable[[str], bool]
        if callable(visible):
            self._visible_paths = visible
        else:
            self._visible_paths = frozenset(parse_path(prefix) for prefix in visible)
        self._uris: dict[str, str] = {}  # by path, sorted
        self._paths: list[str] | None = None  # the keys of _uris; None after skills were added or removed
        self._generation = 0
        self._watch: ChangeStream | None = None  # while the listing is kept
        if not callable(visible):
            self._watch = inner.changes()
            self._watch.forward(self._forget)

    def close(self) -> None:
        """Stop keeping the listing. The view still answers."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def may_see(self, path: str) -> bool:
        """Whether ``path``, or a path above it, is visible."""
        return is_visible(self._visible_paths, path)

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the skills that the caller may see."""
        paths = await self._listing()
        page = page_of("visible", paths, self._uris.__getitem__, cursor, limit)
        entries: list[SkillEntry] = []
        for uri in page.items:
            with suppress(NotFoundError):  # removed since the listing was cached
                # peek first: a listing must not generate skills or send a request for each of them
                entries.append(await self.inner.peek_skill(uri) or await self.inner.get_skill(uri))
        return Page(entries, page.next_cursor)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry, if the caller may see it."""
        if not self.may_see(parse_uri(uri).parent.path):
            raise no_skill(uri)
        try:
            return await self.inner.get_skill(uri)
        except NotFoundError as error:  # its message may name something that the caller may not see
            raise no_skill(uri) from error

    async def read_file(self, uri: str) -> SkillFile:
        """One file, if it belongs to a visible skill."""
        if not await self._in_visible_skill(parse_uri(uri).parent):
            raise no_file(uri)
        try:
            return await self.inner.read_file(uri)
        except NotFoundError as error:
            raise no_file(uri) from error

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory, if it belongs to a visible skill."""
        if not await self._in_visible_skill(parse_uri(uri)):
            raise no_directory(uri)
        try:
            return await self.inner.read_directory(uri, cursor, limit)
        except NotFoundError as error:
            raise no_directory(uri) from error

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> list[str]:
        """Paths of visible skills that begin with ``beginning``."""
        return beginning_with(await self._listing(), beginning, limit)

    def templates(self) -> list[SkillTemplate]:
        """Templates all of whose skills the caller may see."""
        return [template for template in self.inner.templates() if self.may_see(template.stem)]

    async def problems(self) -> Sequence[Diagnostic]:
        """Problems of visible skills that name no hidden skill."""
        return [problem for problem in await self.inner.problems() if self._is_visible(problem)]

    def changes(self) -> ChangeStream:
        """Changes of visible skills."""
        return _VisibleStream(self.inner.changes(), self._visible)

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """The known entry, if the caller may see it."""
        return await self.inner.peek_skill(uri) if self.may_see(parse_uri(uri).parent.path) else None

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """The test of the inner catalog; ``None`` for a skill that the caller may not see."""
        try:
            is_hidden = uri is not None and not await self._in_visible_skill(parse_uri(uri).parent)
        except FormatError:
            return None
        return None if is_hidden else await self.inner.unchanged(uri)

    async def ready_archive(self, uri: str) -> ReadyArchive | None:
        """The original archive of the skill, if the caller may see it."""
        return await self.inner.ready_archive(uri) if self.may_see(parse_uri(uri).parent.path) else None

    async def follow(self) -> None:
        """Watch the source until cancelled."""
        await self.inner.follow()

    async def _listing(self) -> list[str]:
        while self._paths is None or self._watch is None:
            generation = self._generation
            seen = [(entry.path, entry.uri) async for entry in self.inner.entries() if self.may_see(entry.path)]
            if generation == self._generation:  # nothing was added or removed meanwhile
                self._uris = dict(sorted(seen))
                self._paths = list(self._uris)
                if self._watch is None:
                    break
        return self._paths

    async def _in_visible_skill(self, place: SkillUri) -> bool:
        """Whether a skill at or around ``place`` is visible. Skills outside the visible prefixes do not count."""
        return await self.skill_around(place) is not None

    def _is_visible(self, problem: Diagnostic) -> bool:
        if not problem.skill or not self.may_see(problem.skill):
            return False
        return problem.other is None or self.may_see(problem.other)

    def _forget(self, change: Change) -> None:
        if change.added or change.removed:
            self._generation += 1
            self._paths = None

    def _visible(self, change: Change) -> Change:
        return change.translate(lambda uris: (uri for uri in uris if self.may_see(root_of(uri).path)))


class _VisibleStream(ChangeStream):
    """The visible part of the changes of another stream."""

    def __init__(self, source: ChangeStream, visible: Callable[[Change], Change]) -> None:
        super().__init__(ChangeFeed())
        self._source = source
        self._visible = visible

    def forward(self, sink: Callable[[Change], None]) -> None:
        """Call ``sink`` for every further change, visible or not."""
        self._source.forward(sink)

    async def pending(self) -> Change:
        """Take the visible part of the pending change."""
        return self._visible(await self._source.pending())

    def close(self) -> None:
        """Unsubscribe."""
        self._source.close()
        super().close()

    async def __anext__(self) -> Change:
        while not (change := self._visible(await anext(self._source))):
            pass
        return change
