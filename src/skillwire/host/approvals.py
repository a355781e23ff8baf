"""Approvals: a policy decides by rule, or a person is asked; the answer is stored or counts once (A1–A5, V7, O3).

The host asks through an ``Ask`` function that the program supplies: a prompt on a terminal, a web page, MCP
elicitation, a test. An approval is stored only where it can be bound to content (A1), so a dynamic skill needs a
new answer for each load (V7).
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from anyio import to_thread

from skillwire.errors import ApprovalError, FormatError, SkillwireError
from skillwire.skill.approval import (
    Approval,
    ContentChange,
    agrees,
    change_since,
    claimed_contents,
    contents_of,
    covers,
    fingerprint,
    has_contents,
)
from skillwire.skill.review import review_entry
from skillwire.store.records import LogLine
from skillwire.store.store import newest_line
from skillwire.telemetry import span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.skill import SkillEntry
    from skillwire.skill.review import Review
    from skillwire.store.store import Store

log = logging.getLogger("skillwire.host")

RequestKind: TypeAlias = Literal["load", "dynamic", "execute", "tool", "cross-origin"]
Decision: TypeAlias = Literal["allow", "deny", "ask"]

ASKED_TO = "asked to"
"""The logged reason of a revocation that a person requested, as opposed to one by the host."""
_LONGEST_NOTE = 1000
_RULES: dict[RequestKind, str] = {
    "load": "A1",
    "dynamic": "V7",
    "execute": "A5",
    "tool": "A4",
    "cross-origin": "O3",
}


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A request for a person's approval. ``kind`` is what they would approve.

    It is made from the entry alone, and no file is read for it. ``change`` lists the files that differ if other
    content of the skill was approved before. ``await request.review()`` reads the files when the person wants to
    see them (V5), and ``reviewed`` is then what was found. ``target`` is the tool, or the other origin and URI.
    ``address`` is where the origin is, without secrets. ``lasts`` means that the approval of a tool is stored for
    this content; otherwise it ends when the model leaves the skill.
    """

    kind: RequestKind
    origin: str
    entry: SkillEntry
    reviewed: Review | None = None
    change: ContentChange | None = None
    diff: tuple[str, ...] = ()
    target: str = ""
    lasts: bool = True
    text: str | None = None
    address: str = ""
    reader: Reader | None = field(default=None, repr=False, compare=False)

    @property
    def summary(self) -> Review:
        """The review of the files if they were read, else of the entry."""
        return self.reviewed or review_entry(self.entry)

    @property
    def is_unread(self) -> bool:
        """Whether the files are unknown before the load. The approval binds the loaded files (A1, V5)."""
        return self.kind == "load" and not has_contents(self.entry) and not self.entry.is_dynamic

    async def review(self) -> ApprovalRequest:
        """Read the files of the skill, and return the request with their content.

        The result has an ``entry`` with all files, the ``SKILL.md`` as ``text``, hidden text of every text file in
        ``summary.hidden`` (B6), and the ``diff`` of the ``SKILL.md`` since the last approval. The bytes are
        verified, and they are cached only after the approval. This raises an error if the skill cannot be read or
        does not match its entry. Do not catch that error: the host then refuses the skill.
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
    """A person's answer. ``grants`` are tools that the skill asks for, or ``"execute"``; each is a decision.

    ``note`` and ``user``, the user name on this system if it is known, are for the log (Z4). ``recorded`` means
    that the store already has the answer, as an approval or a denial of exactly the requested content. The host
    then does not write it again, and it counts while the store has it.
    """

    yes: bool
    by: str = "user"
    remember: bool = True
    grants: frozenset[str] = frozenset()
    note: str = ""
    recorded: bool = False
    user: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.grants, str):  # "oil" in "boil" is true
            raise TypeError(f"'grants' is text; give a set of names: grants=frozenset([{self.grants!r}])")


Ask: TypeAlias = Callable[[ApprovalRequest], Answer | bool | Awaitable[Answer | bool]]
"""Asks a person. A plain function runs in a thread, so that it may block, for example in ``input``."""
AsyncAsk: TypeAlias = Callable[[ApprovalRequest], Awaitable[Answer]]
Reader: TypeAlias = Callable[[ApprovalRequest], Awaitable[ApprovalRequest]]


_DEFAULTS: dict[RequestKind, Decision] = {
    "load": "ask",
    "dynamic": "deny",
    "execute": "ask",
    "tool": "ask",
    "cross-origin": "deny",
}


def _check_decision(kind: str, decision: str) -> None:
    """Refuse a misspelled rule: it would never match, or decide something else than it says."""
    for what, given, known in (("kind", kind, get_args(RequestKind)), ("decision", decision, get_args(Decision))):
        if given not in known:
            raise FormatError(
                "rule-invalid", f"{given!r:.80} is not the {what} of a rule", f"choose from {', '.join(known)}"
            )


@dataclass(frozen=True, slots=True)
class Rule:
    """A decision for the skills whose origin and path match; ``*`` matches any text."""

    decision: Decision
    origin: str = "*"  # the label of the origin
    path: str = "*"  # the path of the skill, such as acme/billing/refunds
    kind: RequestKind = "load"

    def __post_init__(self) -> None:
        _check_decision(self.kind, self.decision)

    def matches(self, kind: RequestKind, origin: str, path: str) -> bool:
        """Whether the rule applies to this kind of request for the skill at ``path``."""
        return self.kind == kind and fnmatchcase(origin, self.origin) and fnmatchcase(path, self.path)


def _are_rules(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(each, Rule) for each in cast("Sequence[object]", value))


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules that decide before a person is asked. The first rule that matches decides.

    Without a matching rule, ``defaults`` decides: dynamic skills (V7) and reads across origins (O3) are declined,
    for everything else a person is asked. A ``deny`` rule overrides an earlier approval. Before a load it can be
    unknown whether a skill can be verified; a rule that allows dynamic skills then allows it.
    """

    rules: Sequence[Rule] = ()
    defaults: Mapping[RequestKind, Decision] = field(default_factory=dict["RequestKind", "Decision"])

    def __post_init__(self) -> None:
        if not _are_rules(self.rules):
            raise TypeError("'rules' is a list of rules: Policy([Rule('deny', path='acme/refunds')])")
        for kind, decision in self.defaults.items():
            _check_decision(kind, decision)
        object.__setattr__(self, "defaults", {**_DEFAULTS, **self.defaults})

    def decide(self, request: ApprovalRequest) -> Decision:
        """The decision about ``request``."""
        rule = self.rule_for(request.kind, request.origin, request.entry)
        if rule is None and request.is_unread:
            dynamic = self.rule_for("dynamic", request.origin, request.entry)
            rule = dynamic if dynamic is not None and dynamic.decision == "allow" else None
        return self.defaults[request.kind] if rule is None else rule.decision

    def rule_for(self, kind: RequestKind, origin: str, entry: SkillEntry) -> Rule | None:
        """The first rule that matches."""
        return next((rule for rule in self.rules if rule.matches(kind, origin, entry.path)), None)


