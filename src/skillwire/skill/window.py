"""The acting window: from when a skill's words enter the model's context until they have left it (W1–W3).

A table, so that every case is decided and can be drawn. ``load`` is the host's own loading path, nothing else
opens a window: a plain read of a ``SKILL.md`` gives no standing (W2), and a directory shows what is there without
making it part of the skill (W3). A read across origins (O3) puts words of a skill into the context that is not
loaded: it is ``quoted``, nothing more is read for it, and code runs only if it was granted to it too (A5). When
an approval is revoked, or the skill turns out to have changed, the words are still in the context: the window does
not close, it is ``revoked``, and nothing more is read or run because of the skill until it is loaded again or its
words are gone.
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
    """One skill of one origin, and how the model stands to it. ``entry`` is the one that was loaded."""

    origin: str
    entry: SkillEntry
    grants: frozenset[str] = frozenset()
    state: State = "closed"

    def after(self, event: Event) -> Window:
        """The window after ``event``."""
        return Window(self.origin, self.entry, self.grants, TRANSITIONS[self.state, event])

    @property
    def may_read(self) -> bool:
        """Whether files of the skill may be read for the model: those of the loaded entry, no others (V2)."""
        return self.state == "open"

    @property
    def is_acting(self) -> bool:
        """Whether the skill's words are in the model's context."""
        return self.state != "closed"

    def permits(self, grant: str) -> bool:
        """Whether a person granted ``grant`` to this very content (A4, A5)."""
        return self.state in ("open", "quoted") and grant in self.grants
