"""Skill URIs: ``skill://<skill-path>/<file-path>`` (U1–U7).

URIs are compared, and containment is decided, on decoded segments and never on text. So ``%2e%2e``, ``%2F`` and
other encodings of a path that leaves the skill are refused like the plain form. Paths inside skillwire are decoded
segments joined by ``/``. No segment can contain a slash, so joining loses nothing.

The first segment has the position of the host in a network URI. It is a name like the others: it keeps its case
(U4) and is never resolved. A scheme does not make something a skill (U5); ``skill`` is only the default.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, unquote_to_bytes

from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator

SKILL_MD = "SKILL.md"
DEFAULT_SCHEME = "skill"
NAMED_SCHEME = "named"  # for URIs that this program gives to skills that their server knows only by name

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BAD_CHARACTER = re.compile("[/\\\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.~/-]+\Z")  # needs no encoding in any position
# Segments that need no decoding and are valid. Most URIs are like this, and a listing has many of them.
_PLAIN_SEGMENT = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9_.~-]+"
_PLAIN_SEGMENTS = re.compile(rf"{_PLAIN_SEGMENT}(?:/{_PLAIN_SEGMENT})*\Z")
# RFC 3986 pchar. Parsers read the first segment as a host, where fewer characters are safe.
_PATH_SAFE = "!$&'()*+,;=:@~"
_HOST_SAFE = "!*'()~"


@dataclass(frozen=True, slots=True)
class SkillUri:
    """A parsed URI: a lower-case scheme and one or more decoded segments."""

    scheme: str
    segments: tuple[str, ...]

    @property
    def path(self) -> str:
        """The decoded segments, joined."""
        return "/".join(self.segments)

    @property
    def parent(self) -> SkillUri:
        """The directory that contains it."""
        return SkillUri(self.scheme, self.segments[:-1])

    def upwards(self) -> Iterator[SkillUri]:
        """This URI, then each enclosing directory, innermost first."""
        for depth in range(len(self.segments), 0, -1):
            yield SkillUri(self.scheme, self.segments[:depth])

    def __str__(self) -> str:
        return format_uri(self.path, self.scheme)


@lru_cache(maxsize=16_384)  # the layers of one request parse the same URIs, and a catalog those of its listing
def parse_uri(text: str, max_length: int = DEFAULT_LIMITS.max_uri_length) -> SkillUri:
    """Parse the URI ``text``. ``FormatError`` if it is invalid (U7)."""
    if len(text) > max_length:
        raise _invalid(text, f"is longer than {max_length} characters")
    refuse_file(text)
    match = _SCHEME.match(text)
    if match is None:
        raise _invalid(text, "has no scheme", "a skill's URI looks like skill://acme/refunds/SKILL.md")
    rest = text[match.end() :]
    if "?" in rest or "#" in rest:
        raise _invalid(text, "has a query or a fragment")
    if rest.count("/") >= DEFAULT_LIMITS.max_uri_segments:
        raise _invalid(text, f"has more than {DEFAULT_LIMITS.max_uri_segments} segments")
    segments = rest.split("/")
    if not _PLAIN_SEGMENTS.match(rest):
        segments = [_decode_segment(text, raw) for raw in segments]
    return SkillUri(match.group(1).lower(), tuple(segments))


def refuse_file(text: str) -> None:
    """Refuse ``file:`` URIs in any spelling: a skill must not name local files (O3)."""
    if text.lstrip()[:5].lower() == "file:":
        raise _invalid(text, "names a local file", rule="O3")


def format_uri(path: str, scheme: str = DEFAULT_SCHEME) -> str:
    """The URI of a decoded path, percent-encoded as RFC 3986 requires (U7)."""
    if _PLAIN_PATH.match(path):
        return f"{scheme}://{path}"
    host, slash, rest = path.partition("/")
    return f"{scheme}://{quote(host, safe=_HOST_SAFE)}{slash}{quote(rest, safe=_PATH_SAFE + '/')}"


def skill_md_uri(skill_path: str, scheme: str = DEFAULT_SCHEME) -> str:
    """The URI of the ``SKILL.md`` of the skill at ``skill_path``, which is always explicit (U1)."""
    return format_uri(f"{skill_path}/{SKILL_MD}", scheme)


def skill_root(uri: SkillUri) -> SkillUri:
    """The root of the skill whose ``SKILL.md`` is at ``uri`` (U2)."""
    if len(uri.segments) < 2 or uri.segments[-1] != SKILL_MD:
        raise _invalid(str(uri), "is not the URI of a SKILL.md", "it ends in <skill-name>/SKILL.md")
    return uri.parent


def root_of(uri: str) -> SkillUri:
    """The root of the skill whose ``SKILL.md`` is at ``uri``."""
    return skill_root(parse_uri(uri))


def is_within(root: SkillUri, uri: SkillUri) -> bool:
    """Whether ``uri`` is strictly inside the directory ``root``, by decoded segments."""
    depth = len(root.segments)
    return uri.scheme == root.scheme and len(uri.segments) > depth and uri.segments[:depth] == root.segments


def path_in_skill(skill: str, uri: str) -> str:
    """The path of a file in the skill whose ``SKILL.md`` is at ``skill``; empty if the file is outside (P4)."""
    try:
        root, place = skill_root(parse_uri(skill)), parse_uri(uri)
    except FormatError:
        return ""
    return "/".join(place.segments[len(root.segments) :]) if is_within(root, place) else ""


def fold(path: str) -> str:
    """``path`` as a case-insensitive, normalising file system compares it. Equal results collide there (B5)."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def parse_path(text: str) -> str:
    """``text`` if it is a decoded path of valid segments, else ``FormatError``. For prefixes and file names."""
    for segment in text.split("/"):
        reason = segment_problem(segment)
        if reason:
            raise FormatError(
                "path-invalid",
                f"the path {text!r:.200} {reason}",
                "write segments separated by single slashes, like acme/billing/refunds",
                rule="U7",
            )
    return text


