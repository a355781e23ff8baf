"""One upstream of the gateway: a remote catalog without the upstream's own words.

Error messages of an upstream may contain addresses or the output of a process. They go to the operator's log,
never to a client. Entries say where they came from (``provenance.py``). An entry whose name breaks the format is
reported and not published, whatever dialect the upstream speaks (F2, U3, P2).
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
from skillwire.gateway.provenance import with_provenance
from skillwire.gateway.states import state_problem
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.frontmatter import description_problems, is_name
from skillwire.skill.received import invalid_entry
from skillwire.skill.uri import DEFAULT_SCHEME, NAMED_SCHEME

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Sequence

    from skillwire.catalog.changes import Change
    from skillwire.catalog.contract import DirectoryChild, Page, SkillFile
    from skillwire.client.remote import RemoteCatalog
    from skillwire.skill import SkillEntry

T = TypeVar("T")

_MAX_NOTES = 1000
_OURS = ("file-too-large", "directory-unsupported", "no-skills", "entry-other", "cursor-invalid")  # our own words

log = logging.getLogger("skillwire.gateway")


class UpstreamCatalog(WrapperCatalog):
    """``remote``, as clients may see it. Make ``remote`` with ``prepare_entry``."""

    def __init__(self, remote: RemoteCatalog) -> None:
        super().__init__(remote)
        self.remote = remote
        self._notes: list[Diagnostic] | None = None  # None after a change
        self._watch = remote.changes()
        self._watch.forward(self._forget)

    @property
    def uri_map(self) -> UriMap:
        """The map of the upstream's URIs to those of the gateway.

        An upstream that knows its skills by name only has no URIs: the scheme that stands for them is not shown.
        """
        return UriMap(self.remote.label, NAMED_SCHEME if self.remote.schemes == {NAMED_SCHEME} else DEFAULT_SCHEME)

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
        """The state of the upstream, entries that are not published, and descriptions that break the format."""
        remote = self.remote
        if self._notes is None:
            self._notes = list(islice(_notes([entry async for entry in remote.entries()]), _MAX_NOTES))
        own = state_problem(remote.label, remote.state, remote.error, remote.seen_at)
        found = [problem for problem in await remote.problems() if problem.reference != "listing-partial"]
        return [*own, *found, *self._notes]

    async def _answer(self, asked: Awaitable[T]) -> T:
        """The upstream's answer; ``upstream-away`` in place of an error with the upstream's words."""
        try:
            return await asked
        except (NotFoundError, VerificationError, FormatError):
            raise
        except SkillwireError as error:
            if error.reference in _OURS:
                raise
            log.info("upstream %r: %s [%s]", self.remote.label, error.message, error.reference)
            raise _away(self.remote.label) from error

    def _forget(self, change: Change) -> None:  # noqa: ARG002
        self._notes = None


def prepare_entry(entry: SkillEntry, remote: RemoteCatalog) -> SkillEntry:
    """``entry`` with its provenance; ``FormatError`` if it must not be published."""
    name, segment = entry.name, entry.path.rpartition("/")[2]
    if name != segment:
        raise invalid_entry(f"the name {name!r:.80} differs from the URI's last segment", "U3")
    if not is_name(name):
        raise invalid_entry(f"the name {name!r:.80} is not 1-64 of a-z, 0-9 and single hyphens", "F2")
    if None in entry.arguments.values():
        needed = ", ".join(entry.arguments)
        raise invalid_entry(f"it needs arguments ({needed:.200}), which a gateway cannot pass on", "P2")
    since = remote.seen_at if remote.state == "stale" else None
    return with_provenance(entry, remote.label, dialect=remote.dialect, stale_since=since)


def _away(label: str) -> UpstreamError:
    return UpstreamError(
        "upstream-away",
        f"the server behind {label!r} does not answer now",
        "try again later; what was read before still comes from the cache",
    )


def _notes(entries: Sequence[SkillEntry]) -> Iterator[Diagnostic]:
    """F3, F7: descriptions that break the format are served, and reported. Some dialects have none."""
    for entry in (each for each in entries if each.whole_frontmatter or each.description):
        for reference, message, hint in description_problems(entry.frontmatter):
            place = entry.name if entry.is_named else entry.uri
            yield Diagnostic(reference, message, hint, file=place, skill=place)
