"""Approval: a person's yes to exactly one content of one skill of one origin (A1–A4).

An approval is bound to the full set of (URI, digest) that was seen at that moment. Another set, whether a file was
rotated, added or removed, is another skill, and the approval does not cover it. Only a complete entry has such a
set: what cannot be verified is never covered by a persisted approval (V7).

Grants are approvals of their own: tools that the skill asks for (``allowed-tools``), and running code. Approving a
skill grants nothing (A4, A5).
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from skillwire.errors import VerificationError
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    from skillwire.skill.entry import SkillEntry

Contents: TypeAlias = frozenset[tuple[str, str]]
EXECUTE = "execute"
"""The grant that lets code run while the model acts on a skill (A5); every other grant is a tool's name."""


@dataclass(frozen=True, slots=True)
class Approval:
    """Who said yes, when, to what."""

    origin: str
    uri: str
    contents: Contents
    by: str
    at: float
    grants: frozenset[str] = frozenset()

    @property
    def fingerprint(self) -> str:
        """A short name for the contents, for people and logs."""
        return fingerprint(self.contents)


@dataclass(frozen=True, slots=True)
class ContentChange:
    """How the files of a skill differ from those that were approved."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    rotated: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.rotated)


def has_contents(entry: SkillEntry) -> bool:
    """Whether ``entry`` says of all its files what they are, so that a yes can be bound to it (A1, V7)."""
    return entry.is_complete and "digest" not in entry.gaps


def contents_of(entry: SkillEntry) -> Contents:
    """The set that an approval of ``entry`` is bound to; ``VerificationError`` if it promises none."""
    pairs = frozenset((file.uri, file.digest) for file in entry.files if file.digest is not None)
    if not has_contents(entry):
        raise VerificationError(
            "approval-unbound",
            f"{entry.uri!r:.300} does not promise what its files are, so that an approval would bind to nothing",
            "it can be used once, by an explicit choice, and is asked about again each time",
            rule="V7",
        )
    return pairs


def fingerprint_of(entry: SkillEntry) -> str:
    """The fingerprint that an approval of ``entry`` would have; empty if there is nothing to bind one to (V7)."""
    return fingerprint(contents_of(entry)) if has_contents(entry) else ""


def covers(approval: Approval, origin: str, entry: SkillEntry) -> bool:
    """A1, A2: whether ``approval`` is for this skill of this origin, with exactly this content."""
    if (approval.origin, approval.uri) != (origin, entry.uri) or not entry.is_complete:
        return False
    return approval.contents == frozenset((file.uri, file.digest) for file in entry.files)


def agrees(contents: Contents, listed: SkillEntry) -> bool:
    """Whether ``listed`` says less than all of a skill, and nothing in it is other than ``contents``.

    Older dialects list skills so. That such a listing says nothing about a file proves nothing about it (L2).
    """
    if listed.is_complete or listed.is_dynamic:
        return False
    said = {parse_uri(file.uri): file.digest for file in listed.files if file.digest is not None}
    return not said or said.items() <= {parse_uri(uri): digest for uri, digest in contents}.items()


def change_since(approval: Approval, entry: SkillEntry) -> ContentChange:
    """What became of the files since ``approval``."""
    before = dict(approval.contents)
    now = {file.uri: file.digest for file in entry.files}
    return ContentChange(
        added=tuple(sorted(now.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - now.keys())),
        rotated=tuple(sorted(uri for uri in now.keys() & before.keys() if now[uri] != before[uri])),
    )


def fingerprint(contents: Contents) -> str:
    """A digest over the whole set, whatever its order."""
    text = "".join(f"{uri}\0{digest}\n" for uri, digest in sorted(contents))
    return "sha256:" + sha256(text.encode()).hexdigest()
