"""Every error skillwire raises, in one tree.

    SkillwireError            reference · message · hint · rule
    ├── FormatError           the author's or caller's text breaks a rule of the format (line, column)
    ├── NotFoundError         no such skill, file or directory here
    ├── ProtocolError         a message breaks the protocol; ``side`` says whose: "local" or "remote"
    ├── VerificationError     what came is not what its entry claims, or claims nothing that could be checked
    ├── ApprovalError         a person has not said yes to this, or not any more
    ├── OriginError           it is not known where this comes from, or it may not go there
    ├── LimitError            a bound of ``limits.py`` was reached before the work was done
    ├── UpstreamError         what holds the skills could not answer now; trying again may help
    └── StoreError            the memory on disk cannot be used: locked, damaged, full

``reference`` is stable and kebab-case: people search for it, programs match on it. ``message`` says what happened
and where, ``hint`` what to do next, ``rule`` the rule of the protocol it is about, if there is one. A new class
appears only when a caller would act differently. Messages name skills, URIs and paths inside a catalog, never a
path of the machine.
"""

from __future__ import annotations

from typing import Literal


class SkillwireError(Exception):
    """What happened (``message``), its stable name (``reference``), and what to do next (``hint``)."""

    def __init__(self, reference: str, message: str, hint: str = "", *, rule: str = "") -> None:
        super().__init__(message)
        self.reference = reference
        self.message = message
        self.hint = hint
        self.rule = rule

    @property
    def label(self) -> str:
        """The reference and the rule, as they stand behind a message."""
        return f"[{self.reference}, rule {self.rule}]" if self.rule else f"[{self.reference}]"

    def __str__(self) -> str:
        return f"{self.message} {self.label}" + (f"\n  hint: {self.hint}" if self.hint else "")


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
        rule: str = "",
    ) -> None:
        super().__init__(reference, message, hint, rule=rule)
        self.line = line
        self.column = column


class NotFoundError(SkillwireError):
    """Nothing here has that name."""


class ProtocolError(SkillwireError):
    """A message that breaks the protocol, sent by us (``local``) or by the other side (``remote``).

    ``missing`` are the names of arguments that the request needs.
    """

    def __init__(
        self,
        reference: str,
        message: str,
        hint: str = "",
        *,
        side: Literal["local", "remote"] = "remote",
        rule: str = "",
        missing: tuple[str, ...] = (),
    ) -> None:
        super().__init__(reference, message, hint, rule=rule)
        self.side = side
        self.missing = missing


class VerificationError(SkillwireError):
    """Bytes or fields that are not what the entry claims; they are never used (V1, V2, V4, V7)."""


class ApprovalError(SkillwireError):
    """No person has said yes to exactly this (A1–A5, V7)."""


class OriginError(SkillwireError):
    """An origin that is unknown, a name that could be several, or a read that would cross origins (O1, O3, N1).

    ``choices`` are the labels of the origins that could be meant, where these are known.
    """

    def __init__(
        self, reference: str, message: str, hint: str = "", *, rule: str = "", choices: tuple[str, ...] = ()
    ) -> None:
        super().__init__(reference, message, hint, rule=rule)
        self.choices = choices


class LimitError(SkillwireError):
    """A bound was reached; nothing beyond it was read."""


class UpstreamError(SkillwireError):
    """The source of the skills could not answer now: unreadable, changing, failing. May be retried."""


class StoreError(SkillwireError):
    """The memory on disk cannot be used: locked, damaged, full, or open to others. Nothing was half written."""
