"""The values of a registry: names, versions, references to a version, and who may do what. Pure rules.

A skill has a path, such as ``acme/billing/refunds``. Its first segment is the namespace, and its last one the name
of the skill (U3). A channel points to a version. ``skill://acme/billing/refunds`` is the version of the channel
``stable``; ``skill://acme/@1.2.0/billing/refunds`` and ``skill://acme/@beta/billing/refunds`` are a version and
another channel. They are never below the skill, because those files would belong to the stable version. A channel
begins with a letter and a version with a digit, so one cannot be mistaken for the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import total_ordering
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from skillwire.errors import FormatError
from skillwire.skill.entry import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Role: TypeAlias = Literal["reader", "publisher", "reviewer", "owner"]
Action: TypeAlias = Literal["read", "publish", "review", "manage"]

STABLE: Final = "stable"
"""The channel of a skill's ordinary URI."""

ROLES: Final[Mapping[Role, frozenset[Action]]] = {
    "reader": frozenset({"read"}),
    "publisher": frozenset({"read", "publish"}),
    "reviewer": frozenset({"read", "review"}),
    "owner": frozenset({"read", "publish", "review", "manage"}),
}

_WORD = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_SEGMENT = re.compile(_WORD + r"\Z")
_CHANNEL = re.compile(r"(?=[a-z])" + _WORD + r"\Z")
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?\Z", re.ASCII
)
_PRINCIPAL = re.compile(r"(?:user|jwt|group|publisher):[^\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]{1,200}\Z")
_LONGEST_NAMESPACE, _LONGEST_SEGMENT, _LONGEST_CHANNEL, _LONGEST_VERSION, _MOST_SEGMENTS = 40, 64, 40, 64, 16
_LOOKALIKES = str.maketrans({"0": "o", "1": "l", "i": "l", "5": "s", "-": ""})


@dataclass(frozen=True, slots=True)
class Identity:
    """Who makes a request, and what a token limits it to.

    ``principals`` are the names that roles are granted to: ``user:ada``, ``jwt:ada``, ``group:payments``,
    ``publisher:7``. Without a token there are none, and only public namespaces are visible. A token can be limited
    to one namespace and to some actions; it can always read there, and what is public. ``expires_at`` is when the
    token ends, if it does.
    """

    name: str = ""
    principals: frozenset[str] = frozenset()
    is_admin: bool = False
    namespace: str | None = None
    actions: frozenset[Action] | None = None
    expires_at: float | None = None

    @property
    def persons(self) -> frozenset[str]:
        """The principals that are one person or program. Two people can share only the others, the groups."""
        return frozenset(each for each in self.principals if not each.startswith("group:"))

    @property
    def subject(self) -> str | None:
        """The principal that becomes the owner of what this identity creates."""
        return self.name if self.name in self.persons else min(self.persons, default=None)


ANONYMOUS: Final = Identity()


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version (2.0.0), without build metadata: two builds of one version could not be told apart."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()

    @property
    def is_prerelease(self) -> bool:
        """Whether it comes before a release, as ``1.2.0-rc.1`` does. Such a version never becomes ``stable``."""
        return bool(self.pre)

    def next_patch(self) -> Version:
        """The next version after this one."""
        return Version(self.major, self.minor, self.patch + (0 if self.pre else 1))

    def __str__(self) -> str:
        number = f"{self.major}.{self.minor}.{self.patch}"
        return f"{number}-{'.'.join(self.pre)}" if self.pre else number

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def _key(self) -> tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]:
        # Numbers compare as numbers and come before words; a version without ``pre`` comes after all with one.
        parts = tuple((not each.isdigit(), int(each) if each.isdigit() else 0, each) for each in self.pre)
        return self.major, self.minor, self.patch, not self.pre, parts


FIRST_VERSION: Final = Version(0, 1, 0)
"""The number of the first version, if its author gives none."""


@dataclass(frozen=True, slots=True)
class SkillRef:
    """A skill, and which of its versions: a version, a channel, or neither for ``stable``.

    ``path`` is the whole path of the skill, with the namespace, and without version and channel.
    """

    path: str
    version: str | None = None
    channel: str | None = None

    @property
    def namespace(self) -> str:
        """The first segment of the path."""
        return self.path.partition("/")[0]

    @property
    def name(self) -> str:
        """The last segment of the path."""
        return self.path.rpartition("/")[2]

    @property
    def served_path(self) -> str:
        """The path in the URI of this version: ``acme/@1.2.0/billing/refunds``."""
        at = self.version or self.channel
        if at is None or at == STABLE:
            return self.path
        namespace, _, rest = self.path.partition("/")
        return f"{namespace}/@{at}/{rest}"

    def __str__(self) -> str:
        at = self.version or self.channel
        return self.path if at is None else f"{self.path}@{at}"


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One file of a version: its path in the skill, its digest and size, and whether it is executable."""

    path: str
    digest: str
    size: int
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one version contains. It has no URIs, so that the channel and the exact version share it.

    ``build_manifest`` makes one.
    """

    frontmatter: Mapping[str, Any]
    files: tuple[ManifestFile, ...]  # sorted by path, with SKILL.md
    digest: str  # of all paths, digests and executable bits: equal content has an equal digest


