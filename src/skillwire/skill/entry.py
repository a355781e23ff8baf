"""Entries: the claims of a server about a skill (E1–E5), and how they are parsed (E1–E4, U3).

A ``SkillEntry`` is a claim and proves nothing. ``verify.py`` compares bytes with it. Information that a server did
not send is absent and never guessed: a missing ``size`` or ``digest`` is ``None``, a list of files that may be
incomplete is ``Partial``, and ``gaps`` names what is missing (E2b, and the older dialects). A digest is
``sha256:`` and 64 lowercase hex digits over raw bytes (E3, F6).

``parse_entry`` checks a received entry completely. With ``sized=False`` it reads the generation before ``size``
(E2b), in which sizes may be missing. That generation also omitted the ``resources`` of generated skills. Such an
entry is invalid here, because it looks the same as a broken one (E2). The caller knows which generation a server
uses.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeGuard, cast

from skillwire.errors import FormatError, ProtocolError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.uri import (
    DEFAULT_SCHEME,
    NAMED_SCHEME,
    SKILL_MD,
    SkillUri,
    fold,
    format_uri,
    is_within,
    parse_uri,
    path_in_skill,
    root_of,
    skill_md_uri,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillwire.skill.frontmatter import Json

Audience: TypeAlias = Literal["user", "assistant"]
Dynamic: TypeAlias = Literal["dynamic"]
DYNAMIC: Dynamic = "dynamic"
Gap: TypeAlias = Literal["manifest", "digest", "size", "frontmatter"]
_RESERVED_META = "io.modelcontextprotocol"
_SKILLS_META = "io.modelcontextprotocol.skills/"  # the prefix that the specification recommends for skills (R4)

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_META_KEY = re.compile(
    r"[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z][A-Za-z0-9-]*)+/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z"
)

_LONGEST_NAME = 256  # F2 allows 64; other dialects define no limit


def digest_of(data: bytes) -> str:
    """The digest of the raw bytes ``data``, without decoding or newline conversion."""
    from hashlib import sha256  # late: loading OpenSSL takes a tenth of the import time of this package

    return "sha256:" + sha256(data).hexdigest()


def is_digest(text: object) -> TypeGuard[str]:
    """Whether ``text`` is a digest in the form that E3 requires."""
    return isinstance(text, str) and _DIGEST.match(text) is not None


def parse_digest(text: object) -> str:
    """``text`` if it is a digest, else ``FormatError``."""
    if is_digest(text):
        return text
    raise FormatError(
        "digest-invalid",
        f"{text!r:.100} is not a digest",
        "a digest is 'sha256:' and 64 lowercase hexadecimal digits",
        rule="E3",
    )


class Resource(NamedTuple):
    """One file of a skill: its URI, digest and size in bytes (E2, E3), and its path inside the skill.

    A value is ``None`` if the server did not send it. Servers of the extension always send all of them. A
    ``SkillEntry`` sets the paths of its files. The path is empty if the file is not inside the skill (P4).
    """

    uri: str
    digest: str | None
    size: int | None
    path: str = ""


@dataclass(frozen=True, slots=True)
class Partial:
    """A list of files that may be incomplete. ``names`` has the names by URI, if the server gave any.

    ``arguments`` are the values given for a skill with arguments (P2), and ``None`` for a required argument that
    is still missing.
    """

    known: tuple[Resource, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    arguments: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"], compare=False)


@dataclass(frozen=True, slots=True)
class SkillMeta:
    """Settings of the server for a skill, in addition to the author's frontmatter.

    An unlisted skill is served by its URI, but is not in the listing. ``audience`` (R3) and ``meta``, under a
    reverse-domain prefix (R4), are sent with the resources of the skill.
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
                    f"the _meta key {key!r:.100} has no valid prefix",
                    f"begin it with your reversed domain, such as com.example/owner, or with {_SKILLS_META}",
                )


DEFAULT_META = SkillMeta()


