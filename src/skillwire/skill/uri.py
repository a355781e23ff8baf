"""Skill URIs: ``skill://<skill-path>/<file-path>`` (U1–U7).

A URI is compared and contained on its decoded segments, never as text, so that ``%2e%2e``, ``%2F`` and
other spellings of a way out mean the same as the plain one: refused. Paths inside skillwire are decoded
segments joined by ``/``; no segment can hold a slash, so the join loses nothing.

The first segment stands where a network URI has its host. It is a name like the others: it keeps its case
(U4) and is never resolved. No scheme makes something a skill (U5); ``skill`` is only the default.
"""

from __future__ import annotations

import re
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
NAMED_SCHEME = "named"  # of the identities that this program gives to skills that their server knows by name

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BAD_CHARACTER = re.compile("[/\\\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.~/-]+\Z")  # nothing to encode, wherever it stands
# RFC 3986 pchar; in the first segment, which parsers read as a host, only what is safe there.
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
        """The directory this stands in."""
        return SkillUri(self.scheme, self.segments[:-1])

    def upwards(self) -> Iterator[SkillUri]:
        """This place, then each directory around it, from the inside out."""
        for depth in range(len(self.segments), 0, -1):
            yield SkillUri(self.scheme, self.segments[:depth])

    def __str__(self) -> str:
        return format_uri(self.path, self.scheme)


@lru_cache(maxsize=16_384)  # layers of one request parse the same few; a catalog parses those of its listing
def parse_uri(text: str, max_length: int = DEFAULT_LIMITS.max_uri_length) -> SkillUri:
    """The URI in ``text``; ``FormatError`` for whatever U7 refuses."""
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
    segments = tuple(_decode_segment(text, raw) for raw in rest.split("/"))
    return SkillUri(match.group(1).lower(), segments)


def refuse_file(text: str) -> None:
    """O3: no skill names a file of somebody's machine, in no spelling of ``file:``."""
    if text.lstrip()[:5].lower() == "file:":
        raise _invalid(text, "names a file of a machine", rule="O3")


def format_uri(path: str, scheme: str = DEFAULT_SCHEME) -> str:
    """The URI of a decoded path, percent-encoded as RFC 3986 asks (U7)."""
    if _PLAIN_PATH.match(path):
        return f"{scheme}://{path}"
    host, slash, rest = path.partition("/")
    return f"{scheme}://{quote(host, safe=_HOST_SAFE)}{slash}{quote(rest, safe=_PATH_SAFE + '/')}"


def skill_md_uri(skill_path: str, scheme: str = DEFAULT_SCHEME) -> str:
    """The URI of the ``SKILL.md`` of the skill at ``skill_path`` (U1: it is always explicit)."""
    return format_uri(f"{skill_path}/{SKILL_MD}", scheme)


def skill_root(uri: SkillUri) -> SkillUri:
    """The root of the skill whose ``SKILL.md`` is at ``uri`` (U2)."""
    if len(uri.segments) < 2 or uri.segments[-1] != SKILL_MD:
        raise _invalid(str(uri), "is not the URI of a SKILL.md", "it ends in <skill-name>/SKILL.md")
    return uri.parent


def is_within(root: SkillUri, uri: SkillUri) -> bool:
    """Whether ``uri`` is strictly inside the directory ``root``, by decoded segments."""
    depth = len(root.segments)
    return uri.scheme == root.scheme and len(uri.segments) > depth and uri.segments[:depth] == root.segments


def parse_path(text: str) -> str:
    """``text`` if it is a decoded path of safe segments, else ``FormatError``. For prefixes and keys of files."""
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
    """Why ``segment`` cannot be part of a path (U7), or an empty string."""
    if not segment:
        return "has an empty segment"
    if segment in (".", ".."):
        return "has a '.' or '..' segment"
    if _BAD_CHARACTER.search(segment):
        return "has a segment with a slash, a backslash, a control character or broken text"
    return ""


def resolve_reference(root: SkillUri, base: SkillUri, reference: str) -> SkillUri | None:
    """What ``reference``, standing in the file ``base`` of the skill ``root``, points at (U6).

    ``None`` if it points at the web, at a mail address or at a place in the same file. ``FormatError``
    (``link-outside``) if it would leave the skill.
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
    """Whether a link stays with the skill, goes elsewhere (web, mail, same file) or names this machine."""
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
    """Authors write links by hand: a stray ``%`` is text, an encoded way out is still a way out."""
    segment = unquote_to_bytes(raw.encode(errors="surrogatepass")).decode(errors="surrogateescape")
    if segment not in ("", ".", "..") and _BAD_CHARACTER.search(segment):
        raise _outside(reference)
    return segment


def _invalid(
    text: str, reason: str, hint: str = "use a URI as the listing gives it", *, rule: str = ""
) -> FormatError:
    return FormatError("uri-invalid", f"the URI {text!r:.200} {reason}", hint, rule=rule)


def _outside(reference: str) -> FormatError:
    return FormatError(
        "link-outside",
        f"the link {reference!r:.200} leaves the skill's folder",
        "copy the file into the skill and link to it there",
        rule="U6",
    )
