"""Skills that ship inside a Python package, so that a server's wheel brings them along.

An installed package is a folder and is served as one, its bytes left on disk. A package inside a zip file is
read into memory, within the same bounds as everything else.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, Catalog, DirectoryChild, Page, SkillFile
from skillwire.catalog.directory import DirectoryCatalog
from skillwire.catalog.ignore import is_ignored
from skillwire.catalog.memory import MemoryCatalog, find_skills
from skillwire.errors import LimitError, NotFoundError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.uri import DEFAULT_SCHEME, segment_problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.resources.abc import Traversable

    from skillwire.catalog.changes import ChangeStream
    from skillwire.skill import Diagnostic, SkillEntry


class PackageCatalog(Catalog):
    """The skills in ``folder`` of the package ``package``: ``PackageCatalog("acme_server", "skills")``."""

    def __init__(
        self,
        package: str,
        folder: str = "skills",
        *,
        scheme: str = DEFAULT_SCHEME,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        root = _resource(package, folder)
        if isinstance(root, Path):
            self._inner: Catalog = DirectoryCatalog(root, scheme=scheme, limits=limits)
        else:
            self._inner = _ZippedCatalog(root, scheme, limits)

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the listing."""
        return await self._inner.list_skills(cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry of one skill."""
        return await self._inner.get_skill(uri)

    async def read_file(self, uri: str) -> SkillFile:
        """The bytes of one file."""
        return await self._inner.read_file(uri)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory."""
        return await self._inner.read_directory(uri, cursor, limit)

    async def is_at_hand(self, uri: str) -> bool:
        """They are on this machine."""
        return await self._inner.is_at_hand(uri)

    async def unlisted(self) -> Sequence[SkillEntry]:
        """Entries of skills that are not listed."""
        return await self._inner.unlisted()

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``."""
        return await self._inner.suggest(beginning, limit)

    async def problems(self) -> Sequence[Diagnostic]:
        """What is wrong with the packaged skills."""
        return await self._inner.problems()

    async def ignored(self) -> Sequence[str]:
        """What was left out because of its name."""
        return await self._inner.ignored()

    def changes(self) -> ChangeStream:
        """Never speaks for an installed package; it is replaced with a restart."""
        return self._inner.changes()


class _ZippedCatalog(MemoryCatalog):
    """A tree that is not on disk, read once."""

    def __init__(self, root: Traversable, scheme: str, limits: Limits) -> None:
        super().__init__(scheme=scheme, limits=limits)
        tree = dict(_read_tree(root, limits))
        found = find_skills(tree, scheme=scheme, limits=limits)
        self._adopt(tree, {}, *self._snapshot.updated((), found))


def _resource(package: str, folder: str) -> Traversable:
    try:
        root = files(package)
    except ModuleNotFoundError as error:
        raise NotFoundError(
            "package-unknown", f"there is no package {package!r}", "install it, or correct its name"
        ) from error
    for segment in folder.split("/"):
        root = root / segment
    if not root.is_dir():
        raise NotFoundError(
            "package-folder-unknown",
            f"the package {package!r} has no folder {folder!r}",
            "list the folder in the package's build settings, so that its wheel contains it",
        )
    return root


def _read_tree(root: Traversable, limits: Limits) -> Iterator[tuple[str, bytes]]:
    pending: list[tuple[str, Traversable]] = [("", root)]
    total = 0
    while pending:
        path, folder = pending.pop()
        for child in folder.iterdir():
            name, is_folder = child.name, child.is_dir()
            inside = f"{path}/{name}" if path else name
            if is_ignored(name, is_folder=is_folder) or segment_problem(name):
                continue
            if is_folder:
                pending.append((inside, child))
                continue
            with child.open("rb") as stream:
                data = stream.read(limits.max_skill_bytes - total + 1)
            total += len(data)
            if total > limits.max_skill_bytes:
                raise LimitError(
                    "package-too-large",
                    f"the package's skills are larger than {limits.max_skill_bytes} bytes",
                    "install the package unzipped",
                )
            yield inside, data
