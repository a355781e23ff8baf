"""Keys in ``_meta`` for data that a dialect has no fields for (R4). Other clients may ignore them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillwire.skill.entry import Resource

_PREFIX = "io.github.skillwire"

URI = f"{_PREFIX}/uri"  # the URI of the skill's SKILL.md in the extension
DIGEST = f"{_PREFIX}/digest"  # of a file's raw bytes
SIZE = f"{_PREFIX}/size"
ACTIVATION = f"{_PREFIX}/activation"  # the token with the active skills (stateless era)


def file_meta(file: Resource | None) -> dict[str, Any]:
    """The digest and size of a file, which clients need to verify it (E3)."""
    if file is None:
        return {}
    known = {DIGEST: file.digest, SIZE: file.size}
    return {key: value for key, value in known.items() if value is not None}
