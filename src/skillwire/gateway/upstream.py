"""One server behind a label, as a catalog: its listing in memory, its bytes verified, its failures kept apart.

- Questions are answered from the last listing and never wait for the upstream while there is one. A listing is
  remembered in the store, so that a gateway that starts while the upstream is away still knows it; then it is
  marked stale. An upstream that never listed anything and is away is not empty: it is a problem, and a question
  about it is an error that says which one it is (L2).
- Bytes come from the cache if they are there and still hash to what the entry says (C1), else from the upstream,
  verified (V1, V2, V4); everybody who waits for the same file shares one fetch. A mismatch ends in a fresh entry
  (V3, R2). What the upstream does not promise cannot be verified, is not kept, and stays ``"dynamic"`` (V7).
- A file that the held entry does not list is not asked for (V2); directories are what entries list (W3).
- Its URIs are the upstream's own; ``addressed.py`` makes them ours.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, cast

import anyio

from skillwire.catalog.changes import ChangeFeed, ChangeStream
from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, Catalog, DirectoryChild, Page, SkillFile
from skillwire.catalog.cursor import DirectoryPages, page_of
from skillwire.catalog.manifest import children_in
from skillwire.catalog.snapshot import beginning_with, no_directory, no_file, no_skill
from skillwire.client.dialects.contract import problem_of
from skillwire.client.relocation import Relocation, relabelled
from skillwire.client.single_flight import SingleFlight
from skillwire.errors import FormatError, LimitError, NotFoundError, ProtocolError, StoreError, VerificationError
from skillwire.gateway.addresses import Addresses, addresses_for
from skillwire.gateway.holding import Holding, root_of
from skillwire.gateway.provenance import with_provenance
from skillwire.gateway.reading import UpstreamReads
from skillwire.gateway.states import state_problem
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.frontmatter import description_problems, is_name
from skillwire.skill.received import invalid_entry
from skillwire.skill.uri import SKILL_MD, SkillUri, parse_uri
from skillwire.store.contract import SeenEntries
from skillwire.store.write_behind import WriteBehind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillwire.catalog.changes import Change
    from skillwire.errors import SkillwireError
    from skillwire.gateway.link import Listed, UpstreamLink
    from skillwire.host.origins import OriginState
    from skillwire.skill import SkillEntry
    from skillwire.store.content_cache import ContentCache
    from skillwire.store.contract import Store

PATIENCE_SECONDS = 10.0
_REMEMBER_SECONDS = 600.0  # how often a listing that did not change is remembered anew
_WRITING_SECONDS = 5.0
_MOST_UNKNOWN, _UNKNOWN_SECONDS = 1024, 10.0
_MOST_REFUSED, _MOST_NOTED = 100, 1000

log = logging.getLogger("skillwire.gateway")


class UpstreamCatalog(Catalog):
    """The skills of the server that ``link`` leads to. ``follow`` connects to it and keeps the listing current."""

    def __init__(
        self,
        link: UpstreamLink,
        store: Store,
        cache: ContentCache,
        *,
        limits: Limits = DEFAULT_LIMITS,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.label = link.label
        self.state: OriginState = "connecting"
        self.error: SkillwireError | None = None
        self.seen_at: float | None = None
        self.dialect: str | None = None
        self.addresses = Addresses()
        self._link = link
        self._store = store
        self._patience = patience
        self._holding = Holding()
        self._is_whole = False  # whether what is held is all that the upstream listed
        self._problems: tuple[Diagnostic, ...] = ()
        self._refused: dict[str, Diagnostic] = {}  # entries that were asked for and break a rule, by URI
        self._feed = ChangeFeed()
        self._directories = DirectoryPages()
        self._flights = SingleFlight()
        self._turned = anyio.Event()
        self._listing = anyio.Lock()
        self._settled = anyio.Event()  # the first attempt to list ended, somehow
        self._remembered_at = 0.0
        self._relocation = Relocation()
        self._keeper = keeper = WriteBehind(link.label, cache)
        self._reads = UpstreamReads(link, keeper, self._flights, limits, self._hold, self._drop, self._relocation)
        self._unknown: OrderedDict[SkillUri, float] = OrderedDict()  # asked for in vain, and when

    async def follow(self) -> None:
        """Keep the upstream connected and its listing current, until cancelled."""
        await self._recall()
        async with anyio.create_task_group() as group:
            group.start_soon(self._keeper.run)
            with self._flights.running():
                await self._link.run(self.refresh, self._lost)

    async def settle(self, seconds: float) -> None:
        """Wait until the upstream was listed or could not be, at most so long."""
        with anyio.move_on_after(seconds):
            await self._settled.wait()

    async def turn(self) -> OriginState:
        """Wait until the upstream's state is another."""
        await self._turned.wait()
        return self.state

    async def refresh(self) -> None:
        """List again, now. One at a time: an answer that is overtaken would bring back what is gone."""
        async with self._listing:
            await self._listed(await self._link.list())

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the last listing."""
        await self._ready()
        return page_of("skills", self._holding.keys, self._holding.listed, cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry that is held; the upstream is asked about one that it does not list, or not in full (G1)."""
        place = parse_uri(uri)
        await self._ready()
        if place.segments[-1] != SKILL_MD or len(place.segments) < 2:
            raise no_skill(uri)
        held = self._holding.at(place.parent)
        if held is not None and not self._holding.is_short(held):
            return held
        try:
            return await self._flights.share(("get", place), partial(self._get, place, held))
        except (NotFoundError, ProtocolError, VerificationError, FormatError) as error:
            raise no_skill(uri) from error

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """The entry that is held, without asking."""
        place = parse_uri(uri)
        return self._holding.at(place.parent) if place.segments[-1] == SKILL_MD else None

    async def read_file(self, uri: str) -> SkillFile:
        """The bytes that the held entry describes, from the cache or from the upstream."""
        place = parse_uri(uri)
        entry = await self._around(place.parent)
        if entry is None:
            raise no_file(uri)
        return SkillFile(str(place), await self._reads.read(entry, uri))

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory, as the entry's files show it; what they do not show is asked for.

        That is every directory of a skill without a list of files, and else one that holds no files (D1).
        """
        place = parse_uri(uri)
        entry = await self._around(place)
        if entry is None:
            raise no_directory(uri)
        known = children_in(entry, place)

        async def read() -> dict[str, DirectoryChild]:
            try:
                asked = await self._flights.share(
                    ("directory", place), lambda: self._link.ask(lambda client: client.read_directory(uri))
                )
            except (NotFoundError, ProtocolError) as error:
                if not known:
                    raise no_directory(uri) from error
                return known
            # W3: a directory read adds no file to a complete list
            return {child.name: child for child in asked if child.is_directory or not entry.is_complete}

        if known and entry.is_complete:
            return page_of(f"directory {place.path}", sorted(known), known.__getitem__, cursor, limit)
        return await self._directories.page(place, read, cursor, limit)

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of listed skills that begin with ``beginning``."""
        return beginning_with(sorted(root_of(key).path for key in self._holding.keys), beginning, limit)

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """Whether what is held is, or the skill in it that ``uri`` belongs to."""
        try:
            place = None if uri is None else parse_uri(uri)
        except FormatError:
            return None
        return None if self.state == "connecting" else self._holding.unchanged(place)

    def changes(self) -> ChangeStream:
        """What changes from now on."""
        return self._feed.subscribe()

    async def problems(self) -> list[Diagnostic]:
        """What the upstream lists and cannot be used; and how the upstream itself is."""
        own = state_problem(self.label, self.state, self.error, self.seen_at)
        return [*own, *self._problems, *self._refused.values()]

    # What the link tells

    async def _listed(self, listed: Listed) -> None:
        """A listing that ended early takes the place of another only if a bound of ours ended both."""
        entries, refused = _publishable(listed.entries)
        listed = replace(listed, entries=entries, problems=(*listed.problems, *refused))
        self.dialect, self.error = listed.dialect, listed.error
        self._problems = (*listed.problems, *islice(_noted(entries), _MOST_NOTED))
        self._refused.clear()
        is_cut = isinstance(listed.error, LimitError) and not self._is_whole
        if listed.error is not None and self._holding and not is_cut:
            self._lost(listed.error)
            return
        self._is_whole = listed.error is None
        self.seen_at = time.time()
        was_stale = self.state == "stale"
        self._turn("partial" if listed.error is not None or listed.problems else "complete")
        change = self._replace(listed.entries)
        if was_stale:
            self._restate()
        self._settled.set()
        if change or self.seen_at - self._remembered_at > _REMEMBER_SECONDS:
            await self._remember(listed)

    def _lost(self, error: SkillwireError) -> None:
        self.error = error
        if self._turn("stale" if self._holding else "unreachable"):
            self._restate()
        self._settled.set()

    def _restate(self) -> None:
        """Say of every skill, also in listings, how its upstream is now."""
        self._feed.publish(self._holding.restate(lambda entry: self._told([entry])[0]))

    def _turn(self, state: OriginState) -> bool:
        if state == self.state:
            return False
        self.state = state
        self._turned.set()
        self._turned = anyio.Event()
        return True

    def _replace(self, entries: Sequence[SkillEntry]) -> Change:
        change = self._holding.replace(self._told(entries))
        self.addresses = addresses_for(parse_uri(key).scheme for key in self._holding.keys)
        self._unknown.clear()
        self._feed.publish(change)
        return change

    def _told(self, entries: Sequence[SkillEntry] | Holding) -> list[SkillEntry]:
        since = self.seen_at if self.state == "stale" else None
        return [
            with_provenance(relabelled(entry), self.label, dialect=self.dialect, stale_since=since)
            for entry in entries
        ]

    async def _recall(self) -> None:
        """What was listed in an earlier run."""
        try:
            seen = await self._store.entries(self.label)
        except StoreError as error:
            log.warning("what %r listed last is not known: %s", self.label, error.message)
            return
        if seen is not None and self.state == "connecting":
            self._turn("stale")
            self.seen_at = self._remembered_at = seen.at
            bound = self._link.max_skills  # the policy may be another by now
            self._is_whole = seen.is_complete and (bound is None or len(seen.entries) <= bound)
            self._replace(_publishable(seen.entries[:bound])[0])

    async def _remember(self, listed: Listed) -> None:
        at = self._remembered_at = cast("float", self.seen_at)
        seen = SeenEntries(listed.entries, at, is_complete=listed.error is None)
        try:
            with anyio.move_on_after(_WRITING_SECONDS, shield=True):  # also if we are told to stop just now
                await self._store.put_entries(self.label, seen)
        except StoreError as error:
            log.warning("what %r lists is not remembered: %s", self.label, error.message)

    async def _ready(self) -> None:
        """Wait for the first listing, if there is none yet and somebody is getting it; nobody waits for long."""
        if self.state == "connecting":
            begun = time.monotonic()
            await self.settle(self._patience)
            self._patience = max(0.0, self._patience - (time.monotonic() - begun))

    # What the upstream is asked

    async def _around(self, place: SkillUri) -> SkillEntry | None:
        """The innermost skill around a file, with all that its upstream promises."""
        await self._ready()
        entry = self._holding.around(place)
        if entry is None and not self._holding and self.state in ("unreachable", "connecting"):
            raise self._link.away()
        if entry is not None and self._holding.is_short(entry):
            return await self.get_skill(entry.uri)
        return entry

    async def _get(self, place: SkillUri, held: SkillEntry | None) -> SkillEntry:
        now = time.monotonic()
        if held is None and now - self._unknown.get(place, -_UNKNOWN_SECONDS) < _UNKNOWN_SECONDS:
            raise no_skill(str(place))
        uri = str(place) if held is None else held.uri
        try:
            entry = await self._link.ask(lambda client: client.get_skill(uri))
        except NotFoundError:
            self._unknown[place] = now
            while len(self._unknown) > _MOST_UNKNOWN:
                self._unknown.popitem(last=False)
            raise
        except (FormatError, ProtocolError) as error:
            if isinstance(error, FormatError) or error.reference == "entry-other":
                self._refuse(error, uri)
            raise
        moved = self._relocation.moved(entry)
        broken = _broken_rule(moved)
        if broken is not None:
            self._refuse(broken, uri)
            raise broken
        return self._hold(moved)

    def _refuse(self, error: SkillwireError, uri: str) -> None:
        """Report an entry that breaks a rule: it is not served, and its upstream is not away."""
        if len(self._refused) < _MOST_REFUSED:
            self._refused[uri] = problem_of(error, uri)

    def _hold(self, entry: SkillEntry) -> SkillEntry:
        [told] = self._told([entry])
        self._feed.publish(self._holding.put(told))
        return told

    def _drop(self, entry: SkillEntry) -> None:
        self._feed.publish(self._holding.drop(root_of(entry.uri)))


