"""Approval of exactly one content of one skill of one origin (A1–A6).

An approval is bound to the full set of (URI, digest) that the person saw, and to a hash of the entry's
frontmatter: the description and the tools that a person read belong to what they approved (A6). If a file was
changed, added or removed, or the frontmatter changed, the approval does not cover the skill. Only a complete entry
has such a set: what cannot be verified is never covered by a persisted approval (V7).

Grants are separate decisions: tools that the skill asks for (``allowed-tools``), and running code. Approving a
skill grants nothing (A4, A5).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from skillwire.errors import VerificationError
from skillwire.skill.digest import digest_of
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.skill.entry import SkillEntry

Contents: TypeAlias = frozenset[tuple[str, str]]
"""(URI, digest) of every file, and of the frontmatter, whose URI is that of ``SKILL.md`` with ``#frontmatter``."""
_FRONTMATTER = "#frontmatter"
EXECUTE = "execute"
"""The grant that lets code run while the model acts on a skill (A5); every other grant is a tool's."""
_TOOL = "tool:"


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
    has_other_frontmatter: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.rotated or self.has_other_frontmatter)


def tool_grant(tool: str) -> str:
    """The grant of a tool: its name, or ``tool:NAME`` where the name alone would mean another grant.

    A skill chooses the names of the tools that it asks for, so none may be read as ``EXECUTE``.
    """
    return _TOOL + tool if tool == EXECUTE or tool.startswith(_TOOL) else tool


def granted_tool(grant: str) -> str | None:
    """The tool that ``grant`` is for; ``None`` for ``EXECUTE``."""
    return None if grant == EXECUTE else grant.removeprefix(_TOOL)


def has_contents(entry: SkillEntry) -> bool:
    """Whether ``entry`` says of all its files what they are, so that a yes can be bound to it (A1, V7)."""
    return entry.is_complete and "digest" not in entry.gaps


def contents_of(entry: SkillEntry) -> Contents:
    """The set that an approval of ``entry`` is bound to; ``VerificationError`` if it promises none."""
    if not has_contents(entry):
        raise VerificationError(
            "approval-unbound",
            f"{entry.uri!r:.300} does not promise what its files are, so that an approval would bind to nothing",
            "it can be used once, by an explicit choice, and is asked about again each time",
            rule="V7",
        )
    return claimed_contents(entry)


def make_contents(uri: str, files: Mapping[str, str], frontmatter: str) -> Contents:
    """The contents of the skill at ``uri``, from the digests of its files and of its frontmatter."""
    return frozenset([(uri + _FRONTMATTER, frontmatter), *files.items()])


def file_digests(contents: Contents) -> dict[str, str]:
    """The digest of each file in ``contents``."""
    return {uri: digest for uri, digest in contents if not uri.endswith(_FRONTMATTER)}


def frontmatter_digest(contents: Contents) -> str:
    """The digest of the frontmatter in ``contents``."""
    return next((digest for uri, digest in contents if uri.endswith(_FRONTMATTER)), "")


def claimed_contents(entry: SkillEntry) -> Contents:
    """Whatever ``entry`` says of the skill: its frontmatter, and the files that have digests.

    Enough to decline a skill; only ``contents_of`` is enough to approve one.
    """
    canonical = json.dumps(entry.frontmatter, sort_keys=True, separators=(",", ":"))
    files = {file.uri: file.digest for file in entry.files if file.digest is not None}
    return make_contents(entry.uri, files, digest_of(canonical.encode()))


def fingerprint_of(entry: SkillEntry) -> str:
    """The fingerprint that an approval of ``entry`` would have; empty if there is nothing to bind one to (V7)."""
    return fingerprint(contents_of(entry)) if has_contents(entry) else ""


def covers(approval: Approval, origin: str, entry: SkillEntry) -> bool:
    """A1, A2, A6: whether ``approval`` is for this skill of this origin, with exactly this content."""
    is_same_skill = (approval.origin, approval.uri) == (origin, entry.uri)
    return is_same_skill and has_contents(entry) and approval.contents == claimed_contents(entry)


def agrees(contents: Contents, listed: SkillEntry) -> bool:
    """Whether ``listed`` says less than all of a skill, and nothing in it is other than ``contents``.

    Older dialects list skills so. That such a listing says nothing about a file proves nothing about it (L2).
    """
    if listed.is_complete or listed.is_dynamic:
        return False
    said = {parse_uri(file.uri): file.digest for file in listed.files if file.digest is not None}
    return (
        not said
        or said.items() <= {parse_uri(uri): digest for uri, digest in file_digests(contents).items()}.items()
    )


def change_since(approval: Approval, entry: SkillEntry) -> ContentChange:
    """How the skill differs from what ``approval`` is for."""
    before = file_digests(approval.contents)
    now = {file.uri: file.digest for file in entry.files}
    return ContentChange(
        added=tuple(sorted(now.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - now.keys())),
        rotated=tuple(sorted(uri for uri in now.keys() & before.keys() if now[uri] != before[uri])),
        has_other_frontmatter=frontmatter_digest(approval.contents) != frontmatter_digest(claimed_contents(entry)),
    )


def fingerprint(contents: Contents) -> str:
    """A digest over the whole set, whatever its order."""
    text = "".join(f"{uri}\0{digest}\n" for uri, digest in sorted(contents))
    return digest_of(text.encode())
