"""Where a skill of the gateway came from: ``_meta`` with our own prefix (R4, O2).

It is sent with the resources of a skill, with the result of ``skills/get`` and with file contents, but never in an
entry: a client that refuses an entry because of an additional field refuses the whole page (docs/gateway.md). It
contains no secrets, and no address of an upstream.
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
UPSTREAM_URI = f"{_PREFIX}/upstream-uri"  # the upstream's URI of the SKILL.md
DIALECT = f"{_PREFIX}/dialect"  # the dialect of the upstream
STALE_SINCE = f"{_PREFIX}/stale-since"  # when the upstream was last listed; only while it is unavailable
NOT_PROMISED = f"{_PREFIX}/not-promised"  # what the upstream did not promise, so that it cannot be verified
SNAPSHOT = f"{_PREFIX}/snapshot-of"  # when the gateway took the snapshot; its digests are the gateway's own


def with_provenance(
    entry: SkillEntry, label: str, *, dialect: str | None = None, stale_since: float | None = None
) -> SkillEntry:
    """``entry`` with its provenance in ``_meta``."""
    meta: dict[str, Json] = {ORIGIN: label, UPSTREAM_URI: entry.uri}
    if dialect is not None:
        meta[DIALECT] = dialect
    if stale_since is not None:
        meta[STALE_SINCE] = format_time(stale_since)
    if entry.gaps:
        meta[NOT_PROMISED] = [*sorted(entry.gaps)]
    others = {key: value for key, value in entry.meta.meta.items() if key != STALE_SINCE}
    return replace(entry, meta=replace(entry.meta, meta={**others, **meta}))


def format_time(at: float) -> str:
    """A time in the format of the protocol."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