def segment_problem(segment: str) -> str:
    """The reason why ``segment`` cannot be part of a path (U7), or an empty string."""
    if not segment:
        return "has an empty segment"
    if segment in (".", ".."):
        return "has a '.' or '..' segment"
    if _BAD_CHARACTER.search(segment):
        return "has a segment with a slash, a backslash, a control character or broken text"
    return ""


def resolve_reference(root: SkillUri, base: SkillUri, reference: str) -> SkillUri | None:
    """Resolve the link ``reference`` in the file ``base`` of the skill ``root`` (U6).

    ``None`` if it points to the web, to a mail address or into the same file. ``FormatError`` (``link-outside``)
    if it leaves the skill.
    """
    kind = reference_kind(reference)
    if kind != "relative":
        if kind == "machine":
            raise _outside(reference)
        return None
    path = reference.partition("#")[0].partition("?")[0]
    segments = list(base.segments[:-1])
    for raw in path.split("/"):
        segment = _decode_reference(reference, raw)
        if segment == "..":
            segments.pop()
            if len(segments) < len(root.segments):
                raise _outside(reference)
        elif segment not in ("", "."):
            segments.append(segment)
    return SkillUri(root.scheme, tuple(segments))


def reference_kind(reference: str) -> Literal["relative", "elsewhere", "machine"]:
    """Whether a link is relative, points elsewhere (web, mail, same file) or names a local file ("machine")."""
    lowered = reference.strip().lower()
    if not lowered or lowered.startswith("#"):
        return "elsewhere"
    if lowered.startswith("file:") or re.match(r"[a-z]:[\\/]|\\\\|~/", lowered):
        return "machine"
    if re.match(r"[a-z][a-z0-9+.-]*:|//", lowered):
        return "elsewhere"
    return "machine" if lowered.startswith("/") else "relative"


def _decode_segment(text: str, raw: str) -> str:
    if _BAD_ESCAPE.search(raw):
        raise _invalid(text, "has a broken percent escape")
    try:
        segment = unquote_to_bytes(raw).decode() if "%" in raw else raw
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise _invalid(text, "has an escape that is not UTF-8") from error
    reason = segment_problem(segment)
    if reason:
        raise _invalid(text, reason)
    return segment


def _decode_reference(reference: str, raw: str) -> str:
    """Decode a segment of a link. Authors write links by hand, so a stray ``%`` is text, not an error."""
    segment = unquote_to_bytes(raw.encode(errors="surrogatepass")).decode(errors="surrogateescape")
    if segment not in ("", ".", "..") and _BAD_CHARACTER.search(segment):
        raise _outside(reference)
    return segment


def _invalid(text: str, reason: str, hint: str = "use a URI from the listing", *, rule: str = "") -> FormatError:
    return FormatError("uri-invalid", f"the URI {text!r:.200} {reason}", hint, rule=rule)


def _outside(reference: str) -> FormatError:
    return FormatError(
        "link-outside",
        f"the link {reference!r:.200} leaves the skill's folder",
        "copy the file into the skill and link to it there",
        rule="U6",
    )
