"""Reads the content of a skill from any catalog, so that it agrees with the entry (R2, V1, V2, V4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from anyio import lowlevel

from skillwire.errors import FormatError, LimitError, UpstreamError, VerificationError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.digest import digest_of
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.uri import SKILL_MD, parse_uri, skill_root
from skillwire.skill.verify import verify_file, verify_skill

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import SkillEntry
    from skillwire.skill.frontmatter import SkillDocument

_ATTEMPTS = 3


async def read_current(catalog: Catalog, entry: SkillEntry) -> tuple[SkillEntry, SkillDocument]:
    """The current entry and its parsed ``SKILL.md``. ``UpstreamError`` if it keeps changing or is invalid (R2)."""
    for _ in range(_ATTEMPTS):
        data = (await catalog.read_file(entry.uri)).data
        claimed = entry.resource(entry.uri)
        if claimed is None or claimed.digest in (None, digest_of(data)):
            break
        entry = await catalog.get_skill(entry.uri)
    else:
        raise UpstreamError("changing", f"the skill {entry.uri!r:.300} keeps changing", "try again")
    try:
        document = parse_skill_md(data)
    except FormatError as error:
        message = f"the SKILL.md of {entry.uri!r:.300} cannot be read: {error.message}"
        raise UpstreamError(error.reference, message, error.hint) from error
    return replace(entry, frontmatter=document.frontmatter), document


async def read_verified(
    catalog: Catalog,
    entry: SkillEntry,
    *,
    limits: Limits = DEFAULT_LIMITS,
    on_file: Callable[[int], None] | None = None,
) -> dict[str, bytes]:
    """Every file of ``entry`` by path inside the skill, verified (V1, V2, V4)."""
    _check_promises(entry, limits)
    depth = len(skill_root(parse_uri(entry.uri)).segments)
    files: dict[str, bytes] = {}
    for count, resource in enumerate(entry.files, 1):
        await lowlevel.checkpoint()  # a catalog that answers without waiting would block other tasks
        data = (await catalog.read_file(resource.uri)).data
        path = "/".join(parse_uri(resource.uri).segments[depth:])
        if path == SKILL_MD:
            files[path] = verify_skill(entry, data, limits).file.data
        else:
            files[path] = verify_file(entry, resource.uri, data, limits).data
        if on_file is not None:
            on_file(count)
    return files


def _check_promises(entry: SkillEntry, limits: Limits) -> None:
    if not entry.is_complete or "digest" in entry.gaps:
        missing = (
            "its bytes are generated on each read"
            if entry.is_dynamic
            else "its server does not send digests of all files"
        )
        raise VerificationError(
            "skill-unverifiable",
            f"{entry.uri!r:.300} cannot be verified completely: {missing}",
            "the server must send a digest of every file",
            rule="V7",
        )
    if len(entry.files) > limits.max_resources or entry.size > limits.max_skill_bytes:
        raise LimitError(
            "skill-too-large",
            f"{entry.uri!r:.300} has {len(entry.files)} files and {entry.size} bytes, more than the limits",
            "raise Limits.max_skill_bytes if you trust the server",
            rule="B1",
        )
