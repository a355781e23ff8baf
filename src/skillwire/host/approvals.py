"""Who says yes: a policy decides by rule, or a person is asked (A1–A5, V7, O3).

A request carries what there is to know, and asking is a function of yours: a terminal, a web page, MCP
elicitation, a test. An answer may be remembered only where content can be bound (A1); a dynamic skill is asked
about each time (V7).
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from skillwire.errors import ApprovalError
from skillwire.skill.approval import (
    Approval,
    ContentChange,
    change_since,
    claimed_contents,
    contents_of,
    covers,
    fingerprint,
    has_contents,
)
from skillwire.store.contract import LogLine, newest_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.skill import SkillEntry
    from skillwire.skill.review import Review
    from skillwire.store.contract import Store

RequestKind: TypeAlias = Literal["load", "dynamic", "execute", "tool", "cross-origin"]
_LONGEST_NOTE = 1000
ASKED_TO = "asked to"
"""Why an approval was revoked, if a person wanted it so."""
Decision: TypeAlias = Literal["allow", "deny", "ask"]


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What a person is asked. ``kind`` says to what they would say yes.

    It is made from the entry alone: ``summary`` is what the entry tells, and ``change`` which files differ if
    another content of the skill was approved before. Nothing is read for it. ``await request.review()`` reads the
    skill, when the person wants to see it (V5). ``target`` is what the request is about beside the skill: the
    tool, or the other origin and URI. ``lasts`` tells whether a yes to a tool is stored for this content from now
    on, or ends when the model leaves the skill.
    """

    kind: RequestKind
    origin: str
    entry: SkillEntry
    summary: Review
    change: ContentChange | None = None
    diff: tuple[str, ...] = ()
    target: str = ""
    lasts: bool = True
    text: str | None = None
    reader: Reader | None = field(default=None, repr=False, compare=False)

    @property
    def is_unread(self) -> bool:
        """Whether the files are not known before the skill is loaded. A yes binds what is loaded then (A1, V5)."""
        return self.kind == "load" and not has_contents(self.entry) and not self.entry.is_dynamic

    async def review(self) -> ApprovalRequest:
        """Read the files of the skill, and return the request with what they say.

        ``entry`` has all its files, ``text`` is the ``SKILL.md``, ``summary.hidden`` has what people do not see in
        any text file (B6), and ``diff`` is how the ``SKILL.md`` differs from the one that was approved. The bytes
        are verified, and not kept before the person approves them. An error means that the skill cannot be read,
        or is not what its entry says: let it pass, and the skill is refused.
        """
        if self.reader is None:
            raise ApprovalError(
                "review-elsewhere",
                f"{self.entry.uri!r:.300} from {self.origin!r} cannot be read here",
                f"run: {review_command(self.origin, self.entry)}",
                rule="V5",
            )
        return await self.reader(self)


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer. ``grants`` are tools that the skill asks for, or ``"execute"``: each its own decision.

    ``note`` is theirs, for the log, and so is ``user``: who they are to the operating system, where that is known
    (Z4). ``recorded`` says that the store has the answer already, as an approval or a
    denial of exactly the request's content: it is not written again, and counts for as long as it stands there.
    """

    yes: bool
    by: str = "user"
    remember: bool = True
    grants: frozenset[str] = frozenset()
    note: str = ""
    recorded: bool = False
    user: str = ""


Ask: TypeAlias = Callable[[ApprovalRequest], Awaitable[Answer]]
Reader: TypeAlias = Callable[[ApprovalRequest], Awaitable[ApprovalRequest]]


@dataclass(frozen=True, slots=True)
class Rule:
    """Skills whose origin and path match (``*`` is any text) are allowed, denied or asked about."""

    decision: Decision
    origin: str = "*"
    path: str = "*"
    kind: RequestKind = "load"

    def matches(self, request: ApprovalRequest) -> bool:
        """Whether the rule is about this request."""
        return (
            self.kind == request.kind
            and fnmatchcase(request.origin, self.origin)
            and fnmatchcase(request.entry.path, self.path)
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """The first rule that matches decides. Else a person is asked, except about what is declined by default:

    dynamic skills (V7) and reads across origins (O3) need a rule that says ``ask`` or ``allow`` for that kind. A
    rule that says ``deny`` is stronger than an approval that was given before it was made. Where it is not known
    before the load whether a skill can be verified, a rule that allows dynamic ones allows it.
    """

    rules: Sequence[Rule] = ()
    defaults: dict[RequestKind, Decision] = field(
        default_factory=lambda: {
            "load": "ask",
            "dynamic": "deny",
            "execute": "ask",
            "tool": "ask",
            "cross-origin": "deny",
        }
    )

    def decide(self, request: ApprovalRequest) -> Decision:
        """What is to be done about ``request``."""
        rule = self.rule_for(request)
        if rule is None and request.is_unread:
            as_dynamic = self.rule_for(replace(request, kind="dynamic"))
            rule = as_dynamic if as_dynamic is not None and as_dynamic.decision == "allow" else None
        return self.defaults[request.kind] if rule is None else rule.decision

    def rule_for(self, request: ApprovalRequest) -> Rule | None:
        """The rule that decides, if there is one."""
        return next((rule for rule in self.rules if rule.matches(request)), None)


async def cannot_ask(request: ApprovalRequest) -> Answer:
    """Nobody is there to be asked."""
    raise ApprovalError(
        "cannot-ask",
        f"{request.entry.uri!r:.300} from {request.origin!r} needs a person's yes, and nobody can be asked here",
        f"run: {review_command(request.origin, request.entry)}",
        rule="A1",
    )


def review_command(origin: str, entry: SkillEntry) -> str:
    """What a person types to see the skill. The review prints the command that approves or enables it (Z4).

    Programs read hints too, so none of them approves or enables anything.
    """
    return f"skillwire review {shlex.quote(f'{origin}:{entry.uri}')}"


def declines(line: LogLine, entry: SkillEntry) -> bool:
    """Whether a decision declines exactly what ``entry`` says of the skill now."""
    return line.what == "denied" and line.facts.get("fingerprint") == fingerprint(claimed_contents(entry))


async def refuse_if_declined(store: Store, origin: str, entry: SkillEntry) -> None:
    """``ApprovalError`` if a person declined the skill and it did not change since: nobody is asked again."""
    for line in await store.decisions(origin, entry.uri):
        if declines(line, entry):
            note = f": {line.facts['note']!r:.300}" if line.facts.get("note") else ""
            raise ApprovalError(
                "skill-declined",
                f"{entry.uri!r:.300} from {origin!r}, as it is now, was declined by {line.by!r:.80}{note}",
                f"run: {review_command(origin, entry)}",
                rule="A1",
            )


class Approvals:
    """Finds, asks for, remembers and revokes approvals."""

    def __init__(self, store: Store, policy: Policy, ask: Ask) -> None:
        self._store = store
        self._policy = policy
        self._ask = ask

    async def standing(self, origin: str, entry: SkillEntry) -> Approval | None:
        """The approval that covers ``entry``. One for another content is revoked here and now (A2)."""
        approval = await self.current(origin, entry.uri)
        if approval is None or covers(approval, origin, entry):
            return approval
        await self.revoke(origin, entry.uri, by="host", why="the content changed", only=approval)
        return None

    async def current(self, origin: str, uri: str) -> Approval | None:
        """The approval that is in force for a skill, whatever content it is for."""
        return await self._store.approval(origin, uri)

    async def previous(self, origin: str, entry: SkillEntry) -> Approval | None:
        """What a person last said yes to, to compare with; also if it was revoked since. It permits nothing."""
        approval = await self.current(origin, entry.uri)
        if approval is not None:
            return approval
        revoked = await newest_line(
            self._store, lambda line: "contents" in line.facts, origin=origin, uri=entry.uri, what=("revoked",)
        )
        if revoked is None:
            return None
        contents = frozenset((uri, digest) for uri, digest in revoked.facts["contents"])
        return Approval(origin, entry.uri, contents, revoked.by, revoked.at)

    def forbids(self, request: ApprovalRequest) -> bool:
        """Whether a rule denies it, so that no approval of before counts."""
        rule = self._policy.rule_for(request)
        return rule is not None and rule.decision == "deny"

    def will_ask(self, request: ApprovalRequest) -> bool:
        """Whether a person will be asked."""
        return self._policy.decide(request) == "ask" and self._ask is not cannot_ask

    async def request(self, request: ApprovalRequest) -> Answer:
        """A yes, or ``ApprovalError``. What was decided is logged either way."""
        decision = self._policy.decide(request)
        answer = await self._ask(request) if decision == "ask" else Answer(decision == "allow", by="policy")
        if not answer.yes:
            await self.decline(request, answer)
            raise _not_approved(request, answer.note)
        return answer

    async def decided(self, origin: str, uri: str) -> LogLine | None:
        """The newest decision about a skill, whatever content it was about."""
        return next(iter(await self._store.decisions(origin, uri)), None)

    async def decline(self, request: ApprovalRequest, answer: Answer, *, after: int | None = None) -> None:
        """Log a no. A person's no to a skill is to exactly this content, and disables it until it changes.

        An approval of that ends, and whoever else asks about it has their answer. With ``after``, only if that is
        still the number of the newest decision about the skill: else ``ApprovalError``. A no that is not to be
        remembered is for this one request.
        """
        if answer.recorded:
            return
        line = self._line("denied", request, answer, time.time())
        if request.kind == "load" and answer.by != "policy" and answer.remember:
            if not await self._store.put_denial(claimed_contents(request.entry), line, after=after):
                raise _decided_meanwhile(request)
        else:
            await self._store.log(line)

    async def refuse_if_declined(self, origin: str, entry: SkillEntry) -> None:
        """``ApprovalError`` if the skill is disabled."""
        await refuse_if_declined(self._store, origin, entry)

    async def keep_declined(self, origin: str, listed: SkillEntry, got: SkillEntry) -> bool:
        """A skill that was declined before its files were known stays declined when they are. Whether it was."""
        line = None if has_contents(listed) else await self.decided(origin, listed.uri)
        if line is None or not declines(line, listed) or declines(line, got):
            return False
        contents = claimed_contents(got)
        facts = {**line.facts, "fingerprint": fingerprint(contents)}
        same = LogLine("denied", origin, got.uri, line.by, time.time(), facts)
        return await self._store.put_denial(contents, same, after=line.number)

    async def enable(self, origin: str, entry: SkillEntry, *, by: str, note: str = "", user: str = "") -> bool:
        """Undo ``decline``: the skill is shown and asked about again. Whether it was declined."""
        if not any(declines(line, entry) for line in await self._store.decisions(origin, entry.uri)):
            return False
        facts = {"kind": "load", "fingerprint": fingerprint(claimed_contents(entry)), **noted(note, user)}
        await self._store.log(LogLine("enabled", origin, entry.uri, by, time.time(), facts))
        return True

    async def remember(self, request: ApprovalRequest, answer: Answer, *, after: int | None = None) -> Approval:
        """A1: the approval, bound to exactly the content of the request's entry; kept if it may be.

        ``after`` is that of ``decline``.
        """
        if answer.recorded:
            return await self._recorded(request)
        now = time.time()
        approval = Approval(
            request.origin, request.entry.uri, contents_of(request.entry), answer.by, now, answer.grants
        )
        if answer.remember and answer.by != "policy":
            line = self._line("approved", request, answer, now)
            if not await self._store.put_approval(approval, line, after=after):
                raise _decided_meanwhile(request)
        else:
            await self._store.log(self._line("approved", request, answer, now))
        return approval

    async def _recorded(self, request: ApprovalRequest) -> Approval:
        """The approval that was given elsewhere, unless somebody took it back since (A2)."""
        approval = await self.current(request.origin, request.entry.uri)
        if approval is None or not covers(approval, request.origin, request.entry):
            raise _not_approved(request, "the yes was taken back")
        return approval

    async def grant(self, approval: Approval, grant: str, by: str, note: str = "") -> Approval:
        """A4, A5: one more grant for the same content."""
        facts = {"grant": grant, **noted(note)}
        line = LogLine("granted", approval.origin, approval.uri, by, time.time(), facts)
        current: Approval | None = approval
        while current is not None and current.contents == approval.contents:
            grants = current.grants | {grant}
            if grant in current.grants or await self._store.change_grants(current, grants, line):
                return replace(current, grants=grants)
            # Another call granted something to the same content meanwhile.
            current = await self.current(approval.origin, approval.uri)
        raise ApprovalError(
            "skill-changed",
            f"the approval of {approval.uri!r:.300} was revoked or is for other content now",
            "load the skill again",
            rule="A2",
        )

    async def revoke(
        self,
        origin: str,
        uri: str,
        *,
        by: str,
        why: str,
        note: str = "",
        user: str = "",
        only: Approval | None = None,
    ) -> bool:
        """Take an approval back; whether there was one. With ``only``, exactly that one and no newer one."""
        facts: dict[str, Any] = {"why": why, **noted(note, user)}
        known = only or await self.current(origin, uri)
        if known is not None:  # a person will want to know how the new content differs
            facts["contents"] = sorted(known.contents)
        line = LogLine("revoked", origin, uri, by, time.time(), facts)
        return await self._store.remove_approval(origin, uri, line, only=only)

    @staticmethod
    def change(previous: Approval | None, entry: SkillEntry) -> ContentChange | None:
        """How the content differs from what was approved before, if anything was."""
        return None if previous is None else change_since(previous, entry)

    @staticmethod
    def _line(what: Literal["approved", "denied"], request: ApprovalRequest, answer: Answer, at: float) -> LogLine:
        facts: dict[str, Any] = {"kind": request.kind}
        if request.target:
            facts["target"] = request.target
        if request.kind == "load" and (answer.yes or answer.remember):
            facts["fingerprint"] = fingerprint(claimed_contents(request.entry))
        if answer.grants:
            facts["grants"] = sorted(answer.grants)
        facts |= noted(answer.note, answer.user)
        return LogLine(what, request.origin, request.entry.uri, answer.by, at, facts)


def _decided_meanwhile(request: ApprovalRequest) -> ApprovalError:
    return ApprovalError(
        "decided-meanwhile",
        f"somebody else decided about {request.entry.uri!r:.300} from {request.origin!r} just now",
        "look at what they decided first",
        rule="A1",
    )


def noted(note: str, user: str = "") -> dict[str, str]:
    """A person's note and their user name on this system, for the log, where there are any (Z4)."""
    facts = {"user": user, "note": note.strip()[:_LONGEST_NOTE]}
    return {key: value for key, value in facts.items() if value}


def _not_approved(request: ApprovalRequest, why: str) -> ApprovalError:
    said = f": {why.strip()!r:.300}" if why.strip() else ""
    return ApprovalError(
        "not-approved",
        f"{request.entry.uri!r:.300} from {request.origin!r} was not approved ({request.kind}){said}",
        "a person has to approve it first",
        rule=_RULES[request.kind],
    )


_RULES: dict[RequestKind, str] = {
    "load": "A1",
    "dynamic": "V7",
    "execute": "A5",
    "tool": "A4",
    "cross-origin": "O3",
}