@dataclass(frozen=True, slots=True)
class Actor:
    """Who changes something, from where (an address, or ``local``), and when. For the audit log."""

    identity: Identity
    address: str
    at: float


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of a namespace."""

    skills: int = 10_000
    bytes: int = 10 * 1024**3  # of all files of all versions, each file counted once
    versions: int = 1_000  # of one skill


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace. ``public``: visible without a token. ``reviewed``: a channel moves after an approval."""

    name: str
    public: bool = False
    reviewed: bool = False
    quota: Quota = field(default_factory=Quota)


def parse_namespace(text: str) -> str:
    """``text`` if it is the name of a namespace."""
    if len(text) > _LONGEST_NAMESPACE or not _SEGMENT.match(text):
        raise _invalid("namespace", text, "use lower-case letters, digits and single hyphens, such as acme-tools")
    return text


def parse_channel(text: str) -> str:
    """``text`` if it is the name of a channel."""
    if len(text) > _LONGEST_CHANNEL or not _CHANNEL.match(text):
        raise _invalid("channel", text, "begin with a letter, such as beta; a version begins with a digit")
    return text


def parse_version(text: str) -> Version:
    """The semantic version ``text``."""
    match = _VERSION.match(text) if len(text) <= _LONGEST_VERSION else None
    parts = () if match is None or match[4] is None else tuple(match[4].split("."))
    if match is None or any(part.isdigit() and len(part) > 1 and part[0] == "0" for part in parts):
        raise _invalid("version", text, "write three numbers, such as 1.2.0 or 1.2.0-rc.1 (https://semver.org)")
    return Version(int(match[1]), int(match[2]), int(match[3]), parts)


def parse_skill_path(text: str) -> str:
    """``text`` if a skill can be published there: a namespace, folders if wanted, and the name."""
    segments = text.split("/")
    parse_namespace(segments[0])
    valid = all(len(segment) <= _LONGEST_SEGMENT and _SEGMENT.match(segment) for segment in segments)
    if not valid or not 2 <= len(segments) <= _MOST_SEGMENTS:
        raise _invalid("skill path", text, "write NAMESPACE/NAME, with lower-case letters, digits and hyphens")
    return text


def parse_principal(text: str) -> str:
    """``text`` if a role can be granted to it."""
    if not _PRINCIPAL.match(text):
        raise _invalid("principal", text, "write user:NAME, jwt:SUBJECT, group:NAME or publisher:NUMBER")
    return text


def parse_reference(text: str) -> SkillRef:
    """A reference as people write it: ``acme/refunds``, ``acme/refunds@1.2.0`` or ``acme/refunds@beta``."""
    path, at, which = text.partition("@")
    return _reference(parse_skill_path(path), which if at else None)


def parse_served_path(path: str) -> SkillRef | None:
    """The reference in the path of a URI, such as ``acme/@1.2.0/billing/refunds``; ``None`` if it is none."""
    namespace, _, rest = path.partition("/")
    which = None
    if rest.startswith("@"):
        which, _, rest = rest[1:].partition("/")
    try:
        return _reference(parse_skill_path(f"{namespace}/{rest}"), which)
    except FormatError:
        return None


def skeleton(namespace: str) -> str:
    """What two namespaces that look alike have in common. A new namespace must not look like another one."""
    return namespace.translate(_LOOKALIKES)


def build_manifest(frontmatter: Mapping[str, Any], files: Iterable[ManifestFile]) -> Manifest:
    """The manifest of a version, with its digest."""
    in_order = tuple(sorted(files, key=lambda file: file.path))
    lines = (f"{file.digest} {'x' if file.executable else '-'} {file.path}\0" for file in in_order)
    return Manifest(frontmatter, in_order, digest_of("".join(lines).encode(errors="surrogatepass")))


def chosen_version(frontmatter: Mapping[str, Any], asked: str | None) -> str | None:
    """The number of a new version: ``metadata.version``, or the one that is ``asked`` for if there is none.

    A ``SKILL.md`` is never rewritten, so a number that differs from its own is refused.
    """
    metadata = frontmatter.get("metadata")
    declared = cast("dict[str, object]", metadata).get("version") if isinstance(metadata, dict) else None
    if declared is None:
        return None if asked is None else str(parse_version(asked))
    number = str(parse_version(str(declared)))
    if asked is not None and asked != number:
        raise FormatError(
            "version-differs",
            f"SKILL.md has metadata.version {number!r}, and {asked!r:.80} was asked for",
            "remove --version, or change metadata.version in SKILL.md",
        )
    return number


def _reference(path: str, which: str | None) -> SkillRef:
    if which is None:
        return SkillRef(path)
    if which[:1].isdigit():
        return SkillRef(path, version=str(parse_version(which)))
    return SkillRef(path, channel=parse_channel(which))


def _invalid(what: str, text: str, hint: str) -> FormatError:
    return FormatError(f"{what.replace(' ', '-')}-invalid", f"{text!r:.100} is not a {what}", hint)
