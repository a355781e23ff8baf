"""A skill's ``SKILL.md`` together with the entry that describes just these bytes, also while it changes (R2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillwire.errors import FormatError, UpstreamError
from skillwire.skill.digest import digest_of
from skillwire.skill.frontmatter import parse_skill_md

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog
    from skillwire.skill import SkillEntry
    from skillwire.skill.frontmatter import SkillDocument

_TRIES = 3


async def read_current(catalog: Catalog, entry: SkillEntry) -> tuple[SkillEntry, SkillDocument]:
    """The document of ``entry``, and the entry as it is now. ``UpstreamError`` if it never rests, or is broken."""
    for _ in range(_TRIES):
        data = (await catalog.read_file(entry.uri)).data
        claimed = entry.resource(entry.uri)
        if claimed is None or claimed.digest in (None, digest_of(data)):
            break
        entry = await catalog.get_skill(entry.uri)
    else:
        raise UpstreamError("changing", f"the skill {entry.uri!r:.300} keeps changing", "ask again")
    try:
        document = parse_skill_md(data)
    except FormatError as error:
        message = f"the SKILL.md of {entry.uri!r:.300} cannot be read: {error.message}"
        raise UpstreamError(error.reference, message, error.hint) from error
    return replace(entry, frontmatter=document.frontmatter), document
