"""Two bases for a catalog around a catalog: one passes everything on, the other nothing.

A concern such as URI mapping extends ``WrapperCatalog`` and states only what it changes. A gate, which decides
what a caller may see, extends ``GatedCatalog``: a member that it does not state reveals nothing, so that a member
that is added to the contract later cannot leak. A test compares both with the members of ``Catalog``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, Catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillwire.catalog.contract import (
        ChangeStream,
        DirectoryChild,
        Page,
        ReadyArchive,
        SkillFile,
        SkillTemplate,
    )
    from skillwire.skill import Diagnostic, SkillEntry


class WrapperCatalog(Catalog):
    """``inner``, unchanged."""

    def __init__(self, inner: Catalog) -> None:
        self.inner = inner

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the listing."""
        return await self.inner.list_skills(cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry."""
        return await self.inner.get_skill(uri)

    async def read_file(self, uri: str) -> SkillFile:
        """One file."""
        return await self.inner.read_file(uri)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory."""
        return await self.inner.read_directory(uri, cursor, limit)

    def changes(self) -> ChangeStream:
        """A stream of changes."""
        return self.inner.changes()

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``."""
        return await self.inner.suggest(beginning, limit)

    def templates(self) -> Sequence[SkillTemplate]:
        """Templates of skills."""
        return self.inner.templates()

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry, if it is known."""
        return await self.inner.peek_skill(uri)

    async def is_local(self, uri: str) -> bool:
        """Whether the skill's bytes are on this machine."""
        return await self.inner.is_local(uri)

    async def ready_archive(self, uri: str) -> ReadyArchive | None:
        """The archive that a skill came in."""
        return await self.inner.ready_archive(uri)

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """A test whether the catalog still gives the same answers."""
        return await self.inner.unchanged(uri)

    async def unlisted(self) -> Sequence[SkillEntry]:
        """Entries that are served but not listed."""
        return await self.inner.unlisted()

    async def problems(self) -> Sequence[Diagnostic]:
        """Problems of the source."""
        return await self.inner.problems()

    async def ignored(self) -> Sequence[str]:
        """Paths that are not served because of their names."""
        return await self.inner.ignored()

    async def follow(self) -> None:
        """Keep the source current until cancelled."""
        await self.inner.follow()


class GatedCatalog(Catalog):
    """A gate in front of ``inner``. It has to state the abstract members; every other member reveals nothing."""

    def __init__(self, inner: Catalog) -> None:
        self.inner = inner

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:  # noqa: ARG002
        """No paths."""
        return ()

    def templates(self) -> Sequence[SkillTemplate]:
        """No templates."""
        return ()

    async def peek_skill(self, uri: str) -> SkillEntry | None:  # noqa: ARG002
        """No entry."""
        return None

    async def is_local(self, uri: str) -> bool:  # noqa: ARG002
        """Unknown."""
        return False

    async def ready_archive(self, uri: str) -> ReadyArchive | None:  # noqa: ARG002
        """No archive."""
        return None

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:  # noqa: ARG002
        """Unknown."""
        return None

    async def unlisted(self) -> Sequence[SkillEntry]:
        """No entries."""
        return ()

    async def problems(self) -> Sequence[Diagnostic]:
        """No problems."""
        return ()

    async def ignored(self) -> Sequence[str]:
        """No paths."""
        return ()

    async def follow(self) -> None:
        """Keep the source current until cancelled. This reveals nothing."""
        await self.inner.follow()
