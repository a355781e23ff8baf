"""Serves a skill in a ``.tar.gz`` or ``.zip`` file, as if its files were in a folder (I2).

The archive is untrusted and unpacked in memory (I3). The skill is served completely or not at all: an error
becomes a problem that names the file, and affects only this source. The skill's path is the name in its
frontmatter. The archive itself is also served, byte for byte.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from skillwire.catalog.contract import Change, ReadyArchive
from skillwire.catalog.directory import DirectoryCatalog
from skillwire.catalog.memory import find_skills, name_in
from skillwire.catalog.safe_open import read_below
from skillwire.catalog.snapshot import LoadedCatalog, ReadFolder
from skillwire.errors import FormatError, LimitError, NotFoundError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.archive import archive_format, archive_root, unpack_tree
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.entry import DEFAULT_META, digest_of
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, skill_md_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillwire.catalog.settings import Describe
    from skillwire.skill.archive import ArchiveFormat
    from skillwire.skill.entry import SkillMeta


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is named like an archive, and is not a folder."""
    name = os.fspath(path)
    return archive_root(name) != name and not os.path.isdir(name)


class ArchiveCatalog(LoadedCatalog):
    """Serves the skill in the archive file ``path``.

    ``describe(path, meta)`` may replace the settings of a skill. ``meta`` has the defaults.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        scheme: str = DEFAULT_SCHEME,
        limits: Limits = DEFAULT_LIMITS,
        describe: Describe | None = None,
    ) -> None:
        super().__init__(scheme, limits, describe)
        self.root = Path(path).absolute()
        self.base = self.root.name  # the path of the skill; the name of the file if no skill is served
        self.form: ArchiveFormat = archive_format(self.root.name, None)
        self._ready: tuple[str, ReadyArchive] | None = None  # the archive, and the URI of its skill
        self._tree: Mapping[str, bytes] = {}

    def demand_root(self) -> None:
        """Raise ``NotFoundError`` if the file does not exist."""
        if not self.root.is_file():
            raise NotFoundError(
                "archive-missing",
                f"the archive {self.root.name!r} does not exist",
                "give the path of a .zip or .tar.gz",
            )

    async def refresh(self) -> Change:
        """Read the file again and publish the changes."""

        def reload() -> Change:
            with self._lock:
                return self._reload()

        change = await to_thread.run_sync(reload)
        self._feed.publish(change)
        return change

    async def follow(self) -> None:
        """Watch the file until cancelled. Replacing the file is a change too."""
        from skillwire.catalog.watch import watch_folder  # late: only a long-running server watches

        async for paths in watch_folder(self.root.parent, recursive=False):
            if paths is None or self.root.name in paths:
                await self.refresh()

    async def ready_archive(self, uri: str) -> ReadyArchive | None:
        """The archive file, for the skill at its root. Nested skills have no archive file."""
        await self._current()
        ready = self._ready
        return ready[1] if ready is not None and ready[0] == uri else None

    def data_at(self, path: str) -> bytes | None:
        """The bytes of a file by its full path, even if its skill is not served. Call ``load`` first."""
        return self._tree.get(path)

    def _meta_of(self, path: str) -> SkillMeta:
        return DEFAULT_META if self._describe is None else self._describe(path, DEFAULT_META)

    def _reload(self, on_skill: Callable[[int], None] | None = None) -> Change:
        before = self._ready
        self.base, ready, found = self._unpack()
        uri = skill_md_uri(self.base, self._scheme)
        self._snapshot, change = self._snapshot.updated(self._snapshot.paths_below(""), found)
        self._ready, self._loaded = (uri, ready) if ready is not None else None, True
        if on_skill is not None:
            on_skill(len(self._snapshot.keys))
        if not change and self._ready != before:  # the same files, packed differently
            return Change(changed=frozenset([uri]))
        return change

    def _unpack(self) -> tuple[str, ReadyArchive | None, dict[str, ReadFolder]]:
        """The path of the skill, the archive if it is served, and the skills in it."""
        name, self._tree = self.root.name, {}
        try:
            data = self._read()
            files, executables, folders = unpack_tree(data, self.form, self._limits)
        except (FormatError, LimitError) as error:
            return name, None, self._nothing(error.reference, error.message, error.hint)
        except OSError as error:
            message = f"the archive cannot be read: {error.strerror or type(error).__name__}"
            return name, None, self._nothing("unreadable", message, "make it readable, or remove it")
        base = name_in(files[SKILL_MD], self._limits) or archive_root(name)
        self._tree = {f"{base}/{path}": content for path, content in files.items()}
        skills = (path[: -len(SKILL_MD) - 1] for path in self._tree if path.endswith(f"/{SKILL_MD}"))
        found = find_skills(
            self._tree,
            scheme=self._scheme,
            limits=self._limits,
            metas={path: self._meta_of(path) for path in skills},
            executables={f"{base}/{path}" for path in executables},
            folders=[f"{base}/{path}" for path in folders],
        )
        served = found[base].record is not None
        return base, ReadyArchive(self.form, data, digest_of(data)) if served else None, found

    def _read(self) -> bytes:
        real = os.path.realpath(self.root)  # each time: a deployment may change the link
        try:
            return read_below(os.path.dirname(real), os.path.basename(real), self._limits.max_archive_bytes)[1]
        except LimitError as error:
            most = self._limits.max_archive_bytes
            raise LimitError(
                "archive-too-large", f"the archive has more than {most} bytes", "serve it unpacked", rule="I3"
            ) from error

    def _nothing(self, reference: str, message: str, hint: str) -> dict[str, ReadFolder]:
        name = self.root.name
        return {name: ReadFolder(True, None, (Diagnostic(reference, message, hint, file=name, skill=name),))}


def local_catalog(
    path: str | os.PathLike[str], *, scheme: str = DEFAULT_SCHEME, describe: Describe | None = None
) -> ArchiveCatalog | DirectoryCatalog:
    """The catalog of the archive or folder at ``path``. Nothing is read yet."""
    kind = ArchiveCatalog if is_archive(path) else DirectoryCatalog
    return kind(path, scheme=scheme, describe=describe)
