"""Refusals are values: what happened, by which rule, what a person can do. The model gets a short version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillwire.errors import OriginError, ProtocolError

if TYPE_CHECKING:
    from skillwire.errors import SkillwireError

_FOR_MODEL = {
    "not-approved": "A person has not approved this skill. Go on without it, or ask the user to approve it.",
    "nobody-to-ask": "This skill needs a person's approval, and nobody can be asked now. Go on without it.",
    "nobody-answered": "This skill needs a person's approval, and nobody answered. Go on without it.",
    "skill-declined": "A person declined this skill. Go on without it.",
    "skill-changed": "The skill changed after it was approved. It has to be approved again before it can be used.",
    "name-ambiguous": "Several skills have that name. Use one of the full names from the list.",
    "origin-ambiguous": "Several servers have this skill. Call the tool again with one of them as its origin.",
    "skill-unknown": "There is no such skill. Use a name from the list.",
    "argument-missing": "This skill needs arguments. Call load_skill again with all of them as its arguments.",
    "argument-unknown": "This skill takes no such arguments. Call load_skill again without them.",
    "skill-not-loaded": "Load the skill before reading its files.",
    "file-unlisted": "The skill has no such file. Use a path from the skill's list of files.",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something was not done.

    ``choices`` are labels of this host that the model may choose from (O1), ``missing`` names of arguments (P2).
    """

    reference: str
    rule: str
    message: str
    hint: str
    choices: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def for_model(self) -> str:
        """What the model is told: short, honest, without details that only matter to a person."""
        said = _FOR_MODEL.get(self.reference, f"This was refused ({self.reference}). Go on without it.")
        if self.missing:
            return f"{said} Missing: {', '.join(self.missing)}."
        return f"{said} Choose one of: {', '.join(self.choices)}." if self.choices else said


def refusal_of(error: SkillwireError) -> Refusal:
    """The refusal for one of our errors."""
    choices = error.choices if isinstance(error, OriginError) else ()
    missing = error.missing if isinstance(error, ProtocolError) else ()
    return Refusal(error.reference, error.rule, error.message, error.hint, choices, missing)
