"""All upstreams as one catalog, each below its label (N1, O1, O3).

The label is the first segment of every URI, and it alone selects the upstream: a read never crosses origins. The
rest of the URI is mapped to that of the upstream (``catalog/uri_map.py``). An upstream also gets requests for
skills that it does not list, and reports the reason itself if it cannot answer (G1).

What clients may see of an upstream is decided here too:

- ``prepare_entry`` adds the provenance of an entry: ``_meta`` with our own prefix (R4, O2). It is sent with the
  resources of a skill, with the result of ``skills/get`` and with file contents, but never in an entry: a client
  that refuses an entry because of an additional field refuses the whole page (docs/how-to/gateway.md). It contains
  no secrets, and no address of an upstream. An entry whose name breaks the format is not published (F2, U3, P2).
- Error messages of an upstream may contain addresses or the output of a process. They go to the operator's log and
  terminal. Clients and the page see the error's reference only (``safe_error``).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio

from skillwire.amounts import utc_text
from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Catalog,
    Change,
    ChangeStream,
    DirectoryChild,
    Page,
    RelayStream,
    SkillFile,
    no_directory,
    no_file,
    no_skill,
)
from skillwire.catalog.cursor import beginning_with, page_of_sources
from skillwire.catalog.uri_map import UriMap
from skillwire.errors import (
    FormatError,
    LimitError,
    NotFoundError,
    ProtocolError,
    SkillwireError,
    UpstreamError,
    VerificationError,
)
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.entry import invalid_entry
from skillwire.skill.frontmatter import description_problems, is_name
from skillwire.skill.uri import DEFAULT_SCHEME, NAMED_SCHEME, parse_uri
from skillwire.skill.version_status import version_status, with_version_status
from skillwire.wire.meta import DIALECT, NOT_PROMISED, ORIGIN, STALE_SINCE, UPSTREAM_URI

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from skillwire.client.remote import RemoteCatalog
    from skillwire.gateway.approval_gate import ApprovalGate
    from skillwire.skill import Json, SkillEntry

T = TypeVar("T")

_MAX_MAPPED = 100_000  # entries
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


@dataclass(frozen=True, slots=True)
class Upstream:
    """One upstream. ``gate`` serves the admitted skills, under the URIs of the upstream.

    ``address`` is for the operator only: clients must not learn it (R4).
    """

    label: str
    remote: RemoteCatalog | None  # None for a folder
    gate: ApprovalGate
    address: str = ""

    def uri_map(self) -> UriMap:
        """The map of the upstream's URIs to those of the gateway."""
        return uri_map_of(self.label, self.remote)


