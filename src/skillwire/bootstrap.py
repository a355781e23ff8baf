"""The composition root: what a person asked for becomes objects."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from skillwire.catalog.claims import Mount
from skillwire.catalog.combined import CombinedCatalog
from skillwire.catalog.directory import DirectoryCatalog
from skillwire.skill.entry import SkillMeta
from skillwire.skill.uri import DEFAULT_SCHEME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillwire.catalog.contract import Catalog


def open_folders(
    paths: Sequence[str],
    *,
    prefix: str = "",
    unlisted: Sequence[str] = (),
    scheme: str = DEFAULT_SCHEME,
    on_skill: Callable[[int], None] | None = None,
) -> Catalog:
    """A catalog of the folders at ``paths``, already read. Several are combined, each labelled by its name.

    Skills whose path, prefix included, matches one of the globs in ``unlisted`` are served but not listed.
    """

    def describe(path: str) -> SkillMeta:
        outside = f"{prefix}/{path}" if prefix else path
        return SkillMeta(listed=not any(fnmatchcase(outside, glob) for glob in unlisted))

    folders = [DirectoryCatalog(path, scheme=scheme, describe=describe) for path in paths]
    for folder in folders:
        folder.load(on_skill)
    if len(folders) == 1 and not prefix:
        return folders[0]
    labels = _labels([folder.root.name for folder in folders])
    mounts = [Mount(folder, label, prefix) for folder, label in zip(folders, labels, strict=True)]
    return CombinedCatalog(mounts, scheme=scheme)


def _labels(names: Sequence[str]) -> list[str]:
    """``skills``, ``skills-2``, ``skills-3``: each name once."""
    labels: list[str] = []
    for name in names:
        label, count = name, 1
        while label in labels:
            count += 1
            label = f"{name}-{count}"
        labels.append(label)
    return labels
