"""What clients may see of an upstream: its URIs, its entries with their provenance, its errors, and its problems.

- ``prepare_entry`` adds the provenance of an entry: ``_meta`` with our own prefix (R4, O2). It is sent with the
  resources of a skill, with the result of ``skills/get`` and with file contents, but never in an entry: a client
  that refuses an entry because of an additional field refuses the whole page (docs/how-to/gateway.md). It contains
  no secrets, and no address of an upstream. An entry whose name breaks the format is not published (F2, U3, P2).
- Error messages of an upstream may contain addresses or the output of a process. They go to the operator's log and
  terminal. Clients and the page see the error's reference only (``safe_error``).
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from skillwire.amounts import utc_text
from skillwire.catalog.uri_map import UriMap
from skillwire.errors import LimitError, SkillwireError, UpstreamError
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.entry import invalid_entry
from skillwire.skill.frontmatter import description_problems, is_name
from skillwire.skill.uri import DEFAULT_SCHEME, NAMED_SCHEME
from skillwire.wire.meta import URI

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillwire.catalog.contract import Catalog
    from skillwire.client.remote import RemoteCatalog
    from skillwire.skill import Json, SkillEntry

_PREFIX = URI.rpartition("/")[0]
ORIGIN = f"{_PREFIX}/origin"  # the label of the upstream
UPSTREAM_URI = f"{_PREFIX}/upstream-uri"  # the upstream's URI of the SKILL.md
DIALECT = f"{_PREFIX}/dialect"  # the dialect of the upstream
STALE_SINCE = f"{_PREFIX}/stale-since"  # when the upstream was last listed; only while it is unavailable
NOT_PROMISED = f"{_PREFIX}/not-promised"  # what the upstream did not promise, so that it cannot be verified
SNAPSHOT = f"{_PREFIX}/snapshot-of"  # when the gateway took the snapshot; its digests are the gateway's own

_MAX_DESCRIPTION_PROBLEMS = 1000
# References of errors that this program makes itself: their messages contain nothing of the upstream.
_SAFE_ERRORS = (
    "file-changing",
    "skill-too-large",
    "directory-unsupported",
    "no-skills",
    "entry-other",
    "cursor-invalid",
)
_LISTING_ERRORS = ("listing-too-long", "cursor-repeats")
_FIX_LISTING = "raise the limits of the upstream in the policy, or fix the upstream"

log = logging.getLogger("skillwire.gateway")


def uri_map_of(label: str, remote: RemoteCatalog | None) -> UriMap:
    """The map for the upstream ``label``. It may change with the listing.

    An upstream that knows its skills by name only has no URIs: the scheme that stands for them is not shown.
    """
    is_named = remote is not None and remote.schemes == frozenset({NAMED_SCHEME})
    return UriMap(label, NAMED_SCHEME if is_named else DEFAULT_SCHEME)


def prepare_entry(entry: SkillEntry, remote: RemoteCatalog) -> SkillEntry:
    """``entry`` with its provenance; ``FormatError`` if it must not be published."""
    name, segment = entry.name, entry.path.rpartition("/")[2]
    if name != segment:
        raise invalid_entry(f"the name {name!r:.80} differs from the URI's last segment", "U3")
    if not is_name(name):
        raise invalid_entry(f"the name {name!r:.80} is not 1-64 of a-z, 0-9 and single hyphens", "F2")
    if None in entry.arguments.values():
        needed = ", ".join(entry.arguments)
        raise invalid_entry(f"it needs arguments ({needed:.200}), which a gateway cannot forward", "P2")
    meta: dict[str, Json] = {key: value for key, value in entry.meta.meta.items() if key != STALE_SINCE}
    meta |= {ORIGIN: remote.label, UPSTREAM_URI: entry.uri}
    if remote.dialect is not None:
        meta[DIALECT] = remote.dialect
    if remote.state == "stale" and remote.seen_at is not None:
        meta[STALE_SINCE] = utc_text(remote.seen_at, "seconds")
    if entry.gaps:
        meta[NOT_PROMISED] = [*sorted(entry.gaps)]
    return replace(entry, meta=replace(entry.meta, meta=meta))


def safe_error(error: SkillwireError, label: str, uri: str) -> SkillwireError:
    """``error`` if its message contains nothing of the upstream ``label``, else an error that replaces it."""
    if error.reference in _SAFE_ERRORS:
        return error
    if error.reference == "file-too-large":  # B1: the upstream's error has its own URI, and no key of the policy
        return LimitError(
            "file-too-large",
            f"{uri!r:.300} is larger than this gateway accepts from {label!r}",
            f"the operator of the gateway can raise max-file-bytes of [upstream.{label}]",
            rule="B1",
        )
    log.info("upstream %r: %s [%s]", label, error.message, error.reference)
    return UpstreamError(
        "upstream-away",
        f"the server of {label!r} does not answer",
        "try again later; files that were read before are still served from the cache",
    )


async def upstream_problems(gate: Catalog, remote: RemoteCatalog | None) -> list[Diagnostic]:
    """The state of an upstream, entries that are not published, and invalid descriptions."""
    problems = await gate.problems()
    if remote is None:
        return [*problems]
    entries = [entry async for entry in remote.entries()]
    return [*_state_problems(remote), *problems, *_description_problems(entries)]


def _state_problems(remote: RemoteCatalog) -> Iterator[Diagnostic]:
    label, error = remote.label, remote.error
    reason = "" if error is None else f" [{error.reference}]"
    if remote.state in ("unreachable", "connecting"):
        message = f"the upstream {label!r} is unavailable and was never listed{reason}"
        yield Diagnostic("upstream-away", message, "check that it runs and how it is configured", file="")
    elif remote.state == "stale":
        since = "" if remote.seen_at is None else f" since {utc_text(remote.seen_at, 'seconds')}"
        is_listing_error = error is not None and error.reference in _LISTING_ERRORS
        what = "has not sent a complete listing" if is_listing_error else "has not answered"
        message = f"the upstream {label!r} {what}{since}; its last listing is served{reason}"
        hint = _FIX_LISTING if is_listing_error else "check that it runs"
        yield Diagnostic("upstream-stale", message, hint, file="")
    elif error is not None:
        message = f"the upstream {label!r} did not list all of its skills{reason}"
        yield Diagnostic("upstream-partial", message, _FIX_LISTING, file="")


def _description_problems(entries: list[SkillEntry]) -> list[Diagnostic]:
    """F3, F7: skills with invalid descriptions are served and reported. Some dialects have no descriptions."""
    found: list[Diagnostic] = []
    for entry in (each for each in entries if each.whole_frontmatter or each.description):
        for reference, message, hint in description_problems(entry.frontmatter):
            place = entry.name if entry.is_named else entry.uri
            found.append(Diagnostic(reference, message, hint, file=place, skill=place))
        if len(found) >= _MAX_DESCRIPTION_PROBLEMS:
            break
    return found
