"""A skill's texts as HTML, for its page and for those of its files. Links lead to its own files or nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.errors import SkillwireError
from skillwire.skill.uri import parse_uri, resolve_reference, skill_root
from skillwire.web.desk.places import file_place, path_inside
from skillwire.web.text import code, markdown

if TYPE_CHECKING:
    from collections.abc import Callable

    from markupsafe import Markup

    from skillwire.skill import SkillEntry
    from skillwire.web.desk.reviewing import Sheet


def rendered(sheet: Sheet, view: str) -> Markup | None:
    """The ``SKILL.md`` as a reader sees it, or as it is written; ``None`` if it was not read."""
    if sheet.source is None or sheet.body is None:
        return None
    if view == "source":
        return code(sheet.source, "SKILL.md")
    return markdown(sheet.body, link=link_in(sheet.origin, sheet.entry, sheet.entry.uri))


def link_in(origin: str, entry: SkillEntry, uri: str) -> Callable[[str], str | None]:
    """Where links of the file at ``uri`` lead to. What leaves the skill is text here, and listed by itself."""
    root, base = skill_root(parse_uri(entry.uri)), parse_uri(uri)

    def link(target: str) -> str | None:
        if target.startswith("#"):
            return target
        try:
            place = resolve_reference(root, base, target)
            file = None if place is None else entry.resource(str(place))
        except SkillwireError:
            return None
        return None if file is None else file_place(origin, entry.uri, path_inside(entry.uri, file.uri))

    return link
