"""The ``native`` dialect: ``skills/list``, ``skills/activate``, ``skills/deactivate`` (M1–M3).

Names, parameters and results as they go over the wire. A skill *binds* tools, prompts and resources of its server:
in code, or in the ``metadata`` of its frontmatter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from mcp_types import RequestParams

from skillwire.skill.uri import SKILL_MD
from skillwire.wire.extension import media_type, resource_annotations, skill_resource
from skillwire.wire.meta import URI, file_meta

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.skill import SkillEntry
    from skillwire.skill.entry import Resource

SKILLS_ACTIVATE = "skills/activate"
SKILLS_DEACTIVATE = "skills/deactivate"
ACTIVATION_INVALID = "activation-invalid"  # the reference for an invalid token; clients drop the token then

BoundKind: TypeAlias = Literal["tools", "prompts", "resources"]
KINDS: tuple[BoundKind, ...] = get_args(BoundKind)
_SINGULAR: dict[BoundKind, str] = {"tools": "tool", "prompts": "prompt", "resources": "resource"}


class SkillNameParams(RequestParams):
    """``skills/activate {name}``, ``skills/deactivate {name}``."""

    name: str


def bound_in(frontmatter: Mapping[str, Any]) -> dict[BoundKind, tuple[str, ...]]:
    """The items that a skill's ``metadata`` binds: names separated by spaces under ``mcp-tools`` and so on."""
    metadata = _metadata(frontmatter)
    lines: dict[BoundKind, Any] = {kind: metadata.get(f"mcp-{kind}") for kind in KINDS}
    return {kind: tuple(dict.fromkeys(line.split())) for kind, line in lines.items() if isinstance(line, str)}


def listed_skill(entry: SkillEntry, label: str) -> dict[str, Any]:
    """M1: a skill in the listing: its name and description."""
    title = entry.frontmatter.get("title", _metadata(entry.frontmatter).get("title"))
    titled = {"title": title} if isinstance(title, str) else {}
    meta = {URI: entry.uri, **file_meta(entry.resource(entry.uri))}
    return {"name": label, **titled, "description": entry.description, "_meta": meta}


def activate_result(entry: SkillEntry, body: str, nested: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """M2: the result of ``skills/activate``, without the definitions, which the server adds."""
    message = {"role": "user", "content": {"type": "text", "text": body}}
    return {
        "description": entry.description,
        "instructions": [message],
        "tools": [],
        "prompts": [],
        "resources": [_file(entry, file) for file in entry.files] or [skill_resource(entry)],
        "skills": list(nested),
        "_meta": {URI: entry.uri},
    }


def refused_call(text: str) -> dict[str, Any]:
    """M3: the result of a hidden tool: an error for the model."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def not_active(kind: BoundKind, key: str, skills: Sequence[str]) -> str:
    """M3: why an item is refused, and which skill to activate."""
    item = f"the {_SINGULAR[kind]} {key!r:.200}"
    if len(skills) == 1:
        return f"{item} belongs to the skill {skills[0]!r:.200}, which is not active. {how_to_activate(skills[0])}"
    names = ", ".join(f"{skill!r:.200}" for skill in skills[:20])
    return f"{item} belongs to the skills {names}, none of which is active. {how_to_activate(skills[0])}"


def how_to_activate(skill: str) -> str:
    """How to activate a skill."""
    return f"Activate the skill first: {SKILLS_ACTIVATE} with the name {skill!r:.200}"


def _metadata(frontmatter: Mapping[str, Any]) -> Mapping[str, Any]:
    """F7: the ``metadata`` of a skill if it is a mapping."""
    metadata = frontmatter.get("metadata")
    return cast("Mapping[str, Any]", metadata) if isinstance(metadata, dict) else {}


def _file(entry: SkillEntry, file: Resource) -> dict[str, Any]:
    """A file of a skill as a resource, with its digest and size (E3)."""
    meta = {**entry.meta.meta, **file_meta(file)}
    if file.uri == entry.uri:
        return {**skill_resource(entry), "_meta": meta}
    name = file.path.rpartition("/")[2]
    return {
        "uri": file.uri,
        "name": file.path,
        "mimeType": media_type(name),
        **({} if file.size is None else {"size": file.size}),
        "annotations": resource_annotations("" if name == SKILL_MD else name, entry.modified, entry.meta),
        "_meta": meta,
    }
