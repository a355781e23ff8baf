"""Addresses of the desk's pages.

A skill is at ``/skill/<origin>/<path>`` if its URI is the usual one for that path, else at
``/skill/<origin>/<URI>``; both lead to the same page. A file of it is named beside that, in ``path``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from skillwire.errors import FormatError
from skillwire.skill.uri import parse_uri, skill_md_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Mapping


def skill_place(origin: str, uri: str, **query: str) -> str:
    """The page of a skill."""
    return _place("/skill", origin, uri, query)


def file_place(origin: str, uri: str, path: str) -> str:
    """The page of one of its files."""
    return _place("/file", origin, uri, {"path": path})


def raw_place(origin: str, uri: str, path: str) -> str:
    """The bytes of one of its files."""
    return _place("/raw", origin, uri, {"path": path})


def action_place(action: str, origin: str, uri: str) -> str:
    """Where a form about a skill is sent to."""
    return _place(f"/{action}", origin, uri, {})


def uri_at(place: str) -> str:
    """The URI that the rest of an address means."""
    return place if "://" in place else skill_md_uri(place)


def path_inside(skill: str, uri: str) -> str:
    """The path of a file inside the skill whose ``SKILL.md`` is at ``skill``; its URI if it is elsewhere (P4)."""
    try:
        root, place = skill_root(parse_uri(skill)), parse_uri(uri)
    except FormatError:
        return uri
    depth = len(root.segments)
    is_inside = place.scheme == root.scheme and place.segments[:depth] == root.segments
    return "/".join(place.segments[depth:]) if is_inside else uri


def _place(page: str, origin: str, uri: str, query: Mapping[str, str]) -> str:
    words = f"?{urlencode(query)}" if query else ""
    return f"{page}/{quote(origin, safe='')}/{_skill_part(uri)}{words}"


def _skill_part(uri: str) -> str:
    try:
        path = skill_root(parse_uri(uri)).path
    except FormatError:
        return quote(uri, safe="")
    is_usual = skill_md_uri(path) == uri and "://" not in path
    return quote(path, safe="/") if is_usual else quote(uri, safe="")