async def cannot_ask(request: ApprovalRequest) -> Answer:
    """The ``Ask`` of a program that has no way to ask a person: it refuses each request."""
    raise ApprovalError(
        "cannot-ask",
        f"{request.entry.uri!r:.300} from {request.origin!r} is not approved, and no person can be asked here",
        f"run: {review_command(request.origin, request.entry)}",
        rule="A1",
    )


async def no_ask(request: ApprovalRequest) -> Answer:
    """The ``Ask`` of a program that gave none, and whose state is in memory, so that no command can approve."""
    raise ApprovalError(
        "cannot-ask",
        f"{request.entry.uri!r:.300} from {request.origin!r} is not approved, and this program asks no person",
        "open the host with ask=…, a function that asks a person, or with a policy",
        rule="A1",
    )


def review_command(origin: str, entry: SkillEntry) -> str:
    """The command that shows the skill to a person. Its output has the command that approves or enables it (Z4).

    Programs read hints too, so no hint contains a command that approves or enables a skill.
    """
    return f"skillwire approvals show {shlex.quote(f'{origin}:{entry.uri}')}"


def declines(line: LogLine, entry: SkillEntry) -> bool:
    """Whether a decision declines exactly the content of ``entry``."""
    return line.what == "denied" and line.facts.get("fingerprint") == fingerprint(claimed_contents(entry))


def is_outdated(approval: Approval, listed: SkillEntry, at: float | None) -> bool:
    """A2: whether a server has listed other content at this time, after the approval.

    An entry that is too short to tell does not count: the whole entry may be the approved one.
    """
    if at is None or approval.at >= at or approval.uri != listed.uri:
        return False
    return not covers(approval, approval.origin, listed) and not agrees(approval.contents, listed)