class FederatedCatalog(Catalog):
    """Upstreams by label. It has no templates: to complete one, input of a client would go to an upstream."""

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = dict(upstreams)
        self._mapped: dict[tuple[str, str], tuple[SkillEntry, UriMap, SkillEntry]] = {}  # by label and inner URI
        self._paths: list[str] | None = None  # of listed skills, sorted; None after skills were added or removed
        self._watch = self.changes()
        self._watch.forward(self._forget_paths)

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page: upstreams in order, each in its own order."""

        async def list_outer(upstream: Upstream, cursor: str | None, limit: int) -> Page[SkillEntry]:
            page = await upstream.gate.list_skills(cursor, limit)
            return Page([self._outer(upstream, entry) for entry in page.items], page.next_cursor)

        sources = {label: partial(list_outer, upstream) for label, upstream in self._upstreams.items()}
        return await page_of_sources("federated", sources, cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry; an invalid one does not exist for clients."""
        upstream, inner = self._find(uri, no_skill)
        try:
            return self._outer(upstream, await _answer(upstream, uri, upstream.gate.get_skill(inner)))
        except (NotFoundError, ProtocolError, VerificationError, FormatError) as error:
            raise no_skill(uri) from error

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry, if it is known."""
        found = self._known(uri)
        entry = None if found is None else await found[0].gate.peek_skill(found[1])
        return None if found is None or entry is None else self._outer(found[0], entry)

    async def read_file(self, uri: str) -> SkillFile:
        """One file (O3)."""
        upstream, inner = self._find(uri, no_file)
        try:
            file = await _answer(upstream, uri, upstream.gate.read_file(inner))
        except NotFoundError as error:
            raise no_file(uri) from error
        return file._replace(uri=str(parse_uri(uri)))

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory."""
        upstream, inner = self._find(uri, no_directory)
        try:
            page = await _answer(upstream, uri, upstream.gate.read_directory(inner, cursor, limit))
        except NotFoundError as error:
            raise no_directory(uri) from error
        outer = upstream.uri_map().outer
        return Page([child._replace(uri=outer(child.uri)) for child in page.items], page.next_cursor)

    def changes(self) -> ChangeStream:
        """A stream of the changes of all upstreams."""
        return RelayStream(
            (each.gate.changes(), lambda change, each=each: change.translate(partial(map, each.uri_map().outer)))
            for each in self._upstreams.values()
        )

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``."""
        if self._paths is None:
            self._paths = sorted([entry.path async for entry in self.entries()])
        return beginning_with(self._paths, beginning, limit)

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """A test whether the upstream of ``uri`` still gives the same answers; all upstreams without a URI."""
        if uri is None:
            each = [(upstream, await upstream.gate.unchanged()) for upstream in self._upstreams.values()]
        else:
            try:
                found = self._known(uri)
            except FormatError:
                return None
            each = [] if found is None else [(found[0], await found[0].gate.unchanged(found[1]))]
        tests = [(test, upstream, upstream.uri_map()) for upstream, test in each if test is not None]
        if len(tests) < len(each) or (uri is not None and not each):
            return None
        return lambda: all(test() and upstream.uri_map() == uri_map for test, upstream, uri_map in tests)

    async def problems(self) -> list[Diagnostic]:
        """Problems of every upstream."""
        return [
            problem.under(label)
            for label, upstream in self._upstreams.items()
            for problem in await _problems_of(upstream)
        ]

    async def ignored(self) -> list[str]:
        """Paths that are not served because of their names."""
        return [f"{label}/{path}" for label, each in self._upstreams.items() for path in await each.gate.ignored()]

    async def follow(self) -> None:
        """Keep every upstream current until cancelled."""
        async with anyio.create_task_group() as group:
            for upstream in self._upstreams.values():
                group.start_soon(upstream.gate.follow)

    def _known(self, uri: str) -> tuple[Upstream, str] | None:
        """The upstream of ``uri``, and the URI there; ``None`` if there is no such upstream."""
        place = parse_uri(uri)
        upstream = self._upstreams.get(place.segments[0]) if place.scheme == DEFAULT_SCHEME else None
        inner = None if upstream is None else upstream.uri_map().inner(uri)
        return None if upstream is None or inner is None else (upstream, inner)

    def _find(self, uri: str, missing: Callable[[str], NotFoundError]) -> tuple[Upstream, str]:
        found = self._known(uri)
        if found is None:
            raise missing(uri)
        return found

    def _outer(self, upstream: Upstream, entry: SkillEntry) -> SkillEntry:
        """The mapped entry. The same object for the same entry: caches further out compare identities."""
        uri_map, key = upstream.uri_map(), (upstream.label, entry.uri)
        known = self._mapped.get(key)
        if known is not None and known[0] is entry and known[1] == uri_map:
            return known[2]
        if len(self._mapped) >= _MAX_MAPPED:
            self._mapped.clear()
        mapped = uri_map.entry(entry)
        self._mapped[key] = entry, uri_map, mapped
        return mapped

    def _forget_paths(self, change: Change) -> None:
        if change.added or change.removed:
            self._paths = None


async def _answer(upstream: Upstream, uri: str, asked: Awaitable[T]) -> T:
    """The answer of an upstream. An error that may contain text of the upstream is replaced."""
    try:
        return await asked
    except (NotFoundError, VerificationError, FormatError):
        raise
    except SkillwireError as error:
        safe = safe_error(error, upstream.label, uri)
        if safe is error:
            raise
        raise safe from error


def uri_map_of(label: str, remote: RemoteCatalog | None) -> UriMap:
    """The map for the upstream ``label``. It may change with the listing.

    An upstream that knows its skills by name only has no URIs: the scheme that stands for them is not shown.
    """
    is_named = remote is not None and remote.schemes == frozenset({NAMED_SCHEME})
    return UriMap(label, NAMED_SCHEME if is_named else DEFAULT_SCHEME)


def prepare_entry(entry: SkillEntry, remote: RemoteCatalog) -> SkillEntry:
    """``entry`` with its provenance; ``FormatError`` if it must not be published."""
    name, segment = entry.name, entry.folder_name
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
    entry = replace(entry, meta=replace(entry.meta, meta=meta))
    status = version_status(entry)
    # The gateway serves what is approved there, which exact versions are not. Paths begin with the label here.
    instead = f"{remote.label}/{status.instead}" if status.instead else ""
    return with_version_status(entry, status._replace(uri="", instead=instead))


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


async def _problems_of(upstream: Upstream) -> list[Diagnostic]:
    """The state of an upstream, entries that are not published, and invalid descriptions."""
    problems, remote = await upstream.gate.problems(), upstream.remote
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
