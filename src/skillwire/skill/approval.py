"""Approvals. Each covers exactly one content of one skill of one origin (A1–A6).

An approval is bound to the full set of (URI, digest) that the person saw, and to a hash of the entry's
frontmatter, because the person also read the description and the requested tools (A6). If a file is changed, added
or removed, or the frontmatter changes, the approval does not cover the skill. Only a complete entry has such a
set, so a stored approval never covers a skill that cannot be verified (V7).

Grants are separate decisions: the tools that the skill requests (``allowed-tools``), and running code. Approving a
skill grants nothing (A4, A5).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from skillwire.errors import VerificationError
from skillwire.skill.entry import digest_of
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.skill.entry import SkillEntry

Contents: TypeAlias = frozenset[tuple[str, str]]
"""(URI, digest) of every file, and of the frontmatter, whose URI is that of ``SKILL.md`` with ``#frontmatter``."""
_FRONTMATTER = "#frontmatter"
EXECUTE = "execute"
"""The grant that lets code run while the model acts on a skill (A5). Every other grant is for a tool."""
_TOOL = "tool:"


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's approval of one content of a skill."""

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
    """The grant for a tool: its name, or ``tool:NAME`` if the name alone would mean another grant.

    A skill chooses the names of the tools that it requests, so no name may be read as ``EXECUTE``.
    """
    return _TOOL + tool if tool == EXECUTE or tool.startswith(_TOOL) else tool


def granted_tool(grant: str) -> str | None:
    """The tool that ``grant`` is for; ``None`` for ``EXECUTE``."""
    return None if grant == EXECUTE else grant.removeprefix(_TOOL)


def has_contents(entry: SkillEntry) -> bool:
    """Whether ``entry`` has a digest for every file, so that an approval can be bound to it (A1, V7)."""
    return entry.is_complete and "digest" not in entry.gaps


def contents_of(entry: SkillEntry) -> Contents:
    """The set that an approval of ``entry`` is bound to. ``VerificationError`` if digests are missing."""
    if not has_contents(entry):
        raise VerificationError(
            "approval-unbound",
            f"the entry of {entry.uri!r:.300} does not have digests of all files, so it cannot be approved",
            "approve a single use; each further use needs a new approval",
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
    """The frontmatter of ``entry``, and its files that have digests.

    This is enough to decline a skill. Approving one needs ``contents_of``.
    """
    canonical = json.dumps(entry.frontmatter, sort_keys=True, separators=(",", ":"))
    files = {file.uri: file.digest for file in entry.files if file.digest is not None}
    return make_contents(entry.uri, files, digest_of(canonical.encode()))


def fingerprint_of(entry: SkillEntry) -> str:
    """The fingerprint that an approval of ``entry`` would have. Empty if it cannot be approved (V7)."""
    return fingerprint(contents_of(entry)) if has_contents(entry) else ""


def covers(approval: Approval, origin: str, entry: SkillEntry) -> bool:
    """A1, A2, A6: whether ``approval`` is for this skill of this origin, with exactly this content."""
    is_same_skill = (approval.origin, approval.uri) == (origin, entry.uri)
    return is_same_skill and has_contents(entry) and approval.contents == claimed_contents(entry)


def agrees(contents: Contents, listed: SkillEntry) -> bool:
    """Whether ``listed`` describes only part of a skill, and that part agrees with ``contents``.

    Older dialects list skills this way. A file that is missing from such a listing may still exist (L2).
    """
    if listed.is_complete or listed.is_dynamic:
        return False
    claimed = {parse_uri(file.uri): file.digest for file in listed.files if file.digest is not None}
    known = {parse_uri(uri): digest for uri, digest in file_digests(contents).items()}
    return claimed.items() <= known.items()


def change_since(approval: Approval | None, entry: SkillEntry) -> ContentChange | None:
    """How the skill differs from the approved content; ``None`` if none was approved."""
    if approval is None:
        return None
    before = file_digests(approval.contents)
    now = {file.uri: file.digest for file in entry.files}
    return ContentChange(
        added=tuple(sorted(now.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - now.keys())),
        rotated=tuple(sorted(uri for uri in now.keys() & before.keys() if now[uri] != before[uri])),
        has_other_frontmatter=frontmatter_digest(approval.contents) != frontmatter_digest(claimed_contents(entry)),
    )


def fingerprint(contents: Contents) -> str:
    """A digest over the whole set, independent of its order."""
    text = "".join(f"{uri}\0{digest}\n" for uri, digest in sorted(contents))
    return digest_of(text.encode())
