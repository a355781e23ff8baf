"""Entries: what a server claims about a skill (E1–E5).

A ``SkillEntry`` is a claim, whoever made it. Nothing here makes it true; bytes that match it do.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from skillwire.errors import FormatError
from skillwire.skill.digest import parse_digest
from skillwire.skill.uri import (
    DEFAULT_SCHEME,
    SkillUri,
    format_uri,
    is_within,
    parse_uri,
    skill_md_uri,
    skill_root,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillwire.skill.coreyaml import Json

Audience: TypeAlias = Literal["user", "assistant"]
Dynamic: TypeAlias = Literal["dynamic"]
DYNAMIC: Dynamic = "dynamic"
RESERVED_META = "io.modelcontextprotocol"

_META_KEY = re.compile(
    r"[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z][A-Za-z0-9-]*)+/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z"
)


class Resource(NamedTuple):
    """One file of a skill: where it is, what its bytes hash to, how many they are (E2, E3)."""

    uri: str
    digest: str
    size: int


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
            if not _META_KEY.match(key) or key.startswith(RESERVED_META):
                raise FormatError(
                    "meta-key-invalid",
                    f"the _meta key {key!r:.100} has no prefix of its own",
                    "begin it with a reversed domain you own, such as com.example/owner",
                )


DEFAULT_META = SkillMeta()


@dataclass(frozen=True, slots=True)
class SkillEntry:
    """``{uri, frontmatter, resources}``: the address of a ``SKILL.md``, all its fields, all its files.

    ``resources`` is ``"dynamic"`` for a skill whose bytes are made when they are read. ``meta`` and ``modified``
    are not part of the claim.
    """

    uri: str
    frontmatter: Mapping[str, Json]
    resources: tuple[Resource, ...] | Dynamic
    meta: SkillMeta = field(default=DEFAULT_META, compare=False)
    modified: float | None = field(default=None, compare=False)

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
    def size(self) -> int:
        """All bytes of the skill; 0 for a dynamic one."""
        return sum(resource.size for resource in self.files)

    @property
    def files(self) -> tuple[Resource, ...]:
        """The resources, or none for a dynamic skill."""
        return () if isinstance(self.resources, str) else self.resources

    @property
    def path(self) -> str:
        """The decoded skill path: the URI without scheme and ``SKILL.md`` (U2)."""
        return skill_root(parse_uri(self.uri)).path

    def to_json(self) -> dict[str, Any]:
        """The entry as the extension sends it, and nothing else: strict clients reject extra fields."""
        resources = self.resources
        return {
            "uri": self.uri,
            "frontmatter": dict(self.frontmatter),
            "resources": resources if isinstance(resources, str) else [item._asdict() for item in resources],
        }


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


def parse_entry(value: object) -> SkillEntry:
    """An entry as it came off the wire, or ``FormatError`` (``entry-invalid``) saying which rule it breaks."""
    fields = _mapping(value, "an entry")
    uri = _text(fields, "uri")
    root = skill_root(parse_uri(uri))
    frontmatter = _mapping(fields.get("frontmatter"), "'frontmatter'")
    for field_name in ("name", "description"):
        _text(frontmatter, field_name)
    if frontmatter["name"] != root.segments[-1]:
        raise _invalid(f"the name {frontmatter['name']!r:.80} differs from the URI's last segment (U3)")
    return SkillEntry(uri, frontmatter, _parse_resources(fields.get("resources"), root))


def _parse_resources(value: object, root: SkillUri) -> tuple[Resource, ...] | Dynamic:
    if value == DYNAMIC:
        return DYNAMIC
    if not isinstance(value, list):
        raise _invalid("'resources' is neither a list nor \"dynamic\" (E2)")
    resources = tuple(_parse_resource(item, root) for item in cast("list[object]", value))
    paths = {parse_uri(resource.uri).path for resource in resources}
    if len(paths) != len(resources):
        raise _invalid("'resources' lists a file twice (E2)")
    if f"{root.path}/SKILL.md" not in paths:
        raise _invalid("'resources' does not list the SKILL.md (E2)")
    return resources


def _parse_resource(value: object, root: SkillUri) -> Resource:
    fields = _mapping(value, "a resource")
    uri = _text(fields, "uri")
    if not is_within(root, parse_uri(uri)):
        raise _invalid(f"the resource {uri!r:.200} is outside the skill (E4)")
    size = fields.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise _invalid(f"the size of {uri!r:.200} is not a number of bytes (E3)")
    return Resource(uri, parse_digest(fields.get("digest")), size)


def fold(path: str) -> str:
    """What a case-insensitive, normalising disk makes of ``path``: equal folds collide there (B5)."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _mapping(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _invalid(f"{what} is not an object (E1)")
    return cast("dict[str, Any]", value)


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise _invalid(f"'{name}' is missing or not text (E1)")
    return value


def _invalid(message: str) -> FormatError:
    return FormatError("entry-invalid", message, "the server that sent this entry has to be corrected")
