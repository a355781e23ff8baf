"""Who is let through: the policy's globs and denials, and approvals of exactly this content (A1–A3, V7).

One object for each upstream. Decisions are made from memory, so that a request never waits for the store, and each
is remembered for as long as neither the entry nor any approval changed.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from skillwire.gateway.provenance import SNAPSHOT
from skillwire.gateway.recording import contents_name
from skillwire.skill.approval import agrees, covers
from skillwire.skill.diagnostics import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillwire.catalog.mapped import UriMap
    from skillwire.gateway.approval_view import Standing
    from skillwire.gateway.policy import GatewayPolicy
    from skillwire.host.approvals import Approvals
    from skillwire.skill import SkillEntry
    from skillwire.skill.approval import Approval

_MOST_DECIDED = 100_000
_SHOWN = 20


class Admission:
    """Decides about the skills of one upstream.

    A folder is the operator's own (``is_local``): its skills need no approval. ``seen_at`` says when the upstream
    was last listed: an approval that is newer than that is not outdated by what was listed before it.
    """

    def __init__(
        self,
        label: str,
        policy: GatewayPolicy,
        standing: Standing,
        approvals: Approvals,
        *,
        uri_map: Callable[[], UriMap],
        seen_at: Callable[[], float | None] = lambda: None,
        is_local: bool = False,
        is_public: bool = False,
        approve_options: str = "",
        public_options: str = "",
    ) -> None:
        self.label = label
        self.is_strict = policy.mode == "admit" and not is_local
        # Z5: approvals given through clients are kept apart. No label of a host has a '#', so its own skills never
        # have them; and those given on stdio, by the person who started the gateway, do not count over HTTP.
        self.client_origin = f"{label}#{'gateway' if is_public else 'stdio'}"
        self._policy = policy
        self._standing = standing
        self._approvals = approvals
        self._uri_map = uri_map
        self._seen_at = seen_at
        self._approve_options = approve_options
        self._public_options = public_options
        self._named = frozenset(each.path for each in policy.approved if each.upstream == label)
        self._decided: dict[str, tuple[SkillEntry, int, bool]] = {}

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` whenever an approval came or went."""
        if self.is_strict:
            self._standing.listen(listener)

    @property
    def generation(self) -> int:
        """Grows with every approval that comes, goes or changes."""
        return self._standing.generation

    def admits(self, entry: SkillEntry) -> bool:
        """Whether the skill is served as it is now."""
        known, generation = self._decided.get(entry.uri), self._standing.generation
        if known is not None and known[0] is entry and known[1] == generation:
            return known[2]
        if len(self._decided) >= _MOST_DECIDED:
            self._decided.clear()
        is_admitted = self._allows(entry) and (not self.is_strict or self._is_approved(entry))
        self._decided[entry.uri] = (entry, generation, is_admitted)
        return is_admitted

    async def admits_by_now(self, entry: SkillEntry) -> bool:
        """The same, after a look at the store if nobody was known to have said yes."""
        if self.admits(entry):
            return True
        if not self.is_waiting(entry):
            return False
        await self._standing.look()
        return self.admits(entry)

    def is_waiting(self, entry: SkillEntry) -> bool:
        """Whether nothing but a yes is missing."""
        return self.is_strict and self._allows(entry) and not self.admits(entry)

    def has_yes(self, entry: SkillEntry) -> bool:
        """Whether somebody said yes to some content of the skill, be it this or another."""
        return bool(self._approvals_of(entry)) or self.path_of(entry) in self._named

    def _approvals_of(self, entry: SkillEntry) -> list[Approval]:
        """The operator's approval, and that of a client; for whatever content."""
        found = (self._standing.approval(origin, entry.uri) for origin in (self.label, self.client_origin))
        return [approval for approval in found if approval is not None]

    async def revoke_outdated(
        self, entries: Iterable[SkillEntry], asked_at: Callable[[SkillEntry], float]
    ) -> None:
        """A2: an approval of a content that the upstream does not list any more is taken back, and logged.

        ``asked_at`` says when it told of an entry that it does not list like that.
        """
        listed_at = self._seen_at()
        if not self.is_strict or listed_at is None:
            return
        for entry, approval in [(each, known) for each in entries for known in self._approvals_of(each)]:
            if covers(approval, approval.origin, entry):
                continue
            if approval.at >= min(listed_at, asked_at(entry)):
                continue
            if agrees(approval.contents, entry):
                continue  # the listing says too little to tell; asked for, the skill may be the same
            if not entry.is_complete and self._policy.materializes(self.label, self.path_of(entry)):
                continue  # its snapshot is being taken, and may be the same
            await self._approvals.revoke(
                approval.origin, entry.uri, by="gateway", why="the content changed", only=approval
            )
            await self._standing.look()

    def waiting_problems(self, waiting: Sequence[SkillEntry], *, for_operator: bool = False) -> list[Diagnostic]:
        """What waits for a yes, and what to do about it. Only the operator is told where files are."""
        options = self._approve_options if for_operator else self._public_options
        problems = [self._waiting_problem(entry, options) for entry in waiting[:_SHOWN]]
        if len(waiting) > _SHOWN:
            message = f"{len(waiting) - _SHOWN} more skills of {self.label!r} wait for a yes"
            problems.append(Diagnostic("approval-missing", message, "approve the ones above first", file=""))
        return problems

    def path_of(self, entry: SkillEntry) -> str:
        """The skill's path below the upstream's label."""
        return self._uri_map().path(entry.uri)

    def missing(self, entry: SkillEntry) -> str:
        """What a skill that waits lacks; for anybody who may see it."""
        return f"{self.path_of(entry)!r:.300} of {self.label!r} waits for a person's yes"

    def how_to_approve(self, entry: SkillEntry) -> str:
        """What the operator does to approve the skill, for a client: it sees names of files, not their folders."""
        if self._is_bound_to_nothing(entry):
            return "it promises no digests, so an approval of it cannot be kept"
        return f"the operator of this gateway can approve it: {self._command(entry, self._public_options)}"

    def _is_bound_to_nothing(self, entry: SkillEntry) -> bool:
        """V7. Of what is only listed short, a yes may be kept: whoever is asked for it asks for all of it."""
        if contents_name(entry) != "dynamic":
            return False
        return not entry.is_short or self._policy.materializes(self.label, self.path_of(entry))

    def _command(self, entry: SkillEntry, options: str) -> str:
        """How to go on. Programs read this too: the review prints the command that approves what it shows (Z4)."""
        if self._is_bound_to_nothing(entry):
            if self._policy.materializes(self.label, self.path_of(entry)):
                return "it promises no digests, and there is no snapshot of it yet"
            return f"it promises no digests, so that no yes can be kept: [upstream.{self.label}] materialize = […]"
        if SNAPSHOT in entry.meta.meta:
            fingerprint = contents_name(entry)
            return f"say yes to this snapshot in the policy: [[approved]] with fingerprint = {fingerprint!r}"
        return f"skillwire review {shlex.quote(f'{self.label}:{entry.uri}')}{options}"

    def _waiting_problem(self, entry: SkillEntry, options: str) -> Diagnostic:
        path, hint = self.path_of(entry), self._command(entry, options)
        return Diagnostic("approval-missing", self.missing(entry), hint, file=path, skill=path)

    def _allows(self, entry: SkillEntry) -> bool:
        return self._policy.allows(self.label, self.path_of(entry))

    def _is_approved(self, entry: SkillEntry) -> bool:
        if not entry.is_complete or "digest" in entry.gaps:
            return False  # V7: there is nothing that a yes could be bound to
        if any(covers(approval, approval.origin, entry) for approval in self._approvals_of(entry)):
            return True
        return self._policy.is_approved(self.label, self.path_of(entry), contents_name(entry))