@dataclass(frozen=True, slots=True)
class SkillEntry:
    """``{uri, frontmatter, resources}``: the URI of a ``SKILL.md``, its fields, and the files of the skill.

    ``resources`` is ``"dynamic"`` for a skill whose bytes are generated on each read, and ``Partial`` if the
    dialect has no complete list. ``whole_frontmatter`` is false if the server sent only some fields. ``meta``,
    ``modified`` and ``local`` (all bytes are on this machine, so reading them needs no other server) are not
    part of the claim.
    """

    uri: str
    frontmatter: Mapping[str, Json]
    resources: tuple[Resource, ...] | Partial | Dynamic
    meta: SkillMeta = field(default=DEFAULT_META, compare=False)
    modified: float | None = field(default=None, compare=False)
    whole_frontmatter: bool = True
    local: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if not all(file.path for file in self.files):
            files = tuple(file._replace(path=path_in_skill(self.uri, file.uri)) for file in self.files)
            resources = replace(self.resources, known=files) if isinstance(self.resources, Partial) else files
            object.__setattr__(self, "resources", resources)

    @property
    def name(self) -> str:
        """The name in the frontmatter. It is a label: the URI identifies the skill (E5)."""
        return str(self.frontmatter.get("name", ""))

    @property
    def description(self) -> str:
        """The author's description: what the skill does and when to use it."""
        return str(self.frontmatter.get("description", ""))

    @property
    def listed(self) -> bool:
        """Whether the skill is in the listing."""
        return self.meta.listed

    @property
    def is_dynamic(self) -> bool:
        """Whether the bytes are generated on each read, so the entry claims nothing about them."""
        return self.resources == DYNAMIC

    @property
    def arguments(self) -> Mapping[str, str | None]:
        """The given arguments, and ``None`` for a required one that is missing (P2)."""
        return self.resources.arguments if isinstance(self.resources, Partial) else {}

    @property
    def is_named(self) -> bool:
        """Whether the server knows the skill by name, so its files may be anywhere on that server (P4)."""
        return self.uri.startswith(f"{NAMED_SCHEME}://")

    @property
    def is_complete(self) -> bool:
        """Whether ``files`` lists all files of the skill (E2)."""
        return isinstance(self.resources, tuple)

    @property
    def is_short(self) -> bool:
        """Whether getting the skill may return more than this entry: some dialects list few fields."""
        return not self.is_complete and not self.is_dynamic

    @property
    def size(self) -> int:
        """The known size of the skill in bytes; 0 for a dynamic one."""
        return sum(resource.size or 0 for resource in self.files)

    @property
    def files(self) -> tuple[Resource, ...]:
        """The known files; none for a dynamic skill."""
        match self.resources:
            case str():
                return ()
            case Partial(known):
                return known
            case resources:
                return resources

    @property
    def gaps(self) -> frozenset[Gap]:
        """The kinds of information that the server did not send. Empty for entries of the current extension."""
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
        """The claim about the file at ``uri``. URIs are compared decoded, so their spelling does not matter."""
        for resource in self.files:
            if resource.uri == uri:
                return resource
        wanted = parse_uri(uri)
        return next((resource for resource in self.files if parse_uri(resource.uri) == wanted), None)

    def is_unpromised(self, uri: str) -> bool:
        """Whether the entry has no digest for the file at ``uri``, which may exist."""
        resource = self.resource(uri)
        return not self.is_complete if resource is None else resource.digest is None

    @property
    def root(self) -> SkillUri:
        """The directory of the skill (U2). It identifies the skill, however its URI is spelled (E5, U7)."""
        return root_of(self.uri)

    @property
    def path(self) -> str:
        """The decoded skill path: the URI without scheme and ``SKILL.md`` (U2)."""
        return self.root.path

    @property
    def folder_name(self) -> str:
        """The last segment of the path (U3)."""
        return self.root.segments[-1]

    def to_json(self) -> dict[str, Any]:
        """The entry in the form of the extension, without other fields, which strict clients would reject.

        An entry with gaps becomes ``"dynamic"``, because it cannot be verified as the extension requires.
        """
        whole = isinstance(self.resources, tuple) and not self.gaps
        return {
            "uri": self.uri,
            "frontmatter": dict(self.frontmatter),
            "resources": [file_to_json(file) for file in self.files] if whole else DYNAMIC,
        }


def build_entry(
    skill_path: str,
    frontmatter: Mapping[str, Json],
    files: Iterable[tuple[str, str, int]] | Dynamic,
    *,
    scheme: str = DEFAULT_SCHEME,
    meta: SkillMeta = DEFAULT_META,
    modified: float | None = None,
    local: bool = False,
) -> SkillEntry:
    """The entry of the skill at ``skill_path``. Each of ``files`` is (path in the skill, digest, size)."""
    uri = skill_md_uri(skill_path, scheme)
    if isinstance(files, str):
        return SkillEntry(uri, frontmatter, DYNAMIC, meta, modified, local=local)
    resources = [
        Resource(format_uri(f"{skill_path}/{path}", scheme), digest, size, path) for path, digest, size in files
    ]
    resources.sort()
    return SkillEntry(uri, frontmatter, tuple(resources), meta, modified, local=local)


def file_to_json(file: Resource) -> dict[str, Any]:
    """The claim about a file in the form of the extension (E2)."""
    return {"uri": file.uri, "digest": file.digest, "size": file.size}


