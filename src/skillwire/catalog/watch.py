"""File events of the operating system, as batches of paths below a folder.

The first batch is always "everything": what changed between the reading of the tree and the moment the
watch stood would otherwise be missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType] - a trio type it may lack

from skillwire.catalog.ignore import is_ignored
from skillwire.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

_QUIET_MS = 100
_STEP_MS = 20
_IDLE_MS = 500


async def watch_folder(root: Path, *, recursive: bool = True) -> AsyncIterator[tuple[str, ...] | None]:
    """Paths that changed, relative to ``root``, in batches; ``None`` once, when the watch stands."""
    standing = False
    try:
        async for batch in awatch(
            root,
            watch_filter=None,
            debounce=_QUIET_MS,
            step=_STEP_MS,
            rust_timeout=_IDLE_MS,
            yield_on_timeout=True,
            recursive=recursive,
            ignore_permission_denied=True,
        ):
            if not standing:
                standing = True
                yield None
            paths = tuple(_relevant(root, (path for _, path in batch)))
            if paths:
                yield paths
    except OSError as error:
        raise UpstreamError(
            "watch-failed",
            f"the folder {root.name!r} cannot be watched: {error.strerror or error}",
            "raise the system's limit of watched files (fs.inotify.max_user_watches), or serve without watching",
        ) from error


def _relevant(root: Path, paths: Iterable[str]) -> Iterable[str]:
    prefix = f"{root}/"
    for path in paths:
        inside = path.removeprefix(prefix) if path.startswith(prefix) else ""
        *folders, name = inside.split("/")
        if any(is_ignored(folder, is_folder=True) for folder in folders):
            continue
        if not is_ignored(name, is_folder=True) and not is_ignored(name, is_folder=False):
            yield inside
