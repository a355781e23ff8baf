"""Every error skillwire raises, in one tree.

    SkillwireError            reference · message · hint · rule
    ├── FormatError           text breaks a rule of the format (line, column)
    ├── NotFoundError         no such skill, file or directory
    ├── ProtocolError         a message breaks the protocol; ``side`` is "local" or "remote"
    ├── VerificationError     bytes or fields do not match their entry, or cannot be verified
    ├── ApprovalError         the user has not approved this content
    ├── OriginError           an unknown or ambiguous origin, or a read that would cross origins
    ├── LimitError            a bound of ``limits.py`` was reached
    ├── ConflictError         a registry has something else under this name or number
    ├── UpstreamError         the source of the skills failed; a retry may help
    └── StoreError            the store on disk cannot be used: locked, damaged, full

``reference`` is a stable kebab-case name, to search for and for programs to match. ``message`` describes the
problem, ``hint`` how to fix it, and ``rule`` is the id of the protocol rule, if there is one. There is a class
only where a caller would act differently. Messages contain skills, URIs and paths inside a catalog, never other
paths of the machine.
"""

from __future__ import annotations

from typing import Literal


class SkillwireError(Exception):
    """The base of all errors: a ``message``, a stable ``reference``, and a ``hint`` for fixing the problem."""

    def __init__(self, reference: str, message: str, hint: str = "", *, rule: str = "") -> None:
        super().__init__(message)
        self.reference = reference
        self.message = message
        self.hint = hint
        self.rule = rule

    @property
    def label(self) -> str:
        """The reference, as shown after a message. ``skillwire explain`` explains it."""
        return f"[{self.reference}]"

    def __str__(self) -> str:
        return f"{self.message} {self.label}" + (f"\n  hint: {self.hint}" if self.hint else "")


class FormatError(SkillwireError):
    """Text that breaks a rule of the format; ``line`` and ``column`` count from 1, if known."""

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
    """A skill, file or directory that does not exist."""


class ProtocolError(SkillwireError):
    """A message that breaks the protocol, sent by this side (``local``) or the other side (``remote``).

    ``missing`` are the names of missing arguments.
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
    """Bytes or fields that do not match the entry; they are never used (V1, V2, V4, V7)."""


class ApprovalError(SkillwireError):
    """The user has not approved exactly this content (A1–A5, V7)."""


class OriginError(SkillwireError):
    """An unknown origin, an ambiguous name, or a read that would cross origins (O1, O3, N1).

    ``choices`` are the labels of the possible origins, if known.
    """

    def __init__(
        self, reference: str, message: str, hint: str = "", *, rule: str = "", choices: tuple[str, ...] = ()
    ) -> None:
        super().__init__(reference, message, hint, rule=rule)
        self.choices = choices


class LimitError(SkillwireError):
    """A bound was reached; nothing beyond it was read."""


class ConflictError(SkillwireError):
    """A change that does not fit what a registry has: such as a number that is used."""


class UpstreamError(SkillwireError):
    """The source of the skills failed: it is unreadable, changing or unreachable. A retry may help."""


class StoreError(SkillwireError):
    """The store on disk cannot be used: locked, damaged, full, or writable by others. No write is ever partial."""
