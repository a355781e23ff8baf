"""Writes skills as a static site: files for any web server, with a well-known index and a zip file for each skill.

Below the path of a skill are the files of ``skill/well_known.py``. Up to ``MOST_IN_ROOT`` skills are also in an
index at the root; with more, an installer that reads it would download too much. Equal skills give equal bytes.

Every file of a skill is verified first (V1, V2, V4), and a skill with a repository in it is refused (Z3). The site
is written into a new folder beside the old one, and replaces it with one rename. Only a folder that an export has
written is replaced: a file in it has the names of all others.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast

from anyio import to_thread

from skillwire.catalog.export import check_folder, check_tree, replace_folder
from skillwire.catalog.packer import tree_of
from skillwire.catalog.verification import read_verified
from skillwire.errors import FormatError, SkillwireError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.archive import pack
from skillwire.skill.entry import digest_of
from skillwire.skill.well_known import INDEX_FILE, INDEX_FOLDERS, archive_name, index_document, index_entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Mapping

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import SkillEntry

MOST_IN_ROOT: Final = 100

_MARKER: Final = ".skillwire-site.json"
_NO_JEKYLL: Final = ".nojekyll"  # without this file, GitHub Pages leaves out folders such as .well-known


@dataclass
class StaticSite:
    """A site that was written: the digest of the zip file of each skill, by path, and why others are not in it."""

    folder: Path
    archives: dict[str, str] = field(default_factory=dict[str, str])
    size: int = 0
    refused: dict[str, SkillwireError] = field(default_factory=dict[str, SkillwireError])  # by URI


async def write_site(
    catalog: Catalog,
    folder: Path,
    *,
    limits: Limits = DEFAULT_LIMITS,
    on_skill: Callable[[int], None] | None = None,
) -> StaticSite:
    """Write all listed skills of ``catalog`` as the site ``folder``, or nothing."""
    place = await to_thread.run_sync(_checked_place, folder)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".skillwire-", dir=place.parent) as beside:
            writing = _Writing(StaticSite(folder), Path(beside) / "new", limits)
            await writing.add_all(catalog, catalog.entries(), on_skill)
            await to_thread.run_sync(writing.finish)
            await to_thread.run_sync(_checked_place, folder)  # again: reading takes a while
            await to_thread.run_sync(replace_folder, place, writing.root)
    except OSError as error:
        raise UpstreamError(
            "write-failed",
            f"{str(folder)!r:.200} could not be written: {error.strerror}",
            "the old site was not changed; check the place and its free space",
        ) from error
    return writing.site


class _Writing:
    """A site in a temporary folder."""

    def __init__(self, site: StaticSite, root: Path, limits: Limits) -> None:
        self.site = site
        self.root = root
        self._limits = limits
        self._paths: list[str] = []
        self._entries: list[tuple[str, dict[str, Any]]] = []  # by path, for the index at the root

    async def add_all(
        self, catalog: Catalog, entries: AsyncIterable[SkillEntry], on_skill: Callable[[int], None] | None
    ) -> None:
        """Add each skill that can be verified and packed."""
        count = 0
        async for entry in entries:
            try:
                data = await _packed(catalog, entry, self._limits)
            except SkillwireError as error:
                if isinstance(error, UpstreamError):
                    raise  # the place does not answer: the old site stays
                self.site.refused[entry.uri] = error
                continue
            await to_thread.run_sync(self._add, entry, data)
            count += 1
            if on_skill is not None:
                on_skill(count)

    def _add(self, entry: SkillEntry, data: bytes) -> None:
        digest = digest_of(data)
        about = partial(index_entry, entry.name, entry.description, digest, version=_version_of(entry))
        self._write(f"{entry.path}/{INDEX_FOLDERS[0]}/{archive_name(digest)}", data)
        for index in INDEX_FOLDERS:
            self._write(f"{entry.path}/{index}/{INDEX_FILE}", index_document([about()]))
        self.site.archives[entry.path] = digest
        self._entries.append((entry.path, about(below=entry.path)))

    def finish(self) -> None:
        """Write the index at the root, and the names of all files. Refuse a tree that may not be written."""
        self.root.mkdir(exist_ok=True)
        if 0 < len(self._entries) <= MOST_IN_ROOT:
            in_order = [about for _, about in sorted(self._entries, key=lambda each: each[0])]
            for index in INDEX_FOLDERS:
                self._write(f"{index}/{INDEX_FILE}", index_document(in_order))
        self._write(_NO_JEKYLL, b"")
        check_tree(self.site.folder.name, self._paths)
        files = sorted([*self._paths, _MARKER])
        self._write(_MARKER, json.dumps({"format": 1, "files": files}, indent=1).encode())

    def _write(self, path: str, data: bytes) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:  # x: two names that are equal on this file system raise an error
            file.write(data)
        self._paths.append(path)
        self.site.size += len(data)


async def _packed(catalog: Catalog, entry: SkillEntry, limits: Limits) -> bytes:
    files = await read_verified(catalog, entry, limits=limits)
    check_tree(entry.name, files)
    tree = await tree_of(catalog, entry)
    return await to_thread.run_sync(
        partial(pack, files, "zip", limits, executables=tree.executables, empty_folders=tree.empty_folders)
    )


def _version_of(entry: SkillEntry) -> str | None:
    metadata: object = entry.frontmatter.get("metadata")
    version = cast("Mapping[str, object]", metadata).get("version") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else None


def _checked_place(folder: Path) -> Path:
    """The real path of a folder; refuses one that tools run (Z2), or with files that no export has written."""
    place, label = Path(os.path.realpath(folder)), str(folder)
    check_folder(place, label)
    here = Path.cwd()
    if place in (here, *here.parents):
        raise FormatError(
            "export-folder-current",
            f"{label!r:.200} is the current folder, or above it, and would be replaced",
            "name a new folder: skillwire export site TARGET",
        )
    if place.exists() and not place.is_dir():
        raise FormatError("export-folder-foreign", f"{label!r:.200} is a file", "name a folder")
    known = _written(place)
    for above, _, names in os.walk(place):
        for name in names:
            path = PurePosixPath(os.path.relpath(os.path.join(above, name), place)).as_posix()
            if path not in known:
                raise FormatError(
                    "export-folder-foreign",
                    f"{label!r:.200} has the file {path!r:.200}, which no export has written",
                    "name a new or empty folder, before the target: skillwire export site TARGET",
                )
    return place


def _written(place: Path) -> set[str]:
    """The files that an export has written into this folder."""
    try:
        document: Any = json.loads((place / _MARKER).read_bytes())
        return {str(path) for path in document["files"]}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return set()
