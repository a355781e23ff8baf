"""The ``sep-2076`` dialect: messages about skills as a primitive with names (P1–P6).

All data comes from an entry and the text of its ``SKILL.md``. The dialect has no fields for a skill's URI in the
extension, for digests and for sizes. They are in ``_meta``, so that our client can verify the files.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_types import RequestParams

from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.declarations import Dependencies, read_declared
from skillwire.skill.markdown import read_markdown
from skillwire.skill.uri import SKILL_MD, SkillUri, format_uri, is_within, resolve_reference
from skillwire.wire import meta
from skillwire.wire.extension import media_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.skill import Resource, SkillEntry
    from skillwire.skill.declarations import Argument, Declared

_LONGEST_DESCRIPTION, _LONGEST_LINE = 1024, 4096
_LINE_BEGINNING = re.compile(r"^[\s>]*(?:[-*+]|\d{1,9}[.)]|#{1,6})?\s+|^\s*>\s*")
_MARKED_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:<[^<>]*>|[^()<>]*)\)")
_REFERENCE = {"prompts": ("ref/prompt", "name"), "resources": ("ref/resource", "uri")}


class GetNamedParams(RequestParams):
    """``skills/get {name, arguments?}``. The types are checked later, for better errors."""

    name: Any = None
    arguments: Any = None


def listed_skill(entry: SkillEntry, label: str) -> dict[str, Any]:
    """P1, P6: one skill in the listing, with the name ``label``."""
    declared = read_declared(entry.frontmatter)
    fields: dict[str, Any] = {
        "name": label,
        "title": declared.title,
        "description": entry.description,
        "version": declared.version,
        "tags": list(declared.tags),
        "arguments": [_argument(argument) for argument in declared.arguments],
        "dependencies": dependencies_of(declared.dependencies),
        "icons": [dict(icon) for icon in declared.icons],
        "_meta": _about(entry),
    }
    return {name: value for name, value in fields.items() if value or name == "description"}


def get_result(entry: SkillEntry, declared: Declared, instructions: str, body: str) -> dict[str, Any]:
    """P2: the result of ``skills/get``. ``instructions`` are ``body`` with its arguments filled in."""
    result: dict[str, Any] = {"description": entry.description, "instructions": instructions}
    dependencies, files = dependencies_of(declared.dependencies), files_of(entry, body)
    if dependencies:
        result["dependencies"] = dependencies
    if files:
        result["files"] = files
    return {**result, "_meta": _about(entry)}


def dependencies_of(dependencies: Dependencies) -> dict[str, Any]:
    """P3: tools by name, prompts and resources by reference; a kind without items is omitted."""
    found: dict[str, Any] = {"tools": list(dependencies.tools)}
    for group, (kind, key) in _REFERENCE.items():
        found[group] = [{"type": kind, key: name} for name in getattr(dependencies, group)]
    return {group: names for group, names in found.items() if names}


def parse_dependencies(skill: Mapping[str, Any]) -> tuple[str, Dependencies]:
    """The URI and the dependencies of a skill in one of our messages."""
    groups: Mapping[str, list[Any]] = skill.get("dependencies") or {}
    prompts, resources = (
        tuple(str(item[key]) for item in groups.get(group, ())) for group, (_, key) in _REFERENCE.items()
    )
    return skill["_meta"][meta.URI], Dependencies(tuple(groups.get("tools", ())), prompts, resources)


def files_of(entry: SkillEntry, body: str) -> list[dict[str, Any]]:
    """P2, P4: the files that ``body`` links to, in their order, then the others, sorted. Not ``SKILL.md``."""
    root = entry.root
    known = {file.path: file for file in entry.files}
    linked = _linked(root, body)
    if not entry.is_dynamic:
        linked = {path: link for path, link in linked.items() if path in known}
    rest = sorted(path for path in known if path != SKILL_MD and path not in linked)
    return [
        *(_file(root, path, known.get(path), *link, required=True) for path, link in linked.items()),
        *(_file(root, path, known[path], "", "", required=False) for path in rest),
    ]


def _linked(root: SkillUri, body: str) -> dict[str, tuple[str, str]]:
    """The paths that ``body`` links to, with the text of the first link to each, and the line around it."""
    base, found = SkillUri(root.scheme, (*root.segments, SKILL_MD)), dict[str, tuple[str, str]]()
    for link in read_markdown(body).links:
        try:
            target = resolve_reference(root, base, link.target)
        except FormatError:  # the link leaves the skill; ``skillwire check`` reports it
            continue
        if target is not None and is_within(root, target) and not link.target.endswith("/"):
            path = "/".join(target.segments[len(root.segments) :])
            if path != SKILL_MD and len(found) < DEFAULT_LIMITS.skill_resources:
                title = link.words.strip()
                if path not in found or (title and not found[path][0]):
                    found[path] = title, _sentence(body, link.offset)
    return found


def _sentence(body: str, offset: int) -> str:
    """The line around ``offset`` as plain text: the author's description of the link."""
    start, end = body.rfind("\n", 0, offset) + 1, body.find("\n", offset)
    line = body[start : len(body) if end < 0 else end][:_LONGEST_LINE]
    return " ".join(_LINE_BEGINNING.sub("", _MARKED_LINK.sub(r"\1", line)).split())[:_LONGEST_DESCRIPTION]


def _file(
    root: SkillUri, path: str, file: Resource | None, title: str, description: str, *, required: bool
) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": path}
    if title:
        fields["title"] = title
    if description and description not in (title, path):
        fields["description"] = description
    fields["uri"] = format_uri(f"{root.path}/{path}", root.scheme) if file is None else file.uri
    fields["mimeType"] = media_type(path.rpartition("/")[2])
    fields["required"] = required
    promised = meta.file_meta(file)
    return {**fields, "_meta": promised} if promised else fields


def _about(entry: SkillEntry) -> dict[str, Any]:
    """R4: the server's metadata of a skill, its URI in the extension, and the digest of its ``SKILL.md``."""
    return {**entry.meta.meta, meta.URI: entry.uri, **meta.file_meta(entry.resource(entry.uri))}


def _argument(argument: Argument) -> dict[str, Any]:
    fields = {"title": argument.title, "description": argument.description}
    given = {name: value for name, value in fields.items() if value is not None}
    return {"name": argument.name, **given, "required": argument.required}
