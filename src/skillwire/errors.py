"""Every error skillwire raises, in one tree.

    SkillwireError            reference · message · hint
    ├── FormatError           the author's or caller's text breaks a rule of the format (line, column)
    ├── NotFoundError         no such skill, file or directory here
    ├── ProtocolError         a message breaks the protocol; ``side`` says whose: "local" or "remote"
    ├── LimitError            a bound of ``limits.py`` was reached before the work was done
    └── UpstreamError         what holds the skills could not answer now; trying again may help

``reference`` is stable and kebab-case: people search for it, programs match on it. ``message`` says what
happened and where, ``hint`` what to do next. A new class appears only when a caller would act differently.
Messages name skills, URIs and paths inside a catalog, never a path of the machine.
"""

from __future__ import annotations

from typing import Literal


class SkillwireError(Exception):
    """What happened (``message``), its stable name (``reference``), and what to do next (``hint``)."""

    def __init__(self, reference: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.reference = reference
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} [{self.reference}]" + (f"\n  hint: {self.hint}" if self.hint else "")


class FormatError(SkillwireError):
    """Text that breaks a rule of the format; ``line`` and ``column`` count from 1 where they are known."""

    def __init__(
        self,
        reference: str,
        message: str,
        hint: str = "",
        *,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(reference, message, hint)
        self.line = line
        self.column = column


class NotFoundError(SkillwireError):
    """Nothing here has that name."""


class ProtocolError(SkillwireError):
    """A message that breaks the protocol, sent by us (``local``) or by the other side (``remote``)."""

    def __init__(
        self, reference: str, message: str, hint: str = "", *, side: Literal["local", "remote"] = "remote"
    ) -> None:
        super().__init__(reference, message, hint)
        self.side = side


class LimitError(SkillwireError):
    """A bound was reached; nothing beyond it was read."""


class UpstreamError(SkillwireError):
    """The source of the skills could not answer now: unreadable, changing, failing. May be retried."""
