"""What a host gives back: a loaded skill, a file of one, and the answer to a tool call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from skillwire.skill.approval import covers
from skillwire.skill.model import TokenEstimate, estimate_tokens

if TYPE_CHECKING:
    from skillwire.host.names import NamedEntry
    from skillwire.host.refusal import Refusal
    from skillwire.skill.approval import Approval

Standing: TypeAlias = Literal["local", "approved", "changed", "unapproved", "dynamic"]


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

    ``changed`` means that another content of it was approved; ``dynamic``, that nothing about it can be verified.
    """

    name: str
    origin: str
    uri: str
    standing: Standing
    tokens: TokenEstimate
    grants: frozenset[str] = frozenset()


def status_of(skill: NamedEntry, approval: Approval | None) -> SkillStatus:
    """The standing of one skill, given the approval that is remembered for its URI."""
    origin, entry = skill.origin, skill.entry
    standing: Standing = "unapproved"
    if origin.is_local:
        standing = "local"
    elif approval is not None:
        standing = "approved" if covers(approval, origin.label, entry) else "changed"
    elif not entry.is_complete or "digest" in entry.gaps:
        standing = "dynamic"
    grants = approval.grants if approval is not None and standing == "approved" else frozenset[str]()
    return SkillStatus(skill.name, origin.label, entry.uri, standing, estimate_tokens(entry), grants)
