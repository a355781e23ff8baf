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

# Where a gateway has a skill from (O2).
ORIGIN = f"{_PREFIX}/origin"  # the label of its upstream
UPSTREAM_URI = f"{_PREFIX}/upstream-uri"  # the URI of its SKILL.md there
DIALECT = f"{_PREFIX}/dialect"  # the dialect of the upstream
STALE_SINCE = f"{_PREFIX}/stale-since"  # when the upstream was last listed; only while it is unavailable
NOT_PROMISED = f"{_PREFIX}/not-promised"  # what the upstream did not promise, so that it cannot be verified
SNAPSHOT = f"{_PREFIX}/snapshot-of"  # when the gateway took the snapshot; its digests are the gateway's own


def file_meta(file: Resource | None) -> dict[str, Any]:
    """The digest and size of a file, which clients need to verify it (E3)."""
    if file is None:
        return {}
    known = {DIGEST: file.digest, SIZE: file.size}
    return {key: value for key, value in known.items() if value is not None}
