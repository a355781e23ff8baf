"""Entries as they come off the wire: checked in full, or refused with the rule that they break (E1–E4, U3).

``sized=False`` reads the generation before ``size`` (E2b): sizes may be missing. That generation also left out the
``resources`` of generated skills; such an entry is invalid here, since nothing tells it from a broken one (E2).
Which generation a server speaks is for the caller to know; here nothing is guessed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.digest import parse_digest
from skillwire.skill.entry import DYNAMIC, Dynamic, Resource, SkillEntry
from skillwire.skill.uri import SKILL_MD, SkillUri, is_within, parse_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_NAME = 256  # F2 allows 64; dialects without it do not say
_ENTRY_FIELDS = frozenset({"uri", "frontmatter", "resources"})
_RESOURCE_FIELDS = frozenset({"uri", "digest", "size"})
# Nothing to decode and no way out, so that text can be compared: no '%', no empty, '.' or '..' segment.
_PLAIN_TAIL = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9_.~-]+)+\Z")


def parse_entry(value: object, *, sized: bool = True, limits: Limits = DEFAULT_LIMITS) -> SkillEntry:
    """An entry as it came off the wire, or ``FormatError`` (``entry-invalid``) saying which rule it breaks."""
    fields = _mapping(value, "an entry")
    uri = _text(fields, "uri")
    root = _root(uri)
    frontmatter = _mapping(fields.get("frontmatter"), "'frontmatter'")
    check_frontmatter(frontmatter, limits)
    for field_name in ("name", "description"):
        _text(frontmatter, field_name)
    if frontmatter["name"] != root.segments[-1]:
        raise invalid_entry(f"the name {frontmatter['name']!r:.80} differs from the URI's last segment", "U3")
    resources = _parse_resources(fields.get("resources"), uri, root, sized=sized, limits=limits)
    return SkillEntry(uri, frontmatter, resources, received=_unknown(fields, limits))


def check_frontmatter(frontmatter: Mapping[str, object], limits: Limits = DEFAULT_LIMITS) -> None:
    """B1: what an entry says of a skill is no larger than the frontmatter of a ``SKILL.md`` may be."""
    _check_bytes(frontmatter, "the frontmatter has", limits)


def check_name(name: str, rule: str) -> None:
    """What a dialect with free names may call a skill: short, and no blanks that are easily missed (B1, N1)."""
    if len(name) > _LONGEST_NAME:
        raise invalid_entry(f"the name {name!r:.80} has more than {_LONGEST_NAME} characters", "B1")
    if name != " ".join(name.split()):
        raise invalid_entry(f"the name {name!r:.80} begins or ends with a blank, or has several in a row", rule)


def _unknown(fields: dict[str, Any], limits: Limits) -> Mapping[str, Any] | None:
    """The whole entry, if something in it would be lost otherwise: fields we do not know, files without sizes.

    What we do not know has the bound of a frontmatter (B1).
    """
    items: list[dict[str, Any]] = [] if isinstance(fields["resources"], str) else fields["resources"]
    whole = all(item.keys() == _RESOURCE_FIELDS and item["size"] is not None for item in items)
    if whole and fields.keys() == _ENTRY_FIELDS:
        return None
    unknown = [_without(fields, _ENTRY_FIELDS), *(_without(item, _RESOURCE_FIELDS) for item in items)]
    _check_bytes([each for each in unknown if each], "the fields that we do not know have", limits)
    return fields


def _without(fields: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in known}


def _check_bytes(value: object, what: str, limits: Limits) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode(errors="surrogatepass")) > limits.max_frontmatter_bytes:
        raise invalid_entry(f"{what} more than {limits.max_frontmatter_bytes} bytes", "B1")


def _parse_resources(
    value: object, uri: str, root: SkillUri, *, sized: bool, limits: Limits
) -> tuple[Resource, ...] | Dynamic:
    if value == DYNAMIC:
        return DYNAMIC
    if not isinstance(value, list):
        raise invalid_entry("'resources' is neither a list nor \"dynamic\"", "E2")
    items = cast("list[object]", value)
    if len(items) > limits.max_resources:
        raise invalid_entry(f"'resources' lists more than {limits.max_resources} files", "E6")
    plain_root = uri[: -len(SKILL_MD) - 1] if _PLAIN_TAIL.match("/" + uri.partition("://")[2]) else None
    resources = tuple(_parse_resource(item, root, plain_root, sized=sized) for item in items)
    paths = {_path(resource.uri, root, plain_root) for resource in resources}
    if len(paths) != len(resources):
        raise invalid_entry("'resources' lists a file twice", "E2")
    if f"/{SKILL_MD}" not in paths:
        raise invalid_entry("'resources' does not list the SKILL.md", "E2")
    return resources


def _parse_resource(value: object, root: SkillUri, plain_root: str | None, *, sized: bool) -> Resource:
    fields = _mapping(value, "a resource")
    uri = _text(fields, "uri")
    if not _is_plain(uri, plain_root) and not _is_inside(root, uri):
        raise invalid_entry(f"the resource {uri!r:.200} is outside the skill", "E4")
    return Resource(uri, parse_digest(fields.get("digest")), _size(fields, uri, sized=sized))


def _size(fields: Mapping[str, Any], uri: str, *, sized: bool) -> int | None:
    size = fields.get("size")
    if size is None and not sized:
        return None
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise invalid_entry(f"the size of {uri!r:.200} is not a number of bytes", "E3")
    return size


def _root(uri: str) -> SkillUri:
    try:
        return skill_root(parse_uri(uri))
    except FormatError as error:
        raise _with_rule(error, "U1") from error


def _is_inside(root: SkillUri, uri: str) -> bool:
    try:
        return is_within(root, parse_uri(uri))
    except FormatError as error:
        raise _with_rule(error, "U7") from error


def _with_rule(error: FormatError, rule: str) -> FormatError:
    return FormatError(error.reference, error.message, error.hint, rule=error.rule or rule)


def _is_plain(uri: str, plain_root: str | None) -> bool:
    if plain_root is None or not uri.startswith(plain_root) or len(uri) > DEFAULT_LIMITS.max_uri_length:
        return False
    tail = uri[len(plain_root) :]
    # two slashes belong to the scheme
    return _PLAIN_TAIL.match(tail) is not None and uri.count("/") - 2 < DEFAULT_LIMITS.max_uri_segments


def _path(uri: str, root: SkillUri, plain_root: str | None) -> str:
    """The decoded path inside the skill, with a slash before it."""
    if _is_plain(uri, plain_root):
        return uri[len(plain_root or "") :]
    return "/" + "/".join(parse_uri(uri).segments[len(root.segments) :])


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
    """The refusal of an entry."""
    return FormatError("entry-invalid", message, "the server that sent this entry has to be corrected", rule=rule)