class Approvals:
    """Requests, stores, finds and revokes approvals."""

    def __init__(self, store: Store, policy: Policy | None = None, ask: Ask = cannot_ask) -> None:
        if policy is not None and not isinstance(policy, Policy):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("'policy' is a Policy: Policy([Rule('deny', path='acme/refunds')])")
        self._store = store
        self._policy = policy or Policy()
        self._ask = ask

    async def current(self, origin: str, uri: str) -> Approval | None:
        """The stored approval of a skill. Whether it covers the present content is for the caller to check."""
        return await self._store.approval(origin, uri)

    async def previous(self, origin: str, entry: SkillEntry) -> Approval | None:
        """The last approval of a skill, even if it was revoked. It is for comparison only, and permits nothing."""
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

    async def decided(self, origin: str, uri: str) -> LogLine | None:
        """The newest decision about a skill, for any content of it."""
        return next(iter(await self._store.decisions(origin, uri)), None)

    async def refuse_if_declined(self, origin: str, entry: SkillEntry) -> None:
        """``ApprovalError`` if a person declined exactly this content. They are not asked again."""
        line = await self.decided(origin, entry.uri)
        if line is not None and declines(line, entry):
            note = f": {line.facts['note']!r:.300}" if line.facts.get("note") else ""
            raise ApprovalError(
                "skill-declined",
                f"the current content of {entry.uri!r:.300} from {origin!r} was declined by {line.by!r:.80}{note}",
                f"run: {review_command(origin, entry)}",
                rule="A1",
            )

    def forbids(self, kind: RequestKind, origin: str, entry: SkillEntry) -> bool:
        """Whether a rule denies it, even if it was approved before."""
        rule = self._policy.rule_for(kind, origin, entry)
        return rule is not None and rule.decision == "deny"

    def will_ask(self, request: ApprovalRequest) -> bool:
        """Whether a person will be asked."""
        return self._policy.decide(request) == "ask" and self._ask not in (cannot_ask, no_ask)

    async def request(self, request: ApprovalRequest) -> Answer:
        """The approval of ``request`` by the policy or a person; otherwise ``ApprovalError``.

        A denial is logged here. An approval is logged by ``remember``, which knows the loaded content.
        """
        with span("approval", kind=request.kind, origin=request.origin, skill=request.entry.uri) as record:
            decision = self._policy.decide(request)
            is_asked = decision == "ask"
            if is_asked and request.kind in ("load", "dynamic"):
                previous = await self.previous(request.origin, request.entry)
                request = replace(request, change=change_since(previous, request.entry))
            answer = await self._answer(request) if is_asked else Answer(decision == "allow", by="policy")
            record.set(approved=answer.yes, asked=is_asked)
            if not answer.yes:
                await self.decline(request, answer)
                raise _not_approved(request, answer.note)
            return answer

    async def _answer(self, request: ApprovalRequest) -> Answer:
        """The answer of the program's ``ask`` function. If the function fails, the request is refused."""
        try:
            if iscoroutinefunction(self._ask) or iscoroutinefunction(type(self._ask).__call__):
                given = self._ask(request)
            else:
                given = await to_thread.run_sync(self._ask, request, abandon_on_cancel=True)
            answer = await given if isawaitable(given) else given
        except SkillwireError:
            raise
        except Exception as error:
            log.exception("the 'ask' function failed for %r from %r", request.entry.uri, request.origin)
            raise _ask_failed(request, f"raised {type(error).__name__}") from error
        if isinstance(answer, bool):
            return Answer(answer)
        if not isinstance(answer, Answer):
            raise _ask_failed(request, f"returned {type(answer).__name__}")
        return answer

    async def remember(self, request: ApprovalRequest, answer: Answer, *, after: int | None = None) -> Approval:
        """A1: make and log the approval of exactly the requested content, and store it if the answer is to last.

        With ``after``, only if that is still the number of the newest decision about the skill; otherwise
        ``ApprovalError``.
        """
        if answer.recorded:
            approval = await self.current(request.origin, request.entry.uri)
            if approval is None or not covers(approval, request.origin, request.entry):
                raise _not_approved(request, "the approval was revoked")
            return approval
        now = time.time()
        approval = Approval(
            request.origin, request.entry.uri, contents_of(request.entry), answer.by, now, answer.grants
        )
        line = self._line("approved", request, answer, now)
        if answer.remember and answer.by != "policy":
            if not await self._store.put_approval(approval, line, after=after):
                raise _decided_meanwhile(request)
        else:
            await self._store.log(line)
        return approval

    async def decline(self, request: ApprovalRequest, answer: Answer, *, after: int | None = None) -> None:
        """Log a denial.

        If a person declines to load a skill, and the answer is to last, the store disables exactly this content:
        its approval ends, and open questions about it are answered. All other denials are only for this request.
        ``after`` is that of ``remember``.
        """
        if answer.recorded:
            return
        line = self._line("denied", request, answer, time.time())
        if request.kind == "load" and answer.by != "policy" and answer.remember:
            if not await self._store.put_denial(claimed_contents(request.entry), line, after=after):
                raise _decided_meanwhile(request)
        else:
            await self._store.log(line)

    async def keep_declined(self, origin: str, listed: SkillEntry, fetched: SkillEntry) -> bool:
        """Keep a skill declined that was declined before its files were known. Returns whether it was."""
        line = None if has_contents(listed) else await self.decided(origin, listed.uri)
        if line is None or not declines(line, listed) or declines(line, fetched):
            return False
        contents = claimed_contents(fetched)
        facts = {**line.facts, "fingerprint": fingerprint(contents), "contents": sorted(contents)}
        again = LogLine("denied", origin, fetched.uri, line.by, time.time(), facts)
        return await self._store.put_denial(contents, again, after=line.number)

    async def enable(self, origin: str, entry: SkillEntry, *, by: str, note: str = "", user: str = "") -> bool:
        """Undo ``decline``. Returns whether the skill was declined."""
        line = await self.decided(origin, entry.uri)
        if line is None or not declines(line, entry):
            return False
        facts = {
            "kind": "load",
            "fingerprint": fingerprint(claimed_contents(entry)),
            **note_facts(note, user),
        }
        await self._store.log(LogLine("enabled", origin, entry.uri, by, time.time(), facts))
        return True

    async def grant(self, approval: Approval, grant: str, by: str, note: str = "") -> Approval:
        """A4, A5: add a grant to the stored approval; ``ApprovalError`` if it was revoked or replaced."""
        facts = {"grant": grant, "fingerprint": approval.fingerprint, **note_facts(note)}
        line = LogLine("granted", approval.origin, approval.uri, by, time.time(), facts)
        current: Approval | None = approval
        while current is not None and current.contents == approval.contents:
            grants = current.grants | {grant}
            if grant in current.grants or await self._store.change_grants(current, grants, line):
                return replace(current, grants=grants)
            # A concurrent call changed the grants of the same content: try again with those.
            current = await self.current(approval.origin, approval.uri)
        raise ApprovalError(
            "skill-changed",
            f"the approval of {approval.uri!r:.300} was revoked, or is now for other content",
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
        """Revoke an approval; with ``only``, that one and no newer one. Returns whether one was revoked."""
        facts: dict[str, Any] = {"why": why, **note_facts(note, user)}
        approval = only or await self.current(origin, uri)
        if approval is not None:  # ``previous`` reads it, to show how new content differs
            facts["contents"] = sorted(approval.contents)
        line = LogLine("revoked", origin, uri, by, time.time(), facts)
        return await self._store.remove_approval(origin, uri, line, only=only)

    @staticmethod
    def _line(what: Literal["approved", "denied"], request: ApprovalRequest, answer: Answer, at: float) -> LogLine:
        facts: dict[str, Any] = {"kind": request.kind}
        if request.target:
            facts["target"] = request.target
        if request.kind == "load" and (answer.yes or answer.remember):
            contents = claimed_contents(request.entry)
            # The history compares the contents.
            facts |= {"fingerprint": fingerprint(contents), "contents": sorted(contents)}
        if answer.grants:
            facts["grants"] = sorted(answer.grants)
        facts |= note_facts(answer.note, answer.user)
        return LogLine(what, request.origin, request.entry.uri, answer.by, at, facts)


def note_facts(note: str, user: str = "") -> dict[str, str]:
    """A person's note and their user name on this system, as facts of a log line. Empty ones are omitted (Z4)."""
    facts = {"user": user, "note": note.strip()[:_LONGEST_NOTE]}
    return {key: value for key, value in facts.items() if value}


def _ask_failed(request: ApprovalRequest, reason: str) -> ApprovalError:
    return ApprovalError(
        "ask-failed",
        f"{request.entry.uri!r:.300} from {request.origin!r} is not approved: the 'ask' function {reason}",
        "it must return an Answer or a bool; the log of 'skillwire.host' has the exception",
        rule=_RULES[request.kind],
    )


def _not_approved(request: ApprovalRequest, note: str) -> ApprovalError:
    reason = f": {note.strip()!r:.300}" if note.strip() else ""
    return ApprovalError(
        "not-approved",
        f"{request.entry.uri!r:.300} from {request.origin!r} was not approved ({request.kind}){reason}",
        "a person has to approve it first",
        rule=_RULES[request.kind],
    )


def _decided_meanwhile(request: ApprovalRequest) -> ApprovalError:
    return ApprovalError(
        "decided-meanwhile",
        f"another decision about {request.entry.uri!r:.300} from {request.origin!r} was made meanwhile",
        "look at that decision first",
        rule="A1",
    )
