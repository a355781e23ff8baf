"""The values that a host returns: loaded skills and files, tool results, refusals, and the status of each skill.

A refusal is a value and not an exception. It has the details for people and programs, and a short text for the
model that contains nothing a server chose (O2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from skillwire.errors import OriginError, ProtocolError
from skillwire.host.approvals import declines
from skillwire.skill.approval import agrees, covers, fingerprint, fingerprint_of
from skillwire.skill.hidden import encode_hidden, escape_text
from skillwire.skill.model import TokenEstimate, estimate_tokens

if TYPE_CHECKING:
    from skillwire.client.remote import CatalogState
    from skillwire.errors import SkillwireError
    from skillwire.host.origins import NamedEntry
    from skillwire.skill.approval import Approval
    from skillwire.store.records import LogLine

ApprovalStatus: TypeAlias = Literal["local", "approved", "changed", "revoked", "declined", "unapproved", "dynamic"]

_FOR_MODEL = {
    "not-approved": "The user has not approved this skill. Continue without it, or ask the user to approve it.",
    "ask-failed": "This skill needs the user's approval, and the user could not be asked. Continue without it.",
    "cannot-ask": "This skill needs the user's approval, and the user cannot be asked now. Continue without it.",
    "no-answer": "This skill needs the user's approval, and no answer came in time. Continue without it.",
    "skill-declined": "The user declined this skill. Continue without it.",
    "skill-changed": "The skill changed after it was approved. It must be approved again before it can be used.",
    "name-ambiguous": "Several skills have that name. Use one of the full names from the list.",
    "origin-ambiguous": "Several servers have this skill. Call the tool again with one of them as its origin.",
    "skill-unknown": "Unknown skill. Use a name from the list.",
    "argument-missing": "This skill needs arguments. Call load_skill again with all of them as its arguments.",
    "argument-unknown": "This skill takes no such arguments. Call load_skill again without them.",
    "skill-not-loaded": "Load the skill before reading its files.",
    "file-unlisted": "The skill has no such file. Use a path from the skill's list of files.",
    "argument-invalid": "It has the wrong type. Follow the schema of the tool.",
    "tool-unknown": "There is no such tool.",
}
_LONGEST_SUBJECT = 100


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request was refused.

    ``choices`` are origin labels that the model may choose from (O1). ``missing`` are the names of required
    arguments (P2). ``subject`` is what was refused, as the model called it: a skill, a file, a tool, an argument.
    """

    reference: str
    rule: str
    message: str
    hint: str
    choices: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    subject: str = ""

    @property
    def for_model(self) -> str:
        """A short text for the model, without the message and the hint, which are for people."""
        text = _FOR_MODEL.get(self.reference, f"This was refused ({self.reference}). Continue without it.")
        if self.subject:
            text = f"Refused: {self.subject}. {text}"
        if self.missing:
            return f"{text} Missing: {', '.join(self.missing)}."
        return f"{text} Choose one of: {', '.join(self.choices)}." if self.choices else text


def refusal_of(error: SkillwireError, subject: str = "") -> Refusal:
    """The refusal for an error."""
    choices = error.choices if isinstance(error, OriginError) else ()
    missing = error.missing if isinstance(error, ProtocolError) else ()
    return Refusal(error.reference, error.rule, error.message, error.hint, choices, missing, subject)


def quoted(text: str) -> str:
    """Text that the model wrote, in quotes: short, on one line, and with invisible characters encoded (O2)."""
    shown = " ".join(text.split())[:_LONGEST_SUBJECT]
    return f'"{escape_text(encode_hidden(shown))}"'


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A loaded skill. ``text`` is the block for the model's context."""

    name: str
    origin: str
    uri: str
    text: str
    offline: bool = False


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file of a loaded skill: its bytes, and the block for the model's context."""

    uri: str
    data: bytes
    text: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call: ``text`` for the model, ``refusal`` with the details for people and programs."""

    text: str
    refusal: Refusal | None = None

    @property
    def is_error(self) -> bool:
        """Whether the call was refused."""
        return self.refusal is not None


@dataclass(frozen=True, slots=True)
class OriginStatus:
    """The state of an origin: a server or a folder under the label that the host assigned.

    connecting   a server has not listed its skills yet
    complete     all skills are known
    partial      some entries cannot be used, or the listing ended with an error
    stale        the listing is from before the connection was lost
    unreachable  nothing is known

    ``address`` is a URL or a command without secrets, or a folder. ``dialect`` is empty while it is unknown.
    """

    label: str
    address: str
    state: CatalogState
    dialect: str
    skills: int
    seen_at: float | None
    error: SkillwireError | None

    @property
    def hint(self) -> str:
        """What to do about the error."""
        return "" if self.error is None else self.error.hint


@dataclass(frozen=True, slots=True)
class SkillStatus:
    """A skill under the name that the model sees, with the state of its approval.

    local       it is in a folder of the user and needs no approval
    approved    exactly this content is approved
    changed     other content of the skill was approved
    revoked     the approval of this content was revoked
    declined    this content was declined
    unapproved  there is no decision
    dynamic     nothing about the skill can be verified (V7)

    A listing can contain too little to tell. The status is then final only after the skill was fetched.
    """

    name: str
    origin: str
    uri: str
    status: ApprovalStatus
    tokens: TokenEstimate
    grants: frozenset[str] = frozenset()


def status_of(skill: NamedEntry, approval: Approval | None, decision: LogLine | None = None) -> SkillStatus:
    """The status of a skill, given the stored approval for its URI and the newest decision about it."""
    entry, status = skill.entry, approval_status(skill, approval, decision)
    grants = approval.grants if approval is not None and status == "approved" else frozenset[str]()
    return SkillStatus(skill.name, skill.origin.label, entry.uri, status, estimate_tokens(entry), grants)


def approval_status(
    skill: NamedEntry, approval: Approval | None, decision: LogLine | None = None
) -> ApprovalStatus:
    """The state of a skill's approval; ``SkillStatus`` explains the values."""
    origin, entry = skill.origin, skill.entry
    is_declined = decision is not None and declines(decision, entry)
    if origin.is_own:
        return "declined" if is_declined else "local"
    if approval is not None:
        is_same = covers(approval, origin.label, entry) or agrees(approval.contents, entry)
        return "approved" if is_same else "declined" if is_declined else "changed"
    if is_declined:
        return "declined"
    if entry.is_dynamic or (entry.is_named and entry.is_unpromised(entry.uri)):
        return "dynamic"
    if decision is None or decision.what != "revoked":
        return "unapproved"
    revoked = decision.facts.get("contents")  # older log lines do not have it
    content = fingerprint_of(entry) if revoked is None else fingerprint(frozenset(map(tuple, revoked)))
    return "revoked" if content == fingerprint_of(entry) else "changed"
