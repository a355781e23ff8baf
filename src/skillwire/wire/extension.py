"""The ``extension`` dialect (SEP-2640, final): names, parameters, and results as they go over the wire.

Results are plain dictionaries in wire form. In the stateless era (2026-07-28) cacheable results contain their
lifetime and their scope; the handshake era has no such fields.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from mcp_types import PaginatedRequestParams, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from skillwire.skill.entry import DEFAULT_META, SkillMeta
from skillwire.skill.uri import SKILL_MD
from skillwire.wire.media import DIRECTORY, media_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.catalog.contract import DirectoryChild, Page, SkillFile, SkillTemplate
    from skillwire.skill import SkillEntry

EXTENSION_ID = "io.modelcontextprotocol/skills"
SKILL_TEMPLATE = "{scheme}://{{+path}}"
SKILLS_LIST = "skills/list"
SKILLS_GET = "skills/get"
DIRECTORY_READ = "resources/directory/read"

_SUPPORTING_PRIORITY = 0.5


class ListSkillsParams(PaginatedRequestParams):
    """``skills/list {cursor?}``."""


class GetSkillParams(RequestParams):
    """``skills/get {uri}``. A missing URI gets our own error: clients of older proposals send a name instead."""

    uri: str = ""


class ReadDirectoryParams(PaginatedRequestParams):
    """``resources/directory/read {uri, cursor?}``."""

    uri: str


@dataclass(frozen=True, slots=True)
class Freshness:
    """How long a result may be cached, and whether callers may share it."""

    ttl_ms: int = 0
    scope: Literal["private", "public"] = "private"

    def fields(self, protocol_version: str) -> dict[str, Any]:
        """The fields of a cacheable result in this era."""
        if protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return {}
        return {"ttlMs": self.ttl_ms, "cacheScope": self.scope, "resultType": "complete"}


def list_result(page: Page[SkillEntry]) -> dict[str, Any]:
    """L1: the result of ``skills/list``."""
    return _paged("skills", [entry.to_json() for entry in page.items], page.next_cursor)


def get_result(entry: SkillEntry) -> dict[str, Any]:
    """G1: the result of ``skills/get``. The server's metadata is beside the entry, never in it (R4)."""
    result: dict[str, Any] = {"skill": entry.to_json()}
    return {**result, "_meta": dict(entry.meta.meta)} if entry.meta.meta else result


def directory_result(page: Page[DirectoryChild], meta: SkillMeta = DEFAULT_META) -> dict[str, Any]:
    """D1: the result of ``resources/directory/read`` in a skill with the metadata ``meta``."""
    return _paged("resources", [_child(child, meta) for child in page.items], page.next_cursor)


def resources_result(page: Page[SkillEntry]) -> dict[str, Any]:
    """R1: the ``SKILL.md`` of every listed skill in ``resources/list``."""
    return _paged("resources", [skill_resource(entry) for entry in page.items], page.next_cursor)


def skill_resource(entry: SkillEntry) -> dict[str, Any]:
    """R1, R3: a skill as a resource, with its own name and description."""
    resource: dict[str, Any] = {
        "uri": entry.uri,
        "name": entry.name,
        "description": entry.description,
        "mimeType": media_type(SKILL_MD),
        "annotations": resource_annotations(SKILL_MD, entry.modified, entry.meta),
    }
    if entry.meta.meta:
        resource["_meta"] = dict(entry.meta.meta)
    size = next((item.size for item in entry.files if item.uri == entry.uri), None)
    if size is not None:
        resource["size"] = size
    return resource


def read_result(file: SkillFile) -> dict[str, Any]:
    """R1: the result of ``resources/read``: text if the bytes are UTF-8, otherwise base64."""
    name = file.uri.rpartition("/")[2]
    content: dict[str, Any] = {"uri": file.uri, "mimeType": media_type(name)}
    try:
        content["text"] = file.data.decode()
    except UnicodeDecodeError:
        content["blob"] = b64encode(file.data).decode()
    if file.meta:
        content["_meta"] = dict(file.meta)
    return {"contents": [content]}


def templates_result(scheme: str, templates: Sequence[SkillTemplate] = ()) -> dict[str, Any]:
    """T1: one template for every file of every skill, and the templates that skills are made from."""
    whole = {
        "uriTemplate": SKILL_TEMPLATE.format(scheme=scheme),
        "name": "skill-file",
        "title": "A file of a skill",
        "description": "Any file of any skill: the skill's path, then the file's, such as acme/refunds/SKILL.md.",
        "annotations": resource_annotations("", None, DEFAULT_META),
    }
    return {"resourceTemplates": [whole, *(_template(template, scheme) for template in templates)]}


def completion_result(values: Sequence[str]) -> dict[str, Any]:
    """T1: the completions, at most 100."""
    return {"completion": {"values": list(values[:100]), "hasMore": len(values) > 100}}


def _template(template: SkillTemplate, scheme: str) -> dict[str, Any]:
    return {
        "uriTemplate": template.uri(scheme),
        "name": template.name,
        "description": template.description,
        "mimeType": media_type(SKILL_MD),
    }


def _child(child: DirectoryChild, meta: SkillMeta) -> dict[str, Any]:
    if child.is_directory:
        return {"uri": child.uri, "name": child.name, "mimeType": DIRECTORY}
    return {
        "uri": child.uri,
        "name": child.name,
        "mimeType": media_type(child.name),
        "size": child.size,
        "annotations": resource_annotations(child.name, child.modified, meta),
        **({"_meta": dict(meta.meta)} if meta.meta else {}),
    }


def resource_annotations(name: str, modified: float | None, meta: SkillMeta) -> dict[str, Any]:
    """R3: the audience, the priority and the time of the last change."""
    values: dict[str, Any] = {
        "audience": list(meta.audience),
        "priority": 1.0 if name == SKILL_MD else _SUPPORTING_PRIORITY,
    }
    if modified is not None:
        moment = datetime.fromtimestamp(modified, UTC).isoformat(timespec="seconds")
        values["lastModified"] = moment.replace("+00:00", "Z")
    return values


def _paged(field: str, items: list[dict[str, Any]], next_cursor: str | None) -> dict[str, Any]:
    return {field: items} if next_cursor is None else {field: items, "nextCursor": next_cursor}
