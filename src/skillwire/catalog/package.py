"""Skills inside a Python package, so that the wheel of a server can contain its skills.

An installed package is served as a folder, and its bytes stay on disk. A package inside a zip file is read into
memory, within the usual limits.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.catalog.directory import DirectoryCatalog
from skillwire.catalog.memory import MemoryCatalog
from skillwire.catalog.records import is_ignored
from skillwire.errors import LimitError, NotFoundError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.uri import DEFAULT_SCHEME, segment_problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable


def package_catalog(
    package: str, folder: str = "skills", *, scheme: str = DEFAULT_SCHEME, limits: Limits = DEFAULT_LIMITS
) -> DirectoryCatalog | MemoryCatalog:
    """The skills in ``folder`` of the package ``package``: ``package_catalog("acme_server", "skills")``."""
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
