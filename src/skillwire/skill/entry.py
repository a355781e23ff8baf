"""Entries: what a server claims about a skill (E1–E5).

A ``SkillEntry`` is a claim, whoever made it. Nothing here makes it true; bytes that match it do (``verify.py``).
What a server did not promise is absent from the value, never made up: a missing ``size`` or ``digest`` is
``None``, a list of files that may not be all is ``Partial``, and ``gaps`` says it in words (E2b, and the older
dialects).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from skillwire.errors import FormatError
from skillwire.skill.uri import DEFAULT_SCHEME, NAMED_SCHEME, format_uri, parse_uri, skill_md_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillwire.skill.values import Json

Audience: TypeAlias = Literal["user", "assistant"]
Dynamic: TypeAlias = Literal["dynamic"]
DYNAMIC: Dynamic = "dynamic"
Gap: TypeAlias = Literal["manifest", "digest", "size", "frontmatter"]
_RESERVED_META = "io.modelcontextprotocol"
_SKILLS_META = "io.modelcontextprotocol.skills/"  # what the specification recommends for skills (R4)

_META_KEY = re.compile(
    r"[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z][A-Za-z0-9-]*)+/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z"
)


class Resource(NamedTuple):
    """One file of a skill: where it is, what its bytes hash to, how many they are (E2, E3).

    ``None`` where the server did not say. The servers of this package, and of the extension, always say.
    """

    uri: str
    digest: str | None
    size: int | None


@dataclass(frozen=True, slots=True)
class Partial:
    """Files that a server named without promising that they are all; ``names`` by URI, where it gave any.

    ``arguments`` are those that were given for a skill that takes some (P2); ``None`` for a required one that is
    still missing.
    """

    known: tuple[Resource, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    arguments: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"], compare=False)


@dataclass(frozen=True, slots=True)
class SkillMeta:
    """What the one who serves a skill says about it, beside what its author wrote.

    An unlisted skill is served to whoever asks for it and absent from the listing. ``audience`` (R3) and
    ``meta``, under a reverse-domain prefix (R4), go with the resources of the skill.
    """

    listed: bool = True
    audience: tuple[Audience, ...] = ("assistant",)
    meta: Mapping[str, Json] = field(default_factory=dict[str, "Json"])

    def __post_init__(self) -> None:
        for key in self.meta:
            is_reserved = key.startswith(_RESERVED_META) and not key.startswith(_SKILLS_META)
            if not _META_KEY.match(key) or is_reserved:
                raise FormatError(
                    "meta-key-invalid",
                    f"the _meta key {key!r:.100} has no prefix of its own",
                    f"begin it with a reversed domain you own, such as com.example/owner, or with {_SKILLS_META}",
                )


DEFAULT_META = SkillMeta()


@dataclass(frozen=True, slots=True)
class SkillEntry:
    """``{uri, frontmatter, resources}``: the address of a ``SKILL.md``, all its fields, all its files.

    ``resources`` is ``"dynamic"`` for a skill whose bytes are made when they are read, and ``Partial`` where a
    dialect has no complete list. ``whole_frontmatter`` is false where only some fields were sent. ``meta``,
    ``modified`` and ``received`` (the entry as it came, if it had fields that we do not know) are not part of the
    claim.
    """

    uri: str
    frontmatter: Mapping[str, Json]
    resources: tuple[Resource, ...] | Partial | Dynamic
    meta: SkillMeta = field(default=DEFAULT_META, compare=False)
    modified: float | None = field(default=None, compare=False)
    whole_frontmatter: bool = True
    received: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The label in the frontmatter. Identity is the URI (E5)."""
        return str(self.frontmatter.get("name", ""))

    @property
    def description(self) -> str:
        """What the skill does and when to use it, in the author's words."""
        return str(self.frontmatter.get("description", ""))

    @property
    def listed(self) -> bool:
        """Whether the skill is in the listing."""
        return self.meta.listed

    @property
    def is_dynamic(self) -> bool:
        """Whether the bytes are made on reading, so that nothing about them can be claimed."""
        return self.resources == DYNAMIC

    @property
    def arguments(self) -> Mapping[str, str | None]:
        """The arguments that were given for it; ``None`` for a required one that is missing (P2)."""
        return self.resources.arguments if isinstance(self.resources, Partial) else {}

    @property
    def is_named(self) -> bool:
        """Whether its server knows the skill by name, so that its files may be anywhere on that server (P4)."""
        return self.uri.startswith(f"{NAMED_SCHEME}://")

    @property
    def is_complete(self) -> bool:
        """Whether ``files`` are all the files there are (E2)."""
        return isinstance(self.resources, tuple)

    @property
    def is_short(self) -> bool:
        """Whether the server may promise more when it is asked for the skill: some dialects list little."""
        return not self.is_complete and not self.is_dynamic

    @property
    def size(self) -> int:
        """All bytes of the skill, as far as they are known; 0 for a dynamic one."""
        return sum(resource.size or 0 for resource in self.files)

    @property
    def files(self) -> tuple[Resource, ...]:
        """The files that are known; none for a dynamic skill."""
        match self.resources:
            case str():
                return ()
            case Partial(known):
                return known
            case resources:
                return resources

    @property
    def gaps(self) -> frozenset[Gap]:
        """What the server did not promise. Nothing is missing from an entry of the extension as it is now."""
        gaps: set[Gap] = set()
        if not self.is_complete:
            gaps.add("manifest")
        if not self.files or any(resource.digest is None for resource in self.files):
            gaps.add("digest")
        if not self.files or any(resource.size is None for resource in self.files):
            gaps.add("size")
        if not self.whole_frontmatter:
            gaps.add("frontmatter")
        return frozenset(gaps)

    def resource(self, uri: str) -> Resource | None:
        """What is claimed about one file, whatever the spelling of its URI."""
        for resource in self.files:
            if resource.uri == uri:
                return resource
        wanted = parse_uri(uri)
        return next((resource for resource in self.files if parse_uri(resource.uri) == wanted), None)

    def is_unpromised(self, uri: str) -> bool:
        """Whether nothing is promised about the file at ``uri``, except that it may exist."""
        resource = self.resource(uri)
        return not self.is_complete if resource is None else resource.digest is None

    @property
    def path(self) -> str:
        """The decoded skill path: the URI without scheme and ``SKILL.md`` (U2)."""
        return skill_root(parse_uri(self.uri)).path

    def to_json(self) -> dict[str, Any]:
        """The entry as the extension sends it, and nothing else: strict clients reject extra fields.

        An entry with gaps goes out as ``"dynamic"``: nothing about it can be verified as the extension asks.
        """
        whole = isinstance(self.resources, tuple) and not self.gaps
        return {
            "uri": self.uri,
            "frontmatter": dict(self.frontmatter),
            "resources": [item._asdict() for item in self.files] if whole else DYNAMIC,
        }

    def as_received(self) -> dict[str, Any]:
        """The entry with every field that the server sent, those included that we do not know."""
        return self.to_json() if self.received is None else dict(self.received)


def build_entry(
    skill_path: str,
    frontmatter: Mapping[str, Json],
    files: Iterable[tuple[str, str, int]] | Dynamic,
    *,
    scheme: str = DEFAULT_SCHEME,
    meta: SkillMeta = DEFAULT_META,
    modified: float | None = None,
) -> SkillEntry:
    """The entry of the skill at ``skill_path`` with ``files``: (path in the skill, digest, size), each once."""
    uri = skill_md_uri(skill_path, scheme)
    if isinstance(files, str):
        return SkillEntry(uri, frontmatter, DYNAMIC, meta, modified)
    resources = [
        Resource(format_uri(f"{skill_path}/{path}", scheme), digest, size) for path, digest, size in files
    ]
    resources.sort()
    return SkillEntry(uri, frontmatter, tuple(resources), meta, modified)


def fold(path: str) -> str:
    """What a case-insensitive, normalising disk makes of ``path``: equal folds collide there (B5)."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
