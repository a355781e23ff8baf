"""One file, replaced in one step: its readers see the old bytes or the new ones."""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from skillwire.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_file(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Put ``data`` at ``path``. An existing file's mode stays; a new one gets ``mode``, or what is usual."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write_new(beside, data, _mode_of(path) or mode)
            os.rename(beside, path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        raise StoreError(
            "write-failed", f"{path.name!r} could not be written: {error.strerror}", "nothing was changed"
        ) from error


def unfinished(path: Path) -> list[Path]:
    """What processes that were killed had written to put it at ``path``; if nobody is writing there now."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}\Z")
    return [each for each in path.parent.iterdir() if name.match(each.name) and each.is_file()]


def _write_new(path: Path, data: bytes, mode: int | None) -> None:
    descriptor = os.open(path, _NEW, 0o666 if mode is None else 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if mode is not None:
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def _mode_of(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None
