"""The ``extension`` dialect (SEP-2640, final): names, parameters, and results as they go over the wire.

Results are plain dictionaries in wire form. In the stateless era (2026-07-28) cacheable results say how long
and for whom they keep; in the handshake era those fields do not exist and are left out.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from mcp_types import PaginatedRequestParams, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from skillwire.skill.uri import SKILL_MD
from skillwire.wire.media import DIRECTORY, media_type

if TYPE_CHECKING:
    from skillwire.catalog.contract import DirectoryChild, Page, SkillFile
    from skillwire.skill import SkillEntry

EXTENSION_ID = "io.modelcontextprotocol/skills"
SKILLS_LIST = "skills/list"
SKILLS_GET = "skills/get"
DIRECTORY_READ = "resources/directory/read"

_SUPPORTING_PRIORITY = 0.5


class ListSkillsParams(PaginatedRequestParams):
    """``skills/list {cursor?}``."""


class GetSkillParams(RequestParams):
    """``skills/get {uri}``."""

    uri: str


class ReadDirectoryParams(PaginatedRequestParams):
    """``resources/directory/read {uri, cursor?}``."""

    uri: str


@dataclass(frozen=True, slots=True)
class Freshness:
    """How long a result may be kept, and whether it may be shared between callers."""

    ttl_ms: int = 0
    scope: Literal["private", "public"] = "private"

    def fields(self, protocol_version: str) -> dict[str, Any]:
        """The fields a cacheable result carries in this era."""
        if protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return {}
        return {"ttlMs": self.ttl_ms, "cacheScope": self.scope, "resultType": "complete"}


def list_result(page: Page[SkillEntry]) -> dict[str, Any]:
    """L1: the answer to ``skills/list``."""
    return _paged("skills", [entry.to_json() for entry in page.items], page.next_cursor)


def get_result(entry: SkillEntry) -> dict[str, Any]:
    """G1: the answer to ``skills/get``."""
    return {"skill": entry.to_json()}


def directory_result(page: Page[DirectoryChild]) -> dict[str, Any]:
    """D1: the answer to ``resources/directory/read``."""
    return _paged("resources", [_child(child) for child in page.items], page.next_cursor)


def resources_result(page: Page[SkillEntry]) -> dict[str, Any]:
    """R1: the ``SKILL.md`` of every listed skill, as ``resources/list`` shows it."""
    return _paged("resources", [skill_resource(entry) for entry in page.items], page.next_cursor)


def skill_resource(entry: SkillEntry) -> dict[str, Any]:
    """R1, R3: a skill as a resource, with its own name and description."""
    resource: dict[str, Any] = {
        "uri": entry.uri,
        "name": entry.name,
        "description": entry.description,
        "mimeType": media_type(SKILL_MD),
        "annotations": _annotations(SKILL_MD, None),
    }
    size = next((item.size for item in entry.files if item.uri == entry.uri), None)
    if size is not None:
        resource["size"] = size
    return resource


def read_result(file: SkillFile) -> dict[str, Any]:
    """R1: the answer to ``resources/read``: text if the bytes are UTF-8, else base64."""
    name = file.uri.rpartition("/")[2]
    content: dict[str, Any] = {"uri": file.uri, "mimeType": media_type(name)}
    try:
        content["text"] = file.data.decode()
    except UnicodeDecodeError:
        content["blob"] = b64encode(file.data).decode()
    return {"contents": [content]}


def _child(child: DirectoryChild) -> dict[str, Any]:
    if child.is_directory:
        return {"uri": child.uri, "name": child.name, "mimeType": DIRECTORY}
    return {
        "uri": child.uri,
        "name": child.name,
        "mimeType": media_type(child.name),
        "size": child.size,
        "annotations": _annotations(child.name, child.modified),
    }


def _annotations(name: str, modified: float | None) -> dict[str, Any]:
    annotations: dict[str, Any] = {
        "audience": ["assistant"],
        "priority": 1.0 if name == SKILL_MD else _SUPPORTING_PRIORITY,
    }
    if modified is not None:
        annotations["lastModified"] = datetime.fromtimestamp(modified, UTC).isoformat(timespec="seconds")
    return annotations


def _paged(field: str, items: list[dict[str, Any]], next_cursor: str | None) -> dict[str, Any]:
    return {field: items} if next_cursor is None else {field: items, "nextCursor": next_cursor}