def given_arguments(entry: SkillEntry) -> dict[str, str]:
    """P2: the arguments given for ``entry``; ``ProtocolError`` if required ones are missing."""
    missing = [name for name, value in entry.arguments.items() if value is None]
    if missing:
        names = ", ".join(f"{name!r:.80}" for name in missing[:10])
        example = ", ".join(f"{name[:80]!r}: 'text'" for name in missing[:10])
        raise ProtocolError(
            "argument-missing",
            f"the skill {entry.path!r:.80} needs {'arguments' if len(missing) > 1 else 'the argument'} {names}",
            f"pass arguments={{{example}}}",
            side="local",
            rule="P2",
            missing=tuple(missing),
        )
    return {name: value for name, value in entry.arguments.items() if value is not None}


def collisions(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of paths that are equal on file systems that ignore case and Unicode form (B5)."""
    seen: dict[str, str] = {}
    for path in paths:
        form = fold(path)
        if form in seen:
            yield seen[form], path
        else:
            seen[form] = path


def parse_entry(value: object, *, sized: bool = True, limits: Limits = DEFAULT_LIMITS) -> SkillEntry:
    """Parse a received entry. ``FormatError`` (``entry-invalid``) with the broken rule if it is invalid.

    Unknown fields are ignored.
    """
    fields = _mapping(value, "an entry")
    uri = _text(fields, "uri")
    try:
        root = root_of(uri)
    except FormatError as error:
        raise _with_rule(error, "U1") from error
    frontmatter = _mapping(fields.get("frontmatter"), "'frontmatter'")
    check_frontmatter_size(frontmatter, limits)
    for field_name in ("name", "description"):
        _text(frontmatter, field_name)
    if frontmatter["name"] != root.segments[-1]:
        raise invalid_entry(f"the name {frontmatter['name']!r:.80} differs from the URI's last segment", "U3")
    resources = _parse_resources(fields.get("resources"), root, sized=sized, limits=limits)
    return SkillEntry(uri, frontmatter, resources)


def check_frontmatter_size(frontmatter: Mapping[str, object], limits: Limits = DEFAULT_LIMITS) -> None:
    """Refuse an entry whose frontmatter is larger than that of a ``SKILL.md`` may be (B1)."""
    text = json.dumps(frontmatter, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode(errors="surrogatepass")) > limits.max_frontmatter_bytes:
        raise invalid_entry(f"the frontmatter has more than {limits.max_frontmatter_bytes} bytes", "B1")


def check_name(name: str, rule: str) -> None:
    """Refuse a long name, or one with extra spaces, in a dialect without rules for names (B1, N1)."""
    if len(name) > _LONGEST_NAME:
        raise invalid_entry(f"the name {name!r:.80} has more than {_LONGEST_NAME} characters", "B1")
    if name != " ".join(name.split()):
        raise invalid_entry(f"the name {name!r:.80} begins or ends with a space, or has several in a row", rule)


def _parse_resources(
    value: object, root: SkillUri, *, sized: bool, limits: Limits
) -> tuple[Resource, ...] | Dynamic:
    if value == DYNAMIC:
        return DYNAMIC
    if not isinstance(value, list):
        raise invalid_entry("'resources' is neither a list nor \"dynamic\"", "E2")
    items = cast("list[object]", value)
    if len(items) > limits.max_resources:
        raise invalid_entry(f"'resources' lists more than {limits.max_resources} files", "E6")
    resources: dict[SkillUri, Resource] = {}
    for item in items:
        fields = _mapping(item, "a resource")
        uri, size = _text(fields, "uri"), fields.get("size")
        try:
            place = parse_uri(uri)
        except FormatError as error:
            raise _with_rule(error, "U7") from error
        if not is_within(root, place):
            raise invalid_entry(f"the resource {uri!r:.200} is outside the skill", "E4")
        digest = parse_digest(fields.get("digest"))
        is_number = isinstance(size, int) and not isinstance(size, bool) and size >= 0
        if not is_number and (size is not None or sized):
            raise invalid_entry(f"the size of {uri!r:.200} is not a number of bytes", "E3")
        resources[place] = Resource(uri, digest, size, "/".join(place.segments[len(root.segments) :]))
    if len(resources) != len(items):
        raise invalid_entry("'resources' lists a file twice", "E2")
    if SkillUri(root.scheme, (*root.segments, SKILL_MD)) not in resources:
        raise invalid_entry("'resources' does not list the SKILL.md", "E2")
    return tuple(resources.values())


def _with_rule(error: FormatError, rule: str) -> FormatError:
    return FormatError(error.reference, error.message, error.hint, rule=error.rule or rule)


def _mapping(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise invalid_entry(f"{what} is not an object", "E1")
    return cast("dict[str, Any]", value)


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise invalid_entry(f"'{name}' is missing or not text", "E1")
    return value


def invalid_entry(message: str, rule: str) -> FormatError:
    """The error for an invalid entry."""
    return FormatError("entry-invalid", message, "the server that sent this entry must be fixed", rule=rule)
