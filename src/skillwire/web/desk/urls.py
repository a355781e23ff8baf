"""Addresses of the pages of the desk, and the targets of links in skills.

A skill is at ``/skill/<origin>/<path>`` if its URI is the usual one for that path, otherwise at
``/skill/<origin>/<URI>``. The path of a file is in the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from skillwire.errors import FormatError, SkillwireError
from skillwire.skill.uri import parse_uri, resolve_reference, skill_md_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillwire.skill import SkillEntry


def skill_url(origin: str, uri: str, **query: str) -> str:
    """The page of a skill."""
    return _url("/skill", origin, uri, query)


def file_url(origin: str, uri: str, path: str) -> str:
    """The page of a file of a skill."""
    return _url("/file", origin, uri, {"path": path})


def raw_url(origin: str, uri: str, path: str) -> str:
    """The bytes of a file of a skill."""
    return _url("/raw", origin, uri, {"path": path})


def action_url(action: str, origin: str, uri: str) -> str:
    """The target of a form about a skill."""
    return _url(f"/{action}", origin, uri, {})


def uri_from_path(path: str) -> str:
    """The URI of the skill in the path of an address."""
    return path if "://" in path else skill_md_uri(path)


def path_in_skill(skill: str, uri: str) -> str:
    """The path of a file inside the skill whose ``SKILL.md`` is at ``skill``; its URI if it is outside (P4)."""
    try:
        root, place = skill_root(parse_uri(skill)), parse_uri(uri)
    except FormatError:
        return uri
    depth = len(root.segments)
    is_inside = place.scheme == root.scheme and place.segments[:depth] == root.segments
    return "/".join(place.segments[depth:]) if is_inside else uri


def _url(page: str, origin: str, uri: str, query: Mapping[str, str]) -> str:
    suffix = f"?{urlencode(query)}" if query else ""
    return f"{page}/{quote(origin, safe='')}/{_skill_part(uri)}{suffix}"


def _skill_part(uri: str) -> str:
    try:
        path = skill_root(parse_uri(uri)).path
    except FormatError:
        return quote(uri, safe="")
    is_usual = skill_md_uri(path) == uri and "://" not in path
    return quote(path, safe="/") if is_usual else quote(uri, safe="")


def link_in(origin: str, entry: SkillEntry, uri: str) -> Callable[[str], str | None]:
    """The targets of links in the file at ``uri``. External links become text; the review lists them."""
    root, base = skill_root(parse_uri(entry.uri)), parse_uri(uri)

    def link(target: str) -> str | None:
        if target.startswith("#"):
            return target
        try:
            place = resolve_reference(root, base, target)
            file = None if place is None else entry.resource(str(place))
        except SkillwireError:
            return None
        return None if file is None else file_url(origin, entry.uri, path_in_skill(entry.uri, file.uri))

    return link
