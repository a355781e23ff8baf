"""Serves the skills in a folder or a Python package, at any depth, and follows changes of the files.

Bytes stay on disk. A read returns them only if they match the current entry. If the file has changed, its skill is
scanned again first, so that entry and bytes agree (R2). The operating system reports changes (``follow``), and the
work is proportional to the change (S1).
"""

from __future__ import annotations

import gc
import os
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from skillwire.catalog.contract import SkillFile
from skillwire.catalog.memory import MemoryCatalog
from skillwire.catalog.safe_open import is_ignored, read_known, stamped
from skillwire.catalog.scan import Scan
from skillwire.catalog.settings import SETTINGS_FILE, FolderSettings, read_settings
from skillwire.catalog.snapshot import LoadedCatalog, ReadFolder, Snapshot
from skillwire.errors import LimitError, NotFoundError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, KIB, Limits
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, format_uri, segment_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from importlib.resources.abc import Traversable

    from skillwire.catalog.contract import Change
    from skillwire.catalog.settings import Describe
    from skillwire.skill.entry import SkillMeta

# Smaller files are read in the event loop: a thread would cost more than the read.
_INLINE_BYTES = 256 * KIB
_READ_ATTEMPTS = 3
_WHOLE = frozenset({"", ".", SKILL_MD, SETTINGS_FILE})  # paths at the root that affect every skill
_LARGE = 500  # skills; with more, setting up a watch takes a noticeable time


