"""What the gateway says about where a skill came from: ``_meta`` under our own prefix (R4, O2).

It goes with the skill's resources, with the result of ``skills/get`` and with what is read, never into an entry: a
client that refuses one for a field more refuses the whole page (docs/gateway.md). Nothing in it is a secret; where
an upstream is, and how it is reached, is not said.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from skillwire.wire.meta import URI

if TYPE_CHECKING:
    from skillwire.skill import Json, SkillEntry

_PREFIX = URI.rpartition("/")[0]
ORIGIN = f"{_PREFIX}/origin"  # the label of the upstream
UPSTREAM_URI = f"{_PREFIX}/upstream-uri"  # the skill's SKILL.md there
DIALECT = f"{_PREFIX}/dialect"  # which the upstream speaks
STALE_SINCE = f"{_PREFIX}/stale-since"  # when the upstream was last heard; there only while it is away
NOT_PROMISED = f"{_PREFIX}/not-promised"  # what the upstream left open, so that it cannot be verified
SNAPSHOT = f"{_PREFIX}/snapshot-of"  # the gateway's own digests, of what the upstream said then


def with_provenance(
    entry: SkillEntry, label: str, *, dialect: str | None = None, stale_since: float | None = None
) -> SkillEntry:
    """``entry`` with what is known about where it came from."""
    meta: dict[str, Json] = {ORIGIN: label, UPSTREAM_URI: entry.uri}
    if dialect is not None:
        meta[DIALECT] = dialect
    if stale_since is not None:
        meta[STALE_SINCE] = moment(stale_since)
    if entry.gaps:
        meta[NOT_PROMISED] = [*sorted(entry.gaps)]
    said = {key: value for key, value in entry.meta.meta.items() if key != STALE_SINCE}
    return replace(entry, meta=replace(entry.meta, meta={**said, **meta}))


def moment(at: float) -> str:
    """A time as the protocol writes it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
