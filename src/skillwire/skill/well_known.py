"""The well-known index of skills on a web server, which ``npx skills`` and other installers read. Pure.

Below the address of a skill is ``.well-known/agent-skills/index.json``. It names one zip file for each skill, with
``SKILL.md`` at its root, and its digest. Addresses in it are relative, so that a site works at any place. The file
is named by its digest: an index and a file that a cache kept for different times never mix.

Zip and not tar: installers cut long names in a tar file.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA: Final = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
INDEX_FOLDERS: Final = (".well-known/agent-skills", ".well-known/skills")
"""The folders of an index. The second one is where older installers look. Archives are in the first."""

INDEX_FILE: Final = "index.json"
_ARCHIVE = re.compile(r"([0-9a-f]{64})\.zip\Z")
_LONGEST_DESCRIPTION = 1_024  # installers ignore an entry with a longer one


def archive_name(digest: str) -> str:
    """The name of the zip file with this digest."""
    return f"{digest.removeprefix('sha256:')}.zip"


def archive_digest(name: str) -> str | None:
    """The digest of the zip file with this name; ``None`` if it is not such a name."""
    match = _ARCHIVE.match(name)
    return None if match is None else f"sha256:{match[1]}"


def index_entry(name: str, description: str, digest: str, below: str = "", **facts: Any) -> dict[str, Any]:
    """One skill in an index. ``below`` is the path of the skill from the place of the index.

    ``facts`` are fields of ours; installers ignore them. Those that are ``None`` are not written.
    """
    folder = f"../../{below}/{INDEX_FOLDERS[0]}" if below else "../agent-skills"
    return {
        "name": name,
        "type": "archive",
        "description": description[:_LONGEST_DESCRIPTION],
        "url": f"{folder}/{archive_name(digest)}",
        "digest": digest,
        **{key: value for key, value in facts.items() if value is not None},
    }


def index_document(entries: Iterable[dict[str, Any]]) -> bytes:
    """An index as JSON. Equal entries give equal bytes."""
    return json.dumps({"$schema": SCHEMA, "skills": list(entries)}, separators=(",", ":")).encode()
