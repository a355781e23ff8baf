"""What a host gives back: a loaded skill, a file of one, and the answer to a tool call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from skillwire.host.approvals import declines
from skillwire.skill.approval import agrees, covers, fingerprint, fingerprint_of
from skillwire.skill.model import TokenEstimate, estimate_tokens

if TYPE_CHECKING:
    from skillwire.host.names import NamedEntry
    from skillwire.host.refusal import Refusal
    from skillwire.skill.approval import Approval
    from skillwire.skill.entry import SkillEntry
    from skillwire.store.contract import LogLine

Standing: TypeAlias = Literal["local", "approved", "changed", "revoked", "declined", "unapproved", "dynamic"]


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill whose instructions may enter the model's context: ``text`` is the block to put there."""

    name: str
    origin: str
    uri: str
    text: str
    offline: bool = False


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file of a loaded skill: ``text`` is the block for the model, ``data`` the bytes."""

    uri: str
    data: bytes
    text: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the model is told. ``refusal`` has the details for people and programs."""

    text: str
    refusal: Refusal | None = None

    @property
    def is_error(self) -> bool:
        """Whether it is a refusal."""
        return self.refusal is not None


@dataclass(frozen=True, slots=True)
class SkillStatus:
    """A skill as the model would see it, and how a person stands to it.

    ``changed`` means that another content of it was approved; ``revoked`` and ``declined``, that a person took
    their yes to this very content back, or said no to it; ``dynamic``, that nothing about it can be verified.
    Where a listing says too little to know, that is found out when somebody wants the skill.
    """

    name: str
    origin: str
    uri: str
    standing: Standing
    tokens: TokenEstimate
    grants: frozenset[str] = frozenset()


def status_of(skill: NamedEntry, approval: Approval | None, decision: LogLine | None = None) -> SkillStatus:
    """The standing of one skill, given the approval that is remembered for its URI, and the newest decision."""
    entry, standing = skill.entry, standing_of(skill, approval, decision)
    grants = approval.grants if approval is not None and standing == "approved" else frozenset[str]()
    return SkillStatus(skill.name, skill.origin.label, entry.uri, standing, estimate_tokens(entry), grants)


def standing_of(skill: NamedEntry, approval: Approval | None, decision: LogLine | None = None) -> Standing:
    """How a person stands to a skill."""
    origin, entry = skill.origin, skill.entry
    if origin.is_local:
        return "declined" if decision is not None and declines(decision, entry) else "local"
    if approval is not None:
        is_same = covers(approval, origin.label, entry) or agrees(approval.contents, entry)
        is_declined = decision is not None and declines(decision, entry)
        return "approved" if is_same else "declined" if is_declined else "changed"
    if decision is not None and declines(decision, entry):
        return "declined"
    if entry.is_dynamic or (entry.is_named and entry.is_unpromised(entry.uri)):
        return "dynamic"
    return "unapproved" if decision is None else _decided(decision, entry)


def _decided(decision: LogLine, entry: SkillEntry) -> Standing:
    """What the newest decision means for what is not approved."""
    if decision.what != "revoked":
        return "unapproved"
    before = decision.facts.get("contents")  # older lines do not say
    content = fingerprint_of(entry) if before is None else fingerprint(frozenset(map(tuple, before)))
    return "revoked" if content == fingerprint_of(entry) else "changed"
