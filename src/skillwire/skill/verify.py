"""What makes a claim true: bytes that match it (V1, V2, V4).

``VerifiedFile`` and ``VerifiedSkill`` are made here and nowhere else, so whoever holds one holds bytes that were
compared with an entry. That is consistency with what the server said, not a reason to trust the server (V6).

A mismatch is never used. The way out is a fresh entry (``skills/get``), which, being different, needs a new
approval (V3). A skill that promises nothing (``"dynamic"``, or a dialect without digests) cannot be verified at
all (V7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillwire.errors import FormatError, LimitError, VerificationError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.digest import digest_of
from skillwire.skill.frontmatter import SkillDocument, parse_skill_md
from skillwire.skill.uri import is_within, parse_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillwire.skill.entry import Resource, SkillEntry
    from skillwire.skill.frontmatter import Json

STALE = frozenset({"digest-mismatch", "size-mismatch", "frontmatter-mismatch", "file-unlisted"})
"""Mismatches that a fresh entry may explain: the skill has changed (V3)."""
_REFRESH = "get the skill's entry again; if it differs, whoever approved the old one has to look at the new one"


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    """Bytes that match what an entry says of the file at ``uri``."""

    uri: str
    data: bytes
    digest: str

    @property
    def text(self) -> str:
        """The bytes as UTF-8 text; ``FormatError`` if they are none."""
        try:
            return self.data.decode()
        except UnicodeDecodeError as error:
            raise FormatError("not-text", f"{self.uri!r:.300} is not UTF-8 text", "use its bytes") from error


@dataclass(frozen=True, slots=True)
class VerifiedSkill:
    """A ``SKILL.md`` whose bytes and fields are what its entry says."""

    entry: SkillEntry
    file: VerifiedFile
    document: SkillDocument

    @property
    def text(self) -> str:
        """The whole file."""
        return self.file.text

    @property
    def body(self) -> str:
        """The instructions below the frontmatter."""
        return self.document.body


def expect_file(entry: SkillEntry, uri: str, limits: Limits = DEFAULT_LIMITS) -> Resource:
    """What ``entry`` promises about ``uri``: asked before anything is read.

    A file that is not listed equals a mismatch (V2); one that is too large is not worth asking for (B1).
    """
    if entry.is_dynamic:
        raise VerificationError(
            "skill-dynamic",
            f"{entry.uri!r:.300} is generated when it is read; there is nothing to check its bytes against",
            "read it with read_unverified, if a person chose to",
            rule="V7",
        )
    is_inside = entry.is_complete or not entry.is_named  # by name, files may be anywhere on the server (P4)
    if is_inside and not is_within(skill_root(parse_uri(entry.uri)), parse_uri(uri)):
        raise VerificationError(
            "file-outside", f"{uri!r:.300} is outside the skill {entry.uri!r:.300}", _REFRESH, rule="V2"
        )
    resource = entry.resource(uri)
    if resource is None:
        raise VerificationError(
            "file-unlisted", f"{uri!r:.300} is not in the entry of {entry.uri!r:.300}", _REFRESH, rule="V2"
        )
    if resource.digest is None:
        raise VerificationError(
            "digest-unpromised",
            f"the server gives no digest for {uri!r:.300}",
            "get the skill first: some servers promise more then; else read_unverified, if a person chose to",
            rule="V1",
        )
    if resource.size is not None and resource.size > limits.max_file_bytes:
        raise LimitError(
            "file-too-large",
            f"{uri!r:.300} claims {resource.size} bytes, more than the {limits.max_file_bytes} we read",
            "raise Limits.max_file_bytes if you trust the server that far",
            rule="B1",
        )
    return resource


def verify_file(entry: SkillEntry, uri: str, data: bytes, limits: Limits = DEFAULT_LIMITS) -> VerifiedFile:
    """V1: ``data`` as the file at ``uri``, if it is what ``entry`` says it is."""
    resource = expect_file(entry, uri, limits)
    if resource.size is not None and len(data) != resource.size:
        raise VerificationError(
            "size-mismatch",
            f"{uri!r:.300} has {len(data)} bytes, its entry says {resource.size}",
            _REFRESH,
            rule="V1",
        )
    digest = digest_of(data)
    if digest != resource.digest:
        raise VerificationError(
            "digest-mismatch", f"{uri!r:.300} is {digest}, its entry says {resource.digest}", _REFRESH, rule="V1"
        )
    return VerifiedFile(resource.uri, data, digest)


def verify_skill(entry: SkillEntry, data: bytes, limits: Limits = DEFAULT_LIMITS) -> VerifiedSkill:
    """V1 and V4: ``data`` as the ``SKILL.md`` of ``entry``, if its bytes and its fields are those of the entry."""
    file = verify_file(entry, entry.uri, data, limits)
    return VerifiedSkill(entry, file, verify_frontmatter(entry, data, limits))


def verify_frontmatter(entry: SkillEntry, data: bytes, limits: Limits = DEFAULT_LIMITS) -> SkillDocument:
    """V4: the document in ``data``, if its frontmatter is the entry's.

    An entry that was sent with some fields only (older dialects) is held to those.
    """
    try:
        document = parse_skill_md(data, limits)
    except FormatError as error:
        raise VerificationError(
            "frontmatter-mismatch",
            f"the SKILL.md at {entry.uri!r:.300} cannot be read: {error.message}",
            _REFRESH,
            rule="V4",
        ) from error
    if entry.whole_frontmatter:
        names = entry.frontmatter.keys() | document.frontmatter.keys()
        different = differing_fields(entry.frontmatter, document.frontmatter, names)
    else:  # older dialects trim what they copy, and what they left out is blank here
        sent = _trimmed({name: value for name, value in entry.frontmatter.items() if value != ""})
        different = differing_fields(sent, _trimmed(document.frontmatter), sent)
    if different:
        raise VerificationError(
            "frontmatter-mismatch",
            f"the SKILL.md at {entry.uri!r:.300} differs from its entry: {', '.join(different):.300}",
            _REFRESH,
            rule="V4",
        )
    return document


def differing_fields(one: Mapping[str, Json], other: Mapping[str, Json], names: Iterable[str]) -> list[str]:
    """Which of the fields ``names`` are not the same in both, sorted."""
    return sorted(
        name for name in set(names) if name not in one or name not in other or not _same(one[name], other[name])
    )


def _trimmed(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {key: " ".join(value.split()) if isinstance(value, str) else value for key, value in fields.items()}


def _same(one: Json, other: Json) -> bool:
    """Equality as JSON has it: numbers are doubles, and a boolean is no number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other or (_double(one) is not None and _double(one) == _double(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def _double(number: float) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None
