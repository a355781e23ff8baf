"""Compares bytes with the claims of an entry (V1, V2, V4).

A ``VerifiedFile`` is created only here, so its bytes always match an entry. This proves that the server is
consistent, not that it can be trusted (V6).

Bytes that do not match are never used. The caller can get a fresh entry (``skills/get``). If that entry is
different, it needs a new approval (V3). A skill without digests (``"dynamic"``, or in an older dialect) cannot be
verified (V7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillwire.errors import FormatError, LimitError, VerificationError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.entry import digest_of
from skillwire.skill.frontmatter import SkillDocument, parse_skill_md
from skillwire.skill.uri import is_within, parse_uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillwire.skill.entry import Resource, SkillEntry
    from skillwire.skill.frontmatter import Json

STALE = frozenset({"digest-mismatch", "size-mismatch", "frontmatter-mismatch", "file-unlisted"})
"""Mismatches that a fresh entry may resolve, because the skill has changed (V3)."""
_REFRESH = "get the skill's entry again; if it differs, the skill needs a new approval"


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    """Bytes that match the claim of an entry about the file at ``uri``."""

    uri: str
    data: bytes
    digest: str

    @property
    def text(self) -> str:
        """The bytes as UTF-8 text. ``FormatError`` if they are not UTF-8."""
        try:
            return self.data.decode()
        except UnicodeDecodeError as error:
            raise FormatError("not-text", f"{self.uri!r:.300} is not UTF-8 text", "use its bytes") from error


def expect_file(entry: SkillEntry, uri: str, limits: Limits = DEFAULT_LIMITS) -> Resource:
    """The claim of ``entry`` about the file at ``uri``. Call this before reading the file.

    A file that is not listed is a mismatch (V2). A file that is too large is refused before it is fetched (B1).
    """
    if entry.is_dynamic:
        raise VerificationError(
            "skill-dynamic",
            f"{entry.uri!r:.300} is generated on each read, so its bytes cannot be verified",
            "if a person decided to use it anyway, read it with read_unverified",
            rule="V7",
        )
    # The files of a skill that the server knows by name may be anywhere on the server (P4).
    is_inside = entry.is_complete or not entry.is_named
    if is_inside and not is_within(entry.root, parse_uri(uri)):
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
            f"the server sent no digest for {uri!r:.300}",
            "get the skill first, since some servers send digests only then; else use read_unverified, if a person"
            " decided to",
            rule="V1",
        )
    if resource.size is not None and resource.size > limits.max_file_bytes:
        raise LimitError(
            "file-too-large",
            f"{uri!r:.300} has {resource.size} bytes, more than the limit of {limits.max_file_bytes}",
            "raise Limits.max_file_bytes if you trust the server",
            rule="B1",
        )
    return resource


def verify_file(entry: SkillEntry, uri: str, data: bytes, limits: Limits = DEFAULT_LIMITS) -> VerifiedFile:
    """Compare ``data`` with the claim of ``entry`` about the file at ``uri`` (V1)."""
    resource = expect_file(entry, uri, limits)
    if resource.size is not None and len(data) != resource.size:
        raise VerificationError(
            "size-mismatch",
            f"{uri!r:.300} has {len(data)} bytes, but its entry claims {resource.size}",
            _REFRESH,
            rule="V1",
        )
    digest = digest_of(data)
    if digest != resource.digest:
        raise VerificationError(
            "digest-mismatch",
            f"{uri!r:.300} has the digest {digest}, but its entry claims {resource.digest}",
            _REFRESH,
            rule="V1",
        )
    return VerifiedFile(resource.uri, data, digest)


def verify_skill_md(entry: SkillEntry, data: bytes, limits: Limits = DEFAULT_LIMITS) -> VerifiedFile:
    """Compare ``data``, the ``SKILL.md`` of ``entry``, and its fields with the entry (V1, V4)."""
    file = verify_file(entry, entry.uri, data, limits)
    verify_frontmatter(entry, data, limits)
    return file


def verify_frontmatter(entry: SkillEntry, data: bytes, limits: Limits = DEFAULT_LIMITS) -> SkillDocument:
    """Parse ``data`` and compare its frontmatter with that of ``entry`` (V4).

    If the server sent only some fields (older dialects), only those are compared.
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
    else:  # older dialects trim the values they copy; a missing value is an empty text here
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


def is_same(one: SkillEntry, other: SkillEntry) -> bool:
    """Whether two entries make the same claim (A2). The order of files does not matter."""
    return (
        one.uri == other.uri
        and not differing_fields(one.frontmatter, other.frontmatter, one.frontmatter.keys() | other.frontmatter)
        and type(one.resources) is type(other.resources)
        and set(one.files) == set(other.files)
    )


def differing_fields(one: Mapping[str, Json], other: Mapping[str, Json], names: Iterable[str]) -> list[str]:
    """The fields of ``names`` that differ, sorted."""
    return sorted(
        name for name in set(names) if name not in one or name not in other or not _same(one[name], other[name])
    )


def _trimmed(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {key: " ".join(value.split()) if isinstance(value, str) else value for key, value in fields.items()}


def _same(one: Json, other: Json) -> bool:
    """Equality of JSON values: numbers are doubles, and a boolean is not a number."""
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
