"""The acting window: the time during which a skill's text is in the model's context (W1–W3).

The transitions are a table, so every case is decided. Only ``load``, the host's loading path, opens a window. A
plain read of a ``SKILL.md`` does not (W2), and reading a directory does not make its files part of the skill (W3).
A read across origins (O3) puts text of a skill that is not loaded into the context: the skill is then ``quoted``.
No further files are read for it, and code runs only if this skill has the grant too (A5). If an approval is
revoked or the skill has changed, its text is still in the context. The window is then ``revoked``, not closed:
nothing more is read or run for the skill until it is loaded again or its text has left the context.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from skillwire.skill.entry import SkillEntry

State: TypeAlias = Literal["closed", "quoted", "open", "revoked"]
Event: TypeAlias = Literal["load", "plain-read", "directory-read", "cross-read", "revoke", "change", "leave"]

TRANSITIONS: dict[tuple[State, Event], State] = {
    ("closed", "load"): "open",
    ("closed", "plain-read"): "closed",
    ("closed", "directory-read"): "closed",
    ("closed", "cross-read"): "quoted",
    ("closed", "revoke"): "closed",
    ("closed", "change"): "closed",
    ("closed", "leave"): "closed",
    ("quoted", "load"): "open",
    ("quoted", "plain-read"): "quoted",
    ("quoted", "directory-read"): "quoted",
    ("quoted", "cross-read"): "quoted",
    ("quoted", "revoke"): "revoked",
    ("quoted", "change"): "revoked",
    ("quoted", "leave"): "closed",
    ("open", "load"): "open",
    ("open", "plain-read"): "open",
    ("open", "directory-read"): "open",
    ("open", "cross-read"): "open",
    ("open", "revoke"): "revoked",
    ("open", "change"): "revoked",
    ("open", "leave"): "closed",
    ("revoked", "load"): "open",
    ("revoked", "plain-read"): "revoked",
    ("revoked", "directory-read"): "revoked",
    ("revoked", "cross-read"): "revoked",
    ("revoked", "revoke"): "revoked",
    ("revoked", "change"): "revoked",
    ("revoked", "leave"): "closed",
}


@dataclass(frozen=True, slots=True)
class Window:
    """The state of one skill of one origin in the model's context. ``entry`` is the loaded entry."""

    origin: str
    entry: SkillEntry
    grants: frozenset[str] = frozenset()
    state: State = "closed"

    def after(self, event: Event) -> Window:
        """The window after ``event``."""
        return Window(self.origin, self.entry, self.grants, TRANSITIONS[self.state, event])

    @property
    def may_read(self) -> bool:
        """Whether files of the loaded entry, and no others, may be read for the model (V2)."""
        return self.state == "open"

    @property
    def is_acting(self) -> bool:
        """Whether the skill's text is in the model's context."""
        return self.state != "closed"

    def permits(self, grant: str) -> bool:
        """Whether a person granted ``grant`` to exactly this content (A4, A5)."""
        return self.state in ("open", "quoted") and grant in self.grants
