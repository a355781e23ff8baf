"""One upstream of the gateway: a remote catalog whose errors are safe to show to clients.

Error messages of an upstream may contain addresses or the output of a process. They go to the operator's log and
terminal. Clients and the page see the error's reference only. Entries get their provenance (``provenance.py``). An
entry whose name breaks the format is reported and not published, in every dialect (F2, U3, P2).
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from skillwire.catalog.contract import DEFAULT_PAGE_SIZE
from skillwire.catalog.mapped import UriMap
from skillwire.catalog.snapshot import no_skill
from skillwire.catalog.wrapper import WrapperCatalog
from skillwire.errors import (
    FormatError,
    NotFoundError,
    ProtocolError,
    SkillwireError,
    UpstreamError,
    VerificationError,
)
from skillwire.gateway.provenance import format_time, with_provenance
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.entry import invalid_entry
from skillwire.skill.frontmatter import description_problems, is_name
from skillwire.skill.uri import DEFAULT_SCHEME, NAMED_SCHEME

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Sequence

    from skillwire.catalog.changes import Change
    from skillwire.catalog.contract import DirectoryChild, Page, SkillFile
    from skillwire.client.remote import RemoteCatalog
    from skillwire.skill import SkillEntry

T = TypeVar("T")

_MAX_DESCRIPTION_PROBLEMS = 1000
# References of errors that the client makes itself: their messages contain nothing of the upstream.
_SAFE_ERRORS = ("file-too-large", "directory-unsupported", "no-skills", "entry-other", "cursor-invalid")
_LISTING_ERRORS = ("listing-too-long", "cursor-repeats")
_FIX_LISTING = "raise the limits of the upstream in the policy, or fix the upstream"

log = logging.getLogger("skillwire.gateway")


class UpstreamCatalog(WrapperCatalog):
    """The part of ``remote`` that clients may see. Create ``remote`` with ``prepare=prepare_entry``."""

    def __init__(self, remote: RemoteCatalog) -> None:
        super().__init__(remote)
        self.remote = remote
        self._descriptions: list[Diagnostic] | None = None  # None after a change
        self._watch = remote.changes()
        self._watch.forward(self._forget)

    def uri_map(self) -> UriMap:
        """The map of the upstream's URIs to those of the gateway.

        An upstream that knows its skills by name only has no URIs: the scheme that stands for them is not shown.
        """
        is_named = self.remote.schemes == frozenset({NAMED_SCHEME})
        return UriMap(self.remote.label, NAMED_SCHEME if is_named else DEFAULT_SCHEME)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry; an invalid one does not exist for clients."""
        try:
            return await self._answer(self.remote.get_skill(uri))
        except (NotFoundError, ProtocolError, VerificationError, FormatError) as error:
            raise no_skill(uri) from error

    async def read_file(self, uri: str) -> SkillFile:
        """One file."""
        return await self._answer(self.remote.read_file(uri))

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory."""
        return await self._answer(self.remote.read_directory(uri, cursor, limit))

    async def problems(self) -> Sequence[Diagnostic]:
        """The state of the upstream, entries that are not published, and invalid descriptions."""
        remote = self.remote
        if self._descriptions is None:
            found = _description_problems([entry async for entry in remote.entries()])
            self._descriptions = list(islice(found, _MAX_DESCRIPTION_PROBLEMS))
        entries = [problem for problem in await remote.problems() if problem.reference != "listing-partial"]
        return [*_state_problems(remote), *entries, *self._descriptions]

    async def _answer(self, asked: Awaitable[T]) -> T:
        """The upstream's answer. An error that may contain text of the upstream becomes ``upstream-away``."""
        try:
            return await asked
        except (NotFoundError, VerificationError, FormatError):
            raise
        except SkillwireError as error:
            if error.reference in _SAFE_ERRORS:
                raise
            log.info("upstream %r: %s [%s]", self.remote.label, error.message, error.reference)
            raise UpstreamError(
                "upstream-away",
                f"the server of {self.remote.label!r} does not answer",
                "try again later; files that were read before are still served from the cache",
            ) from error

    def _forget(self, change: Change) -> None:  # noqa: ARG002
        self._descriptions = None


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
    since = remote.seen_at if remote.state == "stale" else None
    return with_provenance(entry, remote.label, dialect=remote.dialect, stale_since=since)


def _state_problems(remote: RemoteCatalog) -> list[Diagnostic]:
    label, error = remote.label, remote.error
    reason = "" if error is None else f" [{error.reference}]"
    if remote.state in ("unreachable", "connecting"):
        message = f"the upstream {label!r} is unavailable and was never listed{reason}"
        return [Diagnostic("upstream-away", message, "check that it runs and how it is configured", file="")]
    if remote.state == "stale":
        since = "" if remote.seen_at is None else f" since {format_time(remote.seen_at)}"
        is_listing_error = error is not None and error.reference in _LISTING_ERRORS
        what = "has not sent a complete listing" if is_listing_error else "has not answered"
        message = f"the upstream {label!r} {what}{since}; its last listing is served{reason}"
        hint = _FIX_LISTING if is_listing_error else "check that it runs"
        return [Diagnostic("upstream-stale", message, hint, file="")]
    if error is not None:
        message = f"the upstream {label!r} did not list all of its skills{reason}"
        return [Diagnostic("upstream-partial", message, _FIX_LISTING, file="")]
    return []


def _description_problems(entries: Sequence[SkillEntry]) -> Iterator[Diagnostic]:
    """F3, F7: skills with invalid descriptions are served and reported. Some dialects have no descriptions."""
    for entry in (each for each in entries if each.whole_frontmatter or each.description):
        for reference, message, hint in description_problems(entry.frontmatter):
            place = entry.name if entry.is_named else entry.uri
            yield Diagnostic(reference, message, hint, file=place, skill=place)