def _publishable(entries: Sequence[SkillEntry]) -> tuple[tuple[SkillEntry, ...], list[Diagnostic]]:
    """The entries that a gateway may serve, and what is wrong with the others."""
    served: list[SkillEntry] = []
    problems: list[Diagnostic] = []
    for entry in entries:
        broken = _broken_rule(entry)
        if broken is None:
            served.append(entry)
        else:
            problems.append(problem_of(broken, entry.name if entry.is_named else entry.uri))
    return tuple(served), problems


def _noted(entries: Sequence[SkillEntry]) -> Iterator[Diagnostic]:
    """F3, F7: descriptions that break the format are served, and reported. Some dialects have none."""
    for entry in (each for each in entries if each.whole_frontmatter or each.description):
        for reference, message, hint in description_problems(entry.frontmatter):
            place = entry.name if entry.is_named else entry.uri
            yield Diagnostic(reference, message, hint, file=place, skill=place)


def _broken_rule(entry: SkillEntry) -> FormatError | None:
    """What forbids to publish an entry, whatever dialect its upstream speaks (F2, U3, P2)."""
    name, segment = relabelled(entry).name, root_of(entry.uri).segments[-1]
    if name != segment:
        return invalid_entry(f"the name {name!r:.80} differs from the URI's last segment", "U3")
    if not is_name(name):
        return invalid_entry(f"the name {name!r:.80} is not 1-64 of a-z, 0-9 and single hyphens", "F2")
    if None in entry.arguments.values():
        needed = ", ".join(entry.arguments)
        return invalid_entry(f"it needs arguments ({needed:.200}), which a gateway cannot pass on", "P2")
    return None
