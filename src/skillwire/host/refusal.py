"""Refusals are values: what happened, by which rule, what a person can do. The model gets a short version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillwire.errors import SkillwireError

_FOR_MODEL = {
    "not-approved": "A person has not approved this skill. Go on without it, or ask the user to approve it.",
    "nobody-to-ask": "This skill needs a person's approval, and nobody can be asked now. Go on without it.",
    "nobody-answered": "This skill needs a person's approval, and nobody answered. Go on without it.",
    "declined": "A person declined this skill. Go on without it.",
    "skill-changed": "The skill changed after it was approved. It has to be approved again before it can be used.",
    "name-ambiguous": "Several skills have that name. Use one of the full names from the list.",
    "skill-unknown": "There is no such skill. Use a name from the list.",
    "skill-not-loaded": "Load the skill with load_skill before reading its files.",
    "file-unlisted": "The skill has no such file. Use a path from the skill's list of files.",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something was not done."""

    reference: str
    rule: str
    message: str
    hint: str

    @property
    def for_model(self) -> str:
        """What the model is told: short, honest, without details that only matter to a person."""
        if self.reference == "origin-ambiguous":  # labels are the host's own, and the URI is the model's
            return f"Several servers have a skill with this URI: {self.hint}."
        return _FOR_MODEL.get(self.reference, f"This was refused ({self.reference}). Go on without it.")


def refusal_of(error: SkillwireError) -> Refusal:
    """The refusal for one of our errors."""
    return Refusal(error.reference, error.rule, error.message, error.hint)
