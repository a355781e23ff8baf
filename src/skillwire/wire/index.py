"""The ``index`` dialect as a server speaks it: ``skill://index.json`` for both generations, and archives (I1, I2).

One document serves both, because readers ignore unknown fields: ``name``, ``type``, ``description`` and ``url``
belong to the older generation, ``frontmatter``, ``digest`` and ``archives`` to the newer one. ``url`` and
``digest`` are those of the ``SKILL.md``, or of the ZIP file for a skill that comes from an archive.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from skillwire.limits import MIB
from skillwire.skill.archive import archive_uri
from skillwire.skill.well_known import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillwire.catalog.contract import SkillTemplate
    from skillwire.skill import SkillEntry
    from skillwire.skill.archive import ArchiveFormat

INDEX_NAME = "index.json"
_INDEX_TYPE = "application/json"
_MEDIA_TYPES: dict[ArchiveFormat, str] = {"tar.gz": "application/gzip", "zip": "application/zip"}
# The most that readers of the older generation unpack. They could not read a larger skill from an archive.
_OLDER_FILES = 20
_OLDER_BYTES = MIB


def index_entry(
    entry: SkillEntry, archives: Mapping[ArchiveFormat, str], scheme: str, *, came_packed: bool = False
) -> dict[str, Any]:
    """I1: one skill in the index. ``archives`` are the digests of its archives."""
    item: dict[str, Any] = {"name": entry.name, "type": "skill-md", "description": entry.description}
    zipped = archives.get("zip")
    if came_packed and zipped is not None and _is_small(entry):
        place = {"type": "archive", "url": archive_uri(entry.path, "zip", scheme), "digest": zipped}
    else:
        promised = entry.resource(entry.uri)
        place = {"url": entry.uri}
        if promised is not None and promised.digest is not None:
            place["digest"] = promised.digest
    item |= {**place, "frontmatter": dict(entry.frontmatter)}
    if archives:
        item["archives"] = [
            {
                "url": archive_uri(entry.path, form, scheme),
                "mimeType": _MEDIA_TYPES[form],
                "digest": archives[form],
            }
            for form in _MEDIA_TYPES
            if form in archives
        ]
    return item


def index_template(template: SkillTemplate, scheme: str) -> dict[str, Any]:
    """I1: skills that are made from values. Only the older generation has a form for them."""
    return {
        "name": template.name,
        "type": "mcp-resource-template",
        "description": template.description,
        "url": template.uri(scheme),
    }


def index_line(item: Mapping[str, Any]) -> str:
    """An entry as text, without spaces, because readers limit the size of an index."""
    return json.dumps(item, ensure_ascii=False, separators=(",", ":"))


def index_text(lines: Iterable[str]) -> str:
    """I1: the whole document."""
    return f'{{"$schema":"{SCHEMA}","skills":[\n' + ",\n".join(lines) + "\n]}\n"


def index_resource(uri: str) -> dict[str, Any]:
    """The index in ``resources/list``."""
    return {
        "uri": uri,
        "name": INDEX_NAME,
        "title": "Index of skills",
        "description": "All listed skills in one document, for clients that support the index.",
        "mimeType": _INDEX_TYPE,
        "annotations": {"audience": ["assistant"], "priority": 0.5},
    }


def index_result(uri: str, text: str) -> dict[str, Any]:
    """The result of ``resources/read`` for the index."""
    return {"contents": [{"uri": uri, "mimeType": _INDEX_TYPE, "text": text}]}


def archive_result(uri: str, form: ArchiveFormat, data: bytes) -> dict[str, Any]:
    """I2: the result of ``resources/read`` for an archive."""
    return {"contents": [{"uri": uri, "mimeType": _MEDIA_TYPES[form], "blob": b64encode(data).decode()}]}


def _is_small(entry: SkillEntry) -> bool:
    headers = sum(100 + 2 * len(file.uri) for file in entry.files)  # the most that an archive adds for each file
    return len(entry.files) <= _OLDER_FILES and entry.size + headers <= _OLDER_BYTES
