"""Addresses of the pages of the desk.

A skill is at ``/skill/<origin>/<path>`` if its URI is the usual one for that path, otherwise at
``/skill/<origin>/<URI>``. The path of a file is in the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from skillwire.errors import FormatError
from skillwire.skill.uri import parse_uri, skill_md_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Mapping


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
