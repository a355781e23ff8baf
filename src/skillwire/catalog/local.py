"""What a path of this machine holds: a folder of skills, or a skill in an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.catalog.archive import ArchiveCatalog, is_archive
from skillwire.catalog.directory import DirectoryCatalog
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.entry import DEFAULT_META
from skillwire.skill.uri import DEFAULT_SCHEME

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from skillwire.skill.entry import SkillMeta


def local_catalog(
    path: str | os.PathLike[str],
    *,
    scheme: str = DEFAULT_SCHEME,
    limits: Limits = DEFAULT_LIMITS,
    describe: Callable[[str], SkillMeta] = lambda path: DEFAULT_META,  # noqa: ARG005 - one answer for all
) -> ArchiveCatalog | DirectoryCatalog:
    """The catalog of what is at ``path``; nothing is read yet."""
    kind = ArchiveCatalog if is_archive(path) else DirectoryCatalog
    return kind(path, scheme=scheme, limits=limits, describe=describe)
