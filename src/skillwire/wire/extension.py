"""The ``extension`` dialect (SEP-2640, final): names, parameters, and results as they go over the wire.

Results are plain dictionaries in wire form, without the fields that every result of the stateless era has.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from mcp_types import PaginatedRequestParams, RequestParams

from skillwire.amounts import utc_text
from skillwire.skill.entry import DEFAULT_META, SkillMeta
from skillwire.skill.uri import SKILL_MD
from skillwire.skill.version_status import VERSION, VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.catalog.contract import DirectoryChild, Page, SkillFile, SkillTemplate
    from skillwire.skill import SkillEntry

EXTENSION_ID = "io.modelcontextprotocol/skills"
SKILL_TEMPLATE = "{scheme}://{{+path}}"
SKILLS_LIST = "skills/list"
SKILLS_GET = "skills/get"
DIRECTORY_READ = "resources/directory/read"

DIRECTORY = "inode/directory"
UNKNOWN = "application/octet-stream"

_SUPPORTING_PRIORITY = 0.5

# Media types by suffix and by name (R1). Python's own table knows too few text formats. The bytes of a file decide
# whether it is sent as text or base64, not its media type.
_BY_SUFFIX = {
    "md": "text/markdown", "markdown": "text/markdown", "mdx": "text/markdown",
    "txt": "text/plain", "text": "text/plain", "log": "text/plain", "rst": "text/x-rst",
    "csv": "text/csv", "tsv": "text/tab-separated-values",
    "html": "text/html", "htm": "text/html", "css": "text/css", "xml": "application/xml",
    "json": "application/json", "jsonl": "application/jsonl", "ndjson": "application/jsonl",
    "json5": "application/json5", "ipynb": "application/x-ipynb+json",
    "yaml": "application/yaml", "yml": "application/yaml", "toml": "application/toml",
    "ini": "text/plain", "cfg": "text/plain", "conf": "text/plain", "properties": "text/plain",
    "py": "text/x-python", "pyi": "text/x-python", "sh": "application/x-sh", "bash": "application/x-sh",
    "zsh": "application/x-sh", "fish": "application/x-sh", "ps1": "text/plain", "bat": "text/plain",
    "js": "text/javascript", "mjs": "text/javascript", "cjs": "text/javascript", "jsx": "text/javascript",
    "ts": "text/typescript", "tsx": "text/typescript", "vue": "text/plain", "svelte": "text/plain",
    "go": "text/x-go", "rs": "text/x-rust", "java": "text/x-java", "kt": "text/x-kotlin", "swift": "text/x-swift",
    "c": "text/x-c", "h": "text/x-c", "cc": "text/x-c++", "cpp": "text/x-c++", "hpp": "text/x-c++",
    "cs": "text/x-csharp", "rb": "text/x-ruby", "php": "text/x-php", "pl": "text/x-perl", "lua": "text/x-lua",
    "r": "text/x-r", "jl": "text/x-julia", "sql": "application/sql", "graphql": "application/graphql",
    "proto": "text/x-protobuf", "tex": "text/x-tex", "diff": "text/x-diff", "patch": "text/x-diff",
    "jinja": "text/plain", "j2": "text/plain", "tmpl": "text/plain", "template": "text/plain",
    "svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
    "webp": "image/webp", "avif": "image/avif", "ico": "image/x-icon", "bmp": "image/bmp", "tiff": "image/tiff",
    "pdf": "application/pdf", "zip": "application/zip", "gz": "application/gzip", "tar": "application/x-tar",
    "woff": "font/woff", "woff2": "font/woff2", "ttf": "font/ttf", "otf": "font/otf",
    "mp3": "audio/mpeg", "wav": "audio/wav", "ogg": "audio/ogg", "mp4": "video/mp4", "webm": "video/webm",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}  # fmt: skip
_BY_NAME = {
    "makefile": "text/x-makefile", "dockerfile": "text/plain", "license": "text/plain", "readme": "text/plain",
    "notice": "text/plain", "changelog": "text/plain", ".gitignore": "text/plain", ".editorconfig": "text/plain",
}  # fmt: skip


class GetSkillParams(RequestParams):
    """``skills/get {uri}``. A missing URI gets our own error: clients of older proposals send a name instead."""

    uri: str = ""


class ReadDirectoryParams(PaginatedRequestParams):
    """``resources/directory/read {uri, cursor?}``."""

    uri: str


@dataclass(frozen=True, slots=True)
class Freshness:
    """How long a result may be cached, and whether callers may share it. Only in the stateless era."""

    ttl_ms: int = 0
    scope: Literal["private", "public"] = "private"


def list_result(page: Page[SkillEntry]) -> dict[str, Any]:
    """L1: the result of ``skills/list``. What a registry states about versions is beside the entries (R4)."""
    result = paged("skills", [entry.to_json() for entry in page.items], page.next_cursor)
    stated = {entry.uri: entry.meta.meta[VERSION] for entry in page.items if VERSION in entry.meta.meta}
    return {**result, "_meta": {VERSIONS: stated}} if stated else result


def get_result(entry: SkillEntry) -> dict[str, Any]:
    """G1: the result of ``skills/get``. The server's metadata is beside the entry, never in it (R4)."""
    result: dict[str, Any] = {"skill": entry.to_json()}
    return {**result, "_meta": dict(entry.meta.meta)} if entry.meta.meta else result


def directory_result(page: Page[DirectoryChild], meta: SkillMeta = DEFAULT_META) -> dict[str, Any]:
    """D1: the result of ``resources/directory/read`` in a skill with the metadata ``meta``."""
    return paged("resources", [_child(child, meta) for child in page.items], page.next_cursor)


def resources_result(page: Page[SkillEntry]) -> dict[str, Any]:
    """R1: the ``SKILL.md`` of every listed skill in ``resources/list``."""
    return paged("resources", [skill_resource(entry) for entry in page.items], page.next_cursor)


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


def media_type(name: str) -> str:
    """The media type of a file with this name."""
    lowered = name.lower()
    if lowered in _BY_NAME:
        return _BY_NAME[lowered]
    _, dot, suffix = lowered.rpartition(".")
    return _BY_SUFFIX.get(suffix, UNKNOWN) if dot else UNKNOWN


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
        values["lastModified"] = utc_text(modified, "seconds")
    return values


def paged(field: str, items: Sequence[Mapping[str, Any]], next_cursor: str | None) -> dict[str, Any]:
    """One page of a listing."""
    more = {} if next_cursor is None else {"nextCursor": next_cursor}
    return {field: list(items), **more}
