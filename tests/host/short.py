"""Servers whose listings say less than they promise: of each, one honest skill, ``flat``, in an older dialect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from adversarial.packing import zipped
from skillwire.skill import digest_of, format_uri
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adversarial.adversary import HostileServer

INDEX, MANIFEST, PACKED = "skill://index.json", "skill://flat/_manifest", "skill://flat.zip"
URI, NOTE = "skill://flat/SKILL.md", "skill://flat/notes.md"
FILES = {"SKILL.md": skill_md("flat"), "notes.md": b"notes\n"}
FIELDS = {"name": "flat", "description": "Does one thing well."}


def speak_manifest(server: HostileServer, files: Mapping[str, bytes] = FILES) -> None:
    """Plain resources with FastMCP's manifest beside the skill, and a description that is not the author's."""
    _serve(server, files)
    server.capabilities = {"resources": {}}
    promised = [{"path": path, "size": len(data), "hash": digest_of(data)} for path, data in files.items()]
    server.files[MANIFEST] = json.dumps({"skill": "flat", "files": promised}).encode()
    listed = [{**resource, "description": "Skill: flat"} for resource in _resources(files)]
    server.answers["resources/list"] = {"resources": [*listed, {"uri": MANIFEST, "name": "_manifest"}]}


def speak_archive(server: HostileServer, files: Mapping[str, bytes] = FILES) -> None:
    """An index of the older generation, and a packed skill with a digest."""
    speak_unsigned(server, files)
    server.add_index({"type": "archive", "url": PACKED, "digest": digest_of(server.files[PACKED]), **FIELDS})


def speak_digest(server: HostileServer, files: Mapping[str, bytes] = FILES) -> None:
    """An index of the newer generation: the ``SKILL.md`` has a digest, and nothing is said of other files."""
    _serve(server, files)
    server.add_index({"frontmatter": FIELDS, "url": URI, "digest": digest_of(files["SKILL.md"])})


def speak_plain(server: HostileServer, files: Mapping[str, bytes] = FILES) -> None:
    """Plain resources, and nothing that says what their bytes are."""
    _serve(server, files)
    server.capabilities = {"resources": {}}
    server.answers["resources/list"] = {"resources": _resources(files)}


def speak_unsigned(server: HostileServer, files: Mapping[str, bytes] = FILES) -> None:
    """An index, and a packed skill without a digest."""
    server.files = {PACKED: zipped(*files.items())}
    server.add_index({"type": "archive", "url": PACKED, **FIELDS})


PROMISING: dict[str, Callable[..., None]] = {
    "manifest": speak_manifest,
    "archive": speak_archive,
    "digest": speak_digest,
}
PROMISING_NOTHING: dict[str, Callable[..., None]] = {"plain": speak_plain, "unsigned archive": speak_unsigned}


def _serve(server: HostileServer, files: Mapping[str, bytes]) -> None:
    server.files = {format_uri(f"flat/{path}"): data for path, data in files.items()}


def _resources(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [{"uri": format_uri(f"flat/{path}"), "name": path, "description": ""} for path in files]
