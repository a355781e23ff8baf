"""The ``sep-2076`` dialect: skills as a primitive, known by name; its messages, and what they are made of (P1–P6).

Everything comes from an entry and the text of its ``SKILL.md``. What the dialect has no field for stands in
``_meta``: the skill's URI in the extension, and digests and sizes, so that a client that knows can verify.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_types import PaginatedRequestParams, RequestParams

from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.declared import Dependencies, read_declared
from skillwire.skill.markdown import read_markdown
from skillwire.skill.uri import SKILL_MD, SkillUri, format_uri, is_within, parse_uri, resolve_reference, skill_root
from skillwire.wire import meta
from skillwire.wire.media import media_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.skill import Resource, SkillEntry
    from skillwire.skill.declared import Argument, Declared

CAPABILITY = "skills"
_LONGEST_DESCRIPTION, _LONGEST_LINE = 1024, 4096
_LINE_BEGINNING = re.compile(r"^[\s>]*(?:[-*+]|\d{1,9}[.)]|#{1,6})?\s+|^\s*>\s*")
_MARKED_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:<[^<>]*>|[^()<>]*)\)")
_REFERENCE = {"prompts": ("ref/prompt", "name"), "resources": ("ref/resource", "uri")}


class ListSkillsParams(PaginatedRequestParams):
    """``skills/list {cursor?}``."""


class GetSkillParams(RequestParams):
    """``skills/get {name, arguments?}``. Shapes are checked where an error can say what is expected."""

    name: Any = None
    arguments: Any = None


def list_result(skills: Sequence[Mapping[str, Any]], next_cursor: str | None) -> dict[str, Any]:
    """P1: the answer to ``skills/list``."""
    return {"skills": list(skills), **({} if next_cursor is None else {"nextCursor": next_cursor})}


def listed_skill(entry: SkillEntry, label: str) -> dict[str, Any]:
    """P1, P6: one skill of the listing, called ``label``."""
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
    """P2: the answer to ``skills/get``: ``instructions`` are ``body`` with its arguments filled in."""
    result: dict[str, Any] = {"description": entry.description, "instructions": instructions}
    dependencies, files = dependencies_of(declared.dependencies), files_of(entry, body)
    if dependencies:
        result["dependencies"] = dependencies
    if files:
        result["files"] = files
    return {**result, "_meta": _about(entry)}


def dependencies_of(dependencies: Dependencies) -> dict[str, Any]:
    """P3: tools by name, prompts and resources by reference; a kind with none is left out."""
    found: dict[str, Any] = {"tools": list(dependencies.tools)}
    for group, (kind, key) in _REFERENCE.items():
        found[group] = [{"type": kind, key: name} for name in getattr(dependencies, group)]
    return {group: names for group, names in found.items() if names}


def parse_dependencies(skill: Mapping[str, Any]) -> tuple[str, Dependencies]:
    """The URI and the dependencies of a skill in a message of ours."""
    groups: Mapping[str, list[Any]] = skill.get("dependencies") or {}
    prompts, resources = (
        tuple(str(item[key]) for item in groups.get(group, ())) for group, (_, key) in _REFERENCE.items()
    )
    return skill["_meta"][meta.URI], Dependencies(tuple(groups.get("tools", ())), prompts, resources)


def files_of(entry: SkillEntry, body: str) -> list[dict[str, Any]]:
    """P2, P4: the files that ``body`` links to, as they appear, then the others, sorted. Not ``SKILL.md``."""
    root = skill_root(parse_uri(entry.uri))
    known = {_path(root, file.uri): file for file in entry.files}
    linked = _linked(root, body)
    if not entry.is_dynamic:
        linked = {path: link for path, link in linked.items() if path in known}
    rest = sorted(path for path in known if path != SKILL_MD and path not in linked)
    return [
        *(_file(root, path, known.get(path), *link, required=True) for path, link in linked.items()),
        *(_file(root, path, known[path], "", "", required=False) for path in rest),
    ]


def _linked(root: SkillUri, body: str) -> dict[str, tuple[str, str]]:
    """Paths that ``body`` links to, with the words of the first link to each, and the line it stands in."""
    base, found = SkillUri(root.scheme, (*root.segments, SKILL_MD)), dict[str, tuple[str, str]]()
    for link in read_markdown(body).links:
        try:
            target = resolve_reference(root, base, link.target)
        except FormatError:  # out of the skill; a check reports it
            continue
        if target is not None and is_within(root, target) and not link.target.endswith("/"):
            path = "/".join(target.segments[len(root.segments) :])
            if path != SKILL_MD and len(found) < DEFAULT_LIMITS.skill_resources:
                words = link.words.strip()
                if path not in found or (words and not found[path][0]):
                    found[path] = words, _sentence(body, link.offset)
    return found


def _sentence(body: str, offset: int) -> str:
    """The line around ``offset`` as text: what the author wrote about the link in it."""
    start, end = body.rfind("\n", 0, offset) + 1, body.find("\n", offset)
    line = body[start : len(body) if end < 0 else end][:_LONGEST_LINE]
    return " ".join(_LINE_BEGINNING.sub("", _MARKED_LINK.sub(r"\1", line)).split())[:_LONGEST_DESCRIPTION]


def _file(
    root: SkillUri, path: str, file: Resource | None, words: str, description: str, *, required: bool
) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": path}
    if words:
        fields["title"] = words
    if description and description not in (words, path):
        fields["description"] = description
    fields["uri"] = format_uri(f"{root.path}/{path}", root.scheme) if file is None else file.uri
    fields["mimeType"] = media_type(path.rpartition("/")[2])
    fields["required"] = required
    promised = _promised(file)
    return {**fields, "_meta": promised} if promised else fields


def _about(entry: SkillEntry) -> dict[str, Any]:
    """R4: what whoever serves the skill says of it, where the extension has it, and what its ``SKILL.md`` is."""
    return {**entry.meta.meta, meta.URI: entry.uri, **_promised(entry.resource(entry.uri))}


def _promised(file: Resource | None) -> dict[str, Any]:
    """What the entry promises about a file, for a client that knows where to look."""
    if file is None:
        return {}
    promised = {meta.DIGEST: file.digest, meta.SIZE: file.size}
    return {name: value for name, value in promised.items() if value is not None}


def _argument(argument: Argument) -> dict[str, Any]:
    fields = {"title": argument.title, "description": argument.description}
    said = {name: value for name, value in fields.items() if value is not None}
    return {"name": argument.name, **said, "required": argument.required}


def _path(root: SkillUri, uri: str) -> str:
    return "/".join(parse_uri(uri).segments[len(root.segments) :])
