"""SKILL, as a person names one: a name, a path or a URI. A wrong one is answered with candidates."""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING

from skillwire.errors import FormatError, NotFoundError, ProtocolError
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, format_uri, parse_path, skill_md_uri

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import SkillEntry

_SHOWN = 10


async def find_skill(catalog: Catalog, text: str) -> SkillEntry:
    """The entry of the skill that ``text`` means, as it is now."""
    if "://" in text:
        uri = text.removesuffix("/")
        return await catalog.get_skill(uri if uri.endswith(f"/{SKILL_MD}") else f"{uri}/{SKILL_MD}")
    wanted = text.strip("/").removesuffix(f"/{SKILL_MD}")
    with suppress(NotFoundError, FormatError, ProtocolError):  # a path is one request, however long the listing is
        return await catalog.get_skill(skill_md_uri(parse_path(wanted)))
    entries = [entry async for entry in catalog.entries()]
    found = [entry for entry in entries if entry.path == wanted] or [e for e in entries if e.name == wanted]
    if len(found) == 1:
        return await catalog.get_skill(found[0].uri)
    if found:
        raise NotFoundError(
            "skill-ambiguous",
            f"{text!r:.100} could be {len(found)} skills: {_listed([entry.uri for entry in found])}",
            "use a path or a URI",
        )
    names = {entry.path for entry in entries} | {entry.name for entry in entries}
    near = get_close_matches(wanted, sorted(names), _SHOWN)
    hint = f"did you mean {_listed(near)}?" if near else "list the skills to see their names"
    raise NotFoundError("skill-unknown", f"there is no skill {wanted!r:.100}", hint)


def as_uri(text: str, scheme: str = DEFAULT_SCHEME) -> str:
    """A URI as it is, or the URI of a path such as ``acme/refunds/SKILL.md``."""
    return text if "://" in text else format_uri(parse_path(text.strip("/")), scheme)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
