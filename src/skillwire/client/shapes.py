"""Untrusted JSON: conversions that return an empty value for the wrong type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from skillwire.errors import FormatError
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    from skillwire.skill.uri import SkillUri


def as_object(value: object) -> dict[str, Any]:
    """``value`` if it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """``value`` if it is a JSON array, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """``value`` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def as_size(value: object) -> int | None:
    """``value`` if it is a number of bytes, else ``None``."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def as_uri(value: object) -> SkillUri | None:
    """``value`` as a parsed URI if it is a valid one (U7), else ``None``."""
    try:
        return parse_uri(value) if isinstance(value, str) else None
    except FormatError:
        return None
