"""What a path of this machine holds: a folder of skills, or a skill in an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.catalog.archive import ArchiveCatalog, is_archive
from skillwire.catalog.directory import DirectoryCatalog
from skillwire.catalog.settings import as_the_folder_says
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.uri import DEFAULT_SCHEME

if TYPE_CHECKING:
    import os

    from skillwire.catalog.settings import Describe


def local_catalog(
    path: str | os.PathLike[str],
    *,
    scheme: str = DEFAULT_SCHEME,
    limits: Limits = DEFAULT_LIMITS,
    describe: Describe = as_the_folder_says,
) -> ArchiveCatalog | DirectoryCatalog:
    """The catalog of what is at ``path``; nothing is read yet."""
    kind = ArchiveCatalog if is_archive(path) else DirectoryCatalog
    return kind(path, scheme=scheme, limits=limits, describe=describe)
