"""The seam of the house: everything that holds skills is a ``Catalog``.

A folder, an archive, a package, a function, another server, several of these together: each lists entries,
gets one, reads a file, reads a directory, and says when it changed. The server serves any catalog; the client
gives you one; a concern such as "what this caller may see" is a catalog around a catalog.

What every implementation guarantees (``tests/contracts`` holds them to it):

- ``list_skills`` pages by key: a change between two pages neither skips nor repeats an entry that stayed (L3).
- ``get_skill`` answers for every skill served, listed or not; whatever else is ``NotFoundError`` (G1).
- ``read_file`` returns the bytes that the current entry describes, or none (R2).
- ``read_directory`` gives direct children only; an empty directory is an empty page (D1).
- One call sees one consistent state, whatever changes meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from skillwire.errors import LimitError, NotFoundError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.uri import skill_md_uri

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from skillwire.catalog.changes import ChangeStream
    from skillwire.skill import Diagnostic, Json, SkillEntry
    from skillwire.skill.archive import ArchiveFormat

DEFAULT_PAGE_SIZE = 100

T = TypeVar("T")


class Page(NamedTuple, Generic[T]):
    """Some items, and the cursor for the next ones; ``None`` after the last."""

    items: Sequence[T]
    next_cursor: str | None = None


class SkillFile(NamedTuple):
    """One file's bytes, as the current entry of its skill describes them; ``meta`` is said about them (R4)."""

    uri: str
    data: bytes
    modified: float | None = None
    meta: Mapping[str, Json] | None = None


class DirectoryChild(NamedTuple):
    """A file or folder directly inside a directory of a skill."""

    uri: str
    name: str
    is_directory: bool
    size: int | None = None
    modified: float | None = None
    executable: bool = False


class ReadyArchive(NamedTuple):
    """The archive that a skill came in, byte for byte."""

    form: ArchiveFormat
    data: bytes
    digest: str


class SkillTemplate(NamedTuple):
    """Skills that are made from the values in their path, such as ``docs/{product}`` (I1)."""

    path: str
    description: str
    complete: Callable[[str, str], Awaitable[Sequence[str]]]  # values of a variable, by their beginning (T1)

    @property
    def stem(self) -> str:
        """The path up to the first variable. Every skill of the template is below it; empty if that is all."""
        return self.path.partition("{")[0].rstrip("/")

    @property
    def name(self) -> str:
        """What it is called in lists: the literal segments, or the variables if there are none."""
        segments = self.path.split("/")
        literal = [segment for segment in segments if not segment.startswith("{")]
        return "-".join(literal or segments).replace("{", "").replace("}", "")

    def uri(self, scheme: str) -> str:
        """The URI template of its ``SKILL.md``: variables stay as they are, the rest is encoded (U7)."""
        return skill_md_uri(self.path, scheme).replace("%7B", "{").replace("%7D", "}")


class Catalog(ABC):
    """Something that holds skills."""

    @abstractmethod
    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the listing, in the order of URIs. A bad cursor is a ``ProtocolError``."""

    @abstractmethod
    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry of the skill whose ``SKILL.md`` is at ``uri``."""

    @abstractmethod
    async def read_file(self, uri: str) -> SkillFile:
        """The bytes of one file of a skill."""

    @abstractmethod
    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of what is directly inside a directory of a skill."""

    @abstractmethod
    def changes(self) -> ChangeStream:
        """A stream of what changes from now on. Close it, or use it in a ``with`` block."""

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``, sorted: for people who type (T1).

        Beside them those that a template's own lists of values make. This one goes through every entry: a catalog
        that can be large keeps its paths sorted.
        """
        paths = [entry.path async for entry in self.entries() if entry.path.startswith(beginning)]
        return sorted(paths)[:limit]

    def templates(self) -> Sequence[SkillTemplate]:
        """Skills that are served for values that somebody chooses, and are not listed one by one (L2, I1)."""
        return ()

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """The entry as it is known, if there is one; nothing is made anew for it."""
        try:
            return await self.get_skill(uri)
        except NotFoundError:
            return None

    async def is_local(self, uri: str) -> bool:  # noqa: ARG002 - local catalogs override it
        """Whether all bytes of the skill at ``uri`` are here: packing it asks nobody else for them (V5)."""
        return False

    async def ready_archive(self, uri: str) -> ReadyArchive | None:  # noqa: ARG002 - most skills come in none
        """The archive that the skill at ``uri`` came in, if it came in one (I2)."""
        return None

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:  # noqa: ARG002
        """A test for later, almost free: whether what is answered after this call would be answered again.

        About the skill or file at ``uri``; about everything without one. ``None`` where nobody can tell.
        """
        return None

    async def unlisted(self) -> Sequence[SkillEntry]:
        """Entries of skills that are served but not listed, as far as they are known.

        For the server that serves the catalog, never for a caller: a view of one caller has none.
        """
        return ()

    async def problems(self) -> Sequence[Diagnostic]:
        """What is wrong with the source, including what was left out because of it."""
        return ()

    async def ignored(self) -> Sequence[str]:
        """Paths that were left out because of their names: version control, litter, credentials."""
        return ()

    async def follow(self) -> None:
        """Watch the source and publish what changes, until cancelled. Returns if there is nothing to watch."""
        return

    def entries(self) -> AsyncIterator[SkillEntry]:
        """Every listed entry, page by page."""
        return _all_pages(self.list_skills)

    def children(self, uri: str) -> AsyncIterator[DirectoryChild]:
        """Everything directly inside a directory, page by page."""
        return _all_pages(lambda cursor: self.read_directory(uri, cursor))

    async def walk(self, uri: str) -> AsyncIterator[DirectoryChild]:
        """Every file below a directory, folders first-come, parents before children.

        A server may have folders in folders without end: there are as many as a skill may have files (B3).
        """
        pending, folders = [uri], 0
        while pending:
            folders += 1
            if folders > DEFAULT_LIMITS.max_resources:
                raise LimitError(
                    "listing-too-long",
                    f"{uri!r:.300} has more than {DEFAULT_LIMITS.max_resources} folders below it",
                    "the server has to be corrected",
                    rule="B3",
                )
            async for child in self.children(pending.pop()):
                if child.is_directory:
                    pending.append(child.uri)
                else:
                    yield child


async def _all_pages(ask: Callable[[str | None], Awaitable[Page[T]]]) -> AsyncIterator[T]:
    cursor: str | None = None
    while True:
        page = await ask(cursor)
        for item in page.items:
            yield item
        if page.next_cursor is None:
            return
        cursor = page.next_cursor
