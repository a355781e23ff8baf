"""The approval gate: which skills of an upstream are served (A1–A3, V1, V3, V7).

- In ``observe`` mode the gate serves every skill that the policy allows. In ``admit`` mode a skill also needs an
  approval. For any other skill the methods answer as if it did not exist; only ``problems`` reports that it waits.
- An approval is for one content (A1). It is in the store, where ``skillwire approve`` writes it too, or in the
  policy. When the content changes, the skill disappears and its approval is revoked (A2). The skill returns when
  the new content is approved. Bytes are compared with the approved entry, so a change during a read is not served.
- A skill without digests cannot be approved (V7). Some dialects list less than they promise. An approved skill
  with such a short entry is fetched in full, because an approval covers the whole skill. Only approved skills are
  fetched (V5), a few at a time, and listing does not wait for them.
- A nested skill needs its own approval (A3). Its files also belong to the skill around it and are served with that
  (E4).
"""

from __future__ import annotations

import logging
import shlex
import time
from math import inf
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Catalog,
    Change,
    ChangeFeed,
    ChangeStream,
    DirectoryChild,
    Page,
    SkillFile,
    no_directory,
    no_file,
    no_skill,
)
from skillwire.catalog.cursor import beginning_with, page_of, page_of_directory
from skillwire.errors import (
    FormatError,
    NotFoundError,
    ProtocolError,
    SkillwireError,
    StoreError,
    VerificationError,
)
from skillwire.gateway.approval_queue import content_name
from skillwire.gateway.federation import uri_map_of
from skillwire.host.approvals import is_outdated
from skillwire.skill.approval import covers
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.review import review_entry, with_text
from skillwire.skill.uri import SKILL_MD, SkillUri, parse_uri, root_of
from skillwire.skill.verify import verify_file, verify_skill_md
from skillwire.wire.meta import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillwire.client.remote import RemoteCatalog
    from skillwire.gateway.audit_log import AuditLog
    from skillwire.gateway.config import Plan
    from skillwire.host.approvals import Approvals
    from skillwire.skill import SkillEntry
    from skillwire.skill.approval import Approval
    from skillwire.skill.review import Review
    from skillwire.store.store import Store

_REFRESH_SECONDS = 1.0  # between two reads of the approvals
_MAX_DECISIONS = 100_000
_MAX_PROBLEMS = 20
_MAX_FETCHES = 8  # of full entries at the same time, so that reads of clients get their turn

log = logging.getLogger("skillwire.gateway")


