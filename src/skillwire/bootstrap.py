"""The composition root: what a person asked for becomes objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.catalog.claims import Mount
from skillwire.catalog.combined import CombinedCatalog
from skillwire.catalog.directory import DirectoryCatalog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillwire.catalog.contract import Catalog


def open_folders(paths: Sequence[str], on_skill: Callable[[int], None] | None = None) -> Catalog:
    """A catalog of the folders at ``paths``, already read. Several are combined, each labelled by its name."""
    folders = [DirectoryCatalog(path) for path in paths]
    for folder in folders:
        folder.load(on_skill)
    if len(folders) == 1:
        return folders[0]
    labels = _labels([folder.root.name for folder in folders])
    return CombinedCatalog([Mount(folder, label) for folder, label in zip(folders, labels, strict=True)])


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