class DirectoryCatalog(LoadedCatalog):
    """Serves the skills in ``root``.

    Paths are *logical*: relative to ``root``, but with the name of ``root`` before them if it is itself a skill.
    ``base`` is that name, or empty, and ``on_disk`` removes it.

    ``describe(path, meta)`` may replace the settings of a skill. ``meta`` has those of ``skillwire.toml``.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        scheme: str = DEFAULT_SCHEME,
        limits: Limits = DEFAULT_LIMITS,
        describe: Describe | None = None,
    ) -> None:
        super().__init__(scheme, limits, describe)
        self._given = os.fspath(root)
        self.root = Path(os.path.realpath(root))
        self._settings = FolderSettings()

    def _meta_of(self, path: str) -> SkillMeta:
        meta = self._settings.about(path)
        return meta if self._describe is None else self._describe(path, meta)

    def _with_settings(self, snapshot: Snapshot) -> Snapshot:
        """``snapshot`` with the current problems of the settings, which may name skills that were removed."""
        root, file = snapshot.found("") or ReadFolder(), f"{self.base}/{SETTINGS_FILE}".lstrip("/")
        others = [problem for problem in root.problems if problem.file != file]
        found = self._settings.problems_in(lambda path: (at := snapshot.found(path)) is not None and at.is_skill)
        problems = (*others, *(replace(problem, file=file) for problem in found))
        if root.problems == problems:
            return snapshot
        return snapshot.updated((), {"": replace(root, problems=problems)})[0]

    def demand_root(self) -> None:
        """Raise ``NotFoundError`` if the folder does not exist."""
        if not self._given or not os.path.isdir(self.root):  # an empty path would mean the current folder
            is_file = bool(self._given) and os.path.isfile(self.root)
            raise NotFoundError(
                "folder-unknown",
                f"{self.root.name!r} is a file" if is_file else f"the folder {self.root.name!r} does not exist",
                "give the folder that contains it" if is_file else "give the path of a folder",
            )

    async def refresh(self, paths: Iterable[str] | None = None) -> Change:
        """Scan ``paths`` below the root (default: everything) again and publish the changes."""
        changed = None if paths is None else tuple(paths)
        change = await to_thread.run_sync(self._refresh, changed)
        self._feed.publish(change)
        return change

    async def read_file(self, uri: str) -> SkillFile:
        """The bytes of one file, which match the current entry."""
        for _ in range(_READ_ATTEMPTS):
            path, skill_path, file = self._find_file(await self._current(), uri)
            place = str(self.root), self.on_disk(path)
            if file.size <= _INLINE_BYTES:
                data = read_known(*place, file)
            else:
                data = await to_thread.run_sync(read_known, *place, file)
            if data is not None:
                return SkillFile(format_uri(path, self._scheme), data, file.modified)
            await self.refresh((self.on_disk(path), self.on_disk(f"{skill_path}/{SKILL_MD}")))
        raise UpstreamError(
            "file-changing", f"{uri!r:.300} changes faster than it can be read", "try again in a moment"
        )

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """Whether the snapshot, and for a file also its stamp on disk, is still the same."""
        is_same = await super().unchanged(uri)
        if is_same is None or uri is None:
            return is_same
        is_untouched = stamped(str(self.root), self.on_disk(self._path(uri)))
        return None if is_untouched is None else lambda: is_same() and is_untouched()

    async def follow(self) -> None:
        """Watch the folder until cancelled."""
        from skillwire.catalog.watch import watch_folder  # late: only a long-running server watches

        is_large = len((await self._current()).keys) > _LARGE
        async with aclosing(watch_folder(self.root, is_large=is_large)) as batches:
            async for paths in batches:
                await self.refresh(paths)

    async def ignored(self) -> list[str]:
        """Paths that are ignored because of their names: version control, caches, credentials."""
        return (await self._current()).ignored()

    def _reload(self, on_skill: Callable[[int], None] | None = None) -> Change:
        base = self.root.name if os.path.isfile(f"{self.root}/{SKILL_MD}") else ""
        moved = self._loaded and base != self.base
        self.base = base
        self._settings = read_settings(str(self.root), self._limits)
        scan = self._scan(Snapshot() if moved else self._snapshot, on_skill=on_skill)
        with _no_collections():
            found = scan.run(base)
        snapshot, change = self._snapshot.updated(self._snapshot.paths_below(""), found)
        self._snapshot = self._with_settings(snapshot)
        self._loaded = True
        return change

    def _refresh(self, paths: tuple[str, ...] | None) -> Change:
        with self._lock:
            if paths is None or not self._loaded or _WHOLE.intersection(paths):
                return self._reload()
            logical = frozenset(f"{self.base}/{path}" if self.base else path for path in paths)
            areas = _outermost(area for path in logical if (area := self._area(path)) is not None)
            removed = [path for area in areas for path in self._snapshot.paths_below(area)]
            scan = self._scan(self._snapshot, fresh=logical)
            for area in areas:
                scan.run(area)
            snapshot, change = self._snapshot.updated(removed, scan.found)
            self._snapshot = self._with_settings(snapshot)
            return change

    def _scan(
        self,
        previous: Snapshot,
        *,
        fresh: frozenset[str] = frozenset(),
        on_skill: Callable[[int], None] | None = None,
    ) -> Scan:
        return Scan(
            str(self.root), self.base, self._scheme, self._limits, self._meta_of, previous, fresh, on_skill
        )

    def _area(self, path: str) -> str | None:
        """The smallest part of the tree whose skills a change of ``path`` can affect."""
        skill = self._snapshot.topmost_skill(path)
        if skill is not None:
            return skill
        folder, _, name = path.rpartition("/")
        if name.lower() == SKILL_MD.lower():
            return folder
        on_disk = f"{self.root}/{self.on_disk(path)}"
        if os.path.isdir(on_disk) or not os.path.lexists(on_disk):
            return path
        return None  # a file outside every skill

    def on_disk(self, path: str) -> str:
        """The path below the root for the logical path ``path``."""
        return path[len(self.base) + 1 :] if self.base else path


@contextmanager
def _no_collections() -> Generator[None]:
    """Disable the garbage collector: reading a large tree creates many objects and no garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _outermost(paths: Iterable[str]) -> list[str]:
    chosen: list[str] = []
    for path in sorted(set(paths)):
        if not chosen or not (path == chosen[-1] or path.startswith(f"{chosen[-1]}/")):
            chosen.append(path)
    return chosen


def package_catalog(
    package: str, folder: str = "skills", *, scheme: str = DEFAULT_SCHEME, limits: Limits = DEFAULT_LIMITS
) -> DirectoryCatalog | MemoryCatalog:
    """The skills in ``folder`` of the package ``package``: ``package_catalog("acme_server", "skills")``.

    The wheel of a server can contain its skills this way. An installed package is served as a folder. A package in
    a zip file is read into memory, within the usual limits.
    """
    from importlib.resources import files  # late: few servers need it

    try:
        root = files(package)
    except ModuleNotFoundError as error:
        raise NotFoundError(
            "package-unknown", f"the package {package!r} is not installed", "install it, or fix its name"
        ) from error
    for segment in folder.split("/"):
        root = root / segment
    if not root.is_dir():
        raise NotFoundError(
            "package-folder-unknown",
            f"the package {package!r} has no folder {folder!r}",
            "add the folder to the build settings of the package, so that the wheel contains it",
        )
    if isinstance(root, Path):
        return DirectoryCatalog(root, scheme=scheme, limits=limits)
    return MemoryCatalog.from_tree(dict(_read_tree(root, limits)), scheme=scheme, limits=limits)


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