class ApprovalView:
    """The approvals in ``store``, kept in memory, so that no request waits for the store.

    ``skillwire approve`` and ``skillwire approvals`` write to the same store from other processes, so a task reads
    it every second. Before a request is declined because an approval is missing, it is read at once.
    ``generation`` grows whenever an approval was added, changed or removed.
    """

    def __init__(self, store: Store) -> None:
        self.generation = 0
        self._store = store
        self._approvals: dict[tuple[str, str], Approval] = {}
        self._listeners: list[Callable[[], None]] = []

    def approval(self, origin: str, uri: str) -> Approval | None:
        """The approval of one skill, for any content."""
        return self._approvals.get((origin, uri))

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each change."""
        self._listeners.append(listener)

    async def refresh(self) -> None:
        """Read the store. If that fails, the last known approvals stay in force."""
        try:
            approvals = {(each.origin, each.uri): each for each in await self._store.approvals()}
        except StoreError as error:
            log.warning("approvals cannot be read, so the last known ones stay in force: %s", error.message)
            return
        if approvals != self._approvals:
            self._approvals = approvals
            self.generation += 1
            for listener in self._listeners:
                listener()

    async def run(self) -> None:
        """Refresh every second until cancelled."""
        while True:
            await self.refresh()
            await anyio.sleep(_REFRESH_SECONDS)


class Admission:
    """Decides which skills of one upstream are admitted.

    Decisions need no I/O. Each is remembered until the entry or any approval changes. ``remote`` is ``None`` for a
    folder, which needs no approval: it belongs to the operator.
    """

    def __init__(
        self,
        label: str,
        plan: Plan,
        view: ApprovalView,
        approvals: Approvals,
        remote: RemoteCatalog | None,
    ) -> None:
        self.label = label
        self.needs_approval = plan.policy.mode == "admit" and remote is not None
        # Z5: approvals given through clients are kept apart. A label of a host has no '#', so they never count for
        # the host. Those given on stdio, by the user who started the gateway, do not count over HTTP.
        self.client_origin = f"{label}#{'gateway' if plan.is_public else 'stdio'}"
        self._plan = plan
        self._policy = plan.policy
        self._view = view
        self._approvals = approvals
        self._remote = remote
        self._paths_in_policy = frozenset(each.path for each in plan.policy.approved if each.upstream == label)
        self._decisions: dict[str, tuple[SkillEntry, int, bool]] = {}

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` whenever an approval was added, changed or removed."""
        if self.needs_approval:
            self._view.listen(listener)

    @property
    def generation(self) -> int:
        """Grows whenever an approval was added, changed or removed."""
        return self._view.generation

    def admits(self, entry: SkillEntry) -> bool:
        """Whether the skill is served with this content."""
        known, generation = self._decisions.get(entry.uri), self._view.generation
        if known is not None and known[0] is entry and known[1] == generation:
            return known[2]
        if len(self._decisions) >= _MAX_DECISIONS:
            self._decisions.clear()
        is_admitted = self._allows(entry) and (not self.needs_approval or self._is_approved(entry))
        self._decisions[entry.uri] = (entry, generation, is_admitted)
        return is_admitted

    async def admits_now(self, entry: SkillEntry) -> bool:
        """The same, but a missing approval is looked up in the store first."""
        if self.admits(entry):
            return True
        if not self.is_waiting(entry):
            return False
        await self._view.refresh()
        return self.admits(entry)

    def is_waiting(self, entry: SkillEntry) -> bool:
        """Whether only an approval is missing."""
        return self.needs_approval and self._allows(entry) and not self.admits(entry)

    def needs_full_entry(self, entry: SkillEntry) -> bool:
        """Whether some content of the skill is approved, and the entry is too short to compare with it."""
        if not entry.is_short or not self.is_waiting(entry):
            return False
        return bool(self._approvals_of(entry)) or self.path_of(entry) in self._paths_in_policy

    async def revoke_outdated(
        self, entries: Iterable[SkillEntry], fetched_at: Callable[[SkillEntry], float]
    ) -> None:
        """A2: revoke approvals of content that the upstream no longer lists.

        ``fetched_at`` returns when a full entry was fetched that the upstream lists short.
        """
        listed_at = None if self._remote is None else self._remote.seen_at
        if not self.needs_approval or listed_at is None:
            return  # a listing cannot outdate an approval that is newer than it
        for entry, approval in [(each, known) for each in entries for known in self._approvals_of(each)]:
            if not is_outdated(approval, entry, min(listed_at, fetched_at(entry))):
                continue
            if not entry.is_complete and self._policy.materializes(self.label, self.path_of(entry)):
                continue  # its snapshot is not taken yet, and may be the approved one
            await self._approvals.revoke(
                approval.origin, entry.uri, by="gateway", why="the content changed", only=approval
            )
            await self._view.refresh()

    def path_of(self, entry: SkillEntry) -> str:
        """The skill's path below the upstream's label."""
        return uri_map_of(self.label, self._remote).path(entry.uri)

    def waiting_message(self, entry: SkillEntry) -> str:
        """The message that the skill waits for approval, for callers who may see the skill."""
        return f"{self.path_of(entry)!r:.300} of {self.label!r} waits for approval"

    def approval_hint(self, entry: SkillEntry) -> str:
        """How the operator approves the skill. For clients: with names of files, without their folders."""
        if self._cannot_be_approved(entry):
            return "it has no digests, so it cannot be approved"
        return f"the operator of this gateway can approve it: {self._command(entry, self._plan.public_options)}"

    def waiting_problems(self, waiting: Sequence[SkillEntry], *, for_operator: bool = False) -> list[Diagnostic]:
        """Skills that wait, and how to approve them. Only the operator sees the folders of files."""
        options = self._plan.approve_options if for_operator else self._plan.public_options
        problems: list[Diagnostic] = []
        for entry in waiting[:_MAX_PROBLEMS]:
            path, hint = self.path_of(entry), self._command(entry, options)
            message = self.waiting_message(entry)
            problems.append(Diagnostic("approval-missing", message, hint, file=path, skill=path))
        if len(waiting) > _MAX_PROBLEMS:
            message = f"{len(waiting) - _MAX_PROBLEMS} more skills of {self.label!r} wait for approval"
            problems.append(Diagnostic("approval-missing", message, "approve the ones above first", file=""))
        return problems

    def _command(self, entry: SkillEntry, options: str) -> str:
        """The next step. Programs read it too: the review prints the command that approves what it shows (Z4)."""
        if self._cannot_be_approved(entry):
            if self._policy.materializes(self.label, self.path_of(entry)):
                return "it has no digests, and its snapshot is not taken yet"
            return f"it has no digests, so it needs a snapshot: [upstream.{self.label}] materialize = […]"
        fingerprint = content_name(entry)
        if SNAPSHOT in entry.meta.meta or (self._plan.has_own_state and fingerprint != "dynamic"):
            return f"approve this content in the policy: [[approved]] with fingerprint = {fingerprint!r}"
        if self._plan.has_own_state:
            return "open the gateway with a state folder, so that another program can approve the skill"
        return f"skillwire approvals show {shlex.quote(f'{self.label}:{entry.uri}')}{options}"

    def _cannot_be_approved(self, entry: SkillEntry) -> bool:
        """V7. A short entry may be approved, because ``skillwire approvals show`` fetches the full one."""
        if content_name(entry) != "dynamic":
            return False
        return not entry.is_short or self._policy.materializes(self.label, self.path_of(entry))

    def _allows(self, entry: SkillEntry) -> bool:
        return self._policy.allows(self.label, self.path_of(entry))

    def _is_approved(self, entry: SkillEntry) -> bool:
        if not entry.is_complete or "digest" in entry.gaps:
            return False  # V7: an approval would be bound to nothing
        if any(covers(approval, approval.origin, entry) for approval in self._approvals_of(entry)):
            return True
        return self._policy.is_approved(self.label, self.path_of(entry), content_name(entry))

    def _approvals_of(self, entry: SkillEntry) -> list[Approval]:
        """The approvals of the operator and of clients, for any content."""
        found = (self._view.approval(origin, entry.uri) for origin in (self.label, self.client_origin))
        return [approval for approval in found if approval is not None]


