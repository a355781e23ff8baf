"""What the user allowed on this machine: folders that they typed (Z2).

Each permission is one file in the state folder, called by the digest of what was allowed; its text is what was
allowed. To take the permission back, remove the file.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from skillwire.cli.hosting import default_state
from skillwire.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def is_allowed(what: Mapping[str, Any]) -> bool:
    """Whether the user allowed exactly this before."""
    return _record(what).is_file()


def allow(what: Mapping[str, Any]) -> None:
    """Remember that the user allowed this. Without a place to remember it, they are asked again."""
    from skillwire.install.writing import replace_file

    with suppress(StoreError):
        replace_file(_record(what), _canonical(what), mode=0o600)


def _record(what: Mapping[str, Any]) -> Path:
    from skillwire.skill.digest import digest_of

    return default_state() / "allowed" / digest_of(_canonical(what)).removeprefix("sha256:")


def _canonical(what: Mapping[str, Any]) -> bytes:
    return (json.dumps(what, indent=2, sort_keys=True) + "\n").encode()