class ApprovalGate(Catalog):
    """The skills of ``inner`` that ``admission`` admits. ``audit`` records which of them are served."""

    def __init__(self, inner: Catalog, admission: Admission, audit: AuditLog | None = None) -> None:
        self.inner = inner
        self.admission = admission
        self._audit = audit
        self._listing: dict[str, SkillEntry] = {}  # admitted and listed, by canonical URI
        self._keys: list[str] = []
        self._waiting: tuple[SkillEntry, ...] = ()
        self._short: tuple[SkillEntry, ...] = ()  # approved, but a full entry is needed
        self._is_outdated = True
        self._wake = anyio.Event()
        self._decided = anyio.Event()
        self._lock = anyio.Lock()
        self._feed = ChangeFeed()
        self._fetches = anyio.Semaphore(_MAX_FETCHES)
        self._full: dict[str, SkillEntry] = {}  # the fullest known entry of each skill that is listed short
        self._fetched_at: dict[str, tuple[SkillEntry, float]] = {}
        self._still_short: set[str] = set()  # URIs of skills whose full entry could not be fetched
        self._watch = inner.changes()
        self._watch.forward(lambda _: self._outdate())
        admission.listen(self._outdate)

    # The catalog

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the admitted skills."""
        await self._update(is_first_page=cursor is None)
        return page_of("skills", self._keys, self._listing.__getitem__, cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry, if it is admitted."""
        try:
            entry = await self.inner.get_skill(uri)
        except NotFoundError as error:
            raise no_skill(uri) from error
        if not await self.admission.admits_now(entry):
            raise no_skill(uri)
        self._record(entry)
        return entry

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry, if it is known and admitted."""
        entry = await self.inner.peek_skill(uri)
        return entry if entry is not None and self.admission.admits(entry) else None

    async def read_file(self, uri: str) -> SkillFile:
        """One file of an admitted skill, with the approved content."""
        entry, is_known = await self._around(parse_uri(uri).parent)
        if is_known and (entry is None or (entry.is_complete and entry.resource(uri) is None)):
            raise no_file(uri)
        try:
            file = await self.inner.read_file(uri)  # for an unknown skill its error states why
        except NotFoundError as error:
            raise no_file(uri) from error
        if entry is None:
            raise no_file(uri)
        if self.admission.needs_approval:
            try:
                verify_file(entry, uri, file.data)  # V1, A2: the skill may have changed during the read
            except VerificationError as error:
                self._outdate()
                raise no_file(uri) from error
        self._record(entry)
        return file._replace(meta=entry.meta.meta)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory of an admitted skill."""
        entry, is_known = await self._around(parse_uri(uri))
        if entry is None and (is_known or self.admission.needs_approval):
            raise no_directory(uri)
        if entry is None or not self.admission.needs_approval:
            try:
                return await self.inner.read_directory(uri, cursor, limit)
            except NotFoundError as error:
                raise no_directory(uri) from error
        return page_of_directory(entry, uri, cursor, limit)

    def changes(self) -> ChangeStream:
        """Changes of the admitted skills, while ``follow`` runs."""
        return self._feed.subscribe()

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of admitted skills that begin with ``beginning``."""
        await self._update()
        return beginning_with(sorted(root_of(key).path for key in self._keys), beginning, limit)

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """A test whether the source gives the same answers and the same skills are admitted.

        A caller that gets ``True`` serves its copy again, so the test records that too.
        """
        is_same = await self.inner.unchanged(uri)
        if is_same is None:
            return None
        if uri is None:
            await self._update()
            decided = self._decided
            return lambda: is_same() and self._decided is decided and not self._is_outdated
        entry, _ = await self._around(parse_uri(uri).parent)
        if entry is None:
            return None
        # With another approval, a nested skill may become the innermost one.
        generation = self.admission.generation
        return lambda: is_same() and self.admission.generation == generation and self._record(entry)

    async def problems(self, *, for_operator: bool = False) -> Sequence[Diagnostic]:
        """Problems of the source, and skills that wait. For the operator, commands have the folders of files."""
        await self._update()
        # The state of the upstream reports a partial listing (``federation.py``).
        own = [problem for problem in await self.inner.problems() if problem.reference != "listing-partial"]
        return [*own, *self.admission.waiting_problems(self._waiting, for_operator=for_operator)]

    async def ignored(self) -> Sequence[str]:
        """Paths that are not served because of their names."""
        return await self.inner.ignored()

    async def follow(self) -> None:
        """Keep the source and the decisions current until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.inner.follow)
            group.start_soon(self._fetch_short)
            while True:
                await self._update()
                await self._wake.wait()

    # For questions about waiting skills

    async def waiting(self) -> Sequence[SkillEntry]:
        """Skills that the policy allows and that wait for approval."""
        await self._update()
        return self._waiting

    async def waiting_around(self, uri: str) -> SkillEntry | None:
        """The innermost skill at or around ``uri``, if only an approval is missing."""
        entry = await self.inner.skill_around(parse_uri(uri))
        if entry is None or not self.admission.is_waiting(entry) or await self.admission.admits_now(entry):
            return None
        return entry

    async def review(self, entry: SkillEntry) -> tuple[Review, str]:
        """The review and the text of a ``SKILL.md``, for a user who wants to read it before approving (B6)."""
        data = (await self.inner.read_file(entry.uri)).data
        text = verify_skill_md(entry, data).text
        return await to_thread.run_sync(with_text, review_entry(entry), SKILL_MD, text), text

    def decided(self) -> anyio.Event:
        """An event that is set after the next decision about all listed skills."""
        return self._decided

    # Decisions

    def _outdate(self) -> None:
        self._is_outdated = True
        self._wake.set()

    async def _update(self, *, is_first_page: bool = True) -> None:
        """Decide about all listed skills again, if anything changed."""
        if is_first_page:
            await self.inner.list_skills(None, 1)  # waits for a first listing that is under way
        while self._is_outdated:
            async with self._lock:
                if not self._is_outdated:
                    return
                self._is_outdated, self._wake = False, anyio.Event()
                await self._decide([entry async for entry in self.inner.entries()])

    async def _decide(self, listed: Sequence[SkillEntry]) -> None:
        admission, entries = self.admission, listed
        if admission.needs_approval:
            short = [entry for entry in listed if entry.is_short]
            self._full = {entry.uri: await self.inner.peek_skill(entry.uri) or entry for entry in short}
            entries = [self._full.get(entry.uri, entry) for entry in listed]
        admitted = {str(parse_uri(entry.uri)): entry for entry in entries if admission.admits(entry)}
        waiting = [entry for entry in entries if admission.is_waiting(entry)]
        self._short = tuple(entry for entry in waiting if admission.needs_full_entry(entry))
        self._waiting = tuple(
            entry for entry in waiting if not admission.needs_full_entry(entry) or entry.uri in self._still_short
        )
        before, self._listing, self._keys = self._listing, admitted, sorted(admitted)
        self._feed.publish(_difference(before, admitted))
        self._decided.set()
        self._decided = anyio.Event()
        try:
            await admission.revoke_outdated(entries, self._when_fetched)
        except StoreError as error:
            log.warning("an approval of outdated content could not be revoked: %s", error.message)

    async def _around(self, place: SkillUri) -> tuple[SkillEntry | None, bool]:
        """The innermost admitted skill at or around ``place``, and whether any skill is known there."""
        innermost = await self.inner.skill_around(place)
        if innermost is None:
            await self.inner.list_skills(limit=1)  # waits for the first listing of an upstream that just started
            innermost = await self.inner.skill_around(place)
        entry = innermost
        while entry is not None:
            admitted = await self._admitted(entry)
            if admitted is not None:
                return admitted, True
            entry = await self.inner.skill_around(entry.root.parent)
        return None, innermost is not None

    async def _admitted(self, entry: SkillEntry) -> SkillEntry | None:
        """The entry if it is admitted; fetched in full if that is needed to decide."""
        if await self.admission.admits_now(entry):
            return entry
        if not self.admission.needs_full_entry(entry):
            return None
        try:
            full = await self.inner.get_skill(entry.uri)
        except (NotFoundError, ProtocolError, VerificationError, FormatError):  # missing or invalid
            return None
        return full if self.admission.admits(full) else None

    def _record(self, entry: SkillEntry) -> bool:
        if self._audit is not None:
            self._audit.record(self.admission.label, entry)
        return True

    # Full entries of skills that are listed short

    async def _fetch_short(self) -> None:
        """After each decision, fetch the full entries that it needs."""
        while self.admission.needs_approval:
            decided = self._decided
            short = [entry for entry in self._short if self.admission.needs_full_entry(entry)]
            self._still_short &= {entry.uri for entry in short}
            async with anyio.create_task_group() as group:
                for entry in short:
                    group.start_soon(self._fetch_full, entry)
            await decided.wait()

    async def _fetch_full(self, entry: SkillEntry) -> None:
        try:
            async with self._fetches:
                at = time.time()
                full = await self.inner.get_skill(entry.uri)
            self._fetched_at[entry.uri] = full, at
            is_full = full.is_complete
        except SkillwireError as error:
            log.info("no full entry for %r of %r: %s", entry.uri[:300], self.admission.label, error.message)
            is_full = False
        if is_full or entry.uri not in self._still_short:
            self._outdate()
        if not is_full:
            self._still_short.add(entry.uri)

    def _when_fetched(self, entry: SkillEntry) -> float:
        """When a full entry was fetched; infinity for a listed entry, 0 if another caller fetched it."""
        if self._full.get(entry.uri) is not entry:
            return inf
        fetched, at = self._fetched_at.get(entry.uri, (None, 0.0))
        return at if fetched is entry else 0.0


def _difference(before: Mapping[str, SkillEntry], now: Mapping[str, SkillEntry]) -> Change:
    return Change(
        frozenset(now[key].uri for key in now.keys() - before.keys()),
        frozenset(now[key].uri for key in now.keys() & before.keys() if now[key] != before[key]),
        frozenset(before[key].uri for key in before.keys() - now.keys()),
    )
