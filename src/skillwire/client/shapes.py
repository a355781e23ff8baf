"""Untrusted JSON: parsing with a bound, and conversions that return an empty value for the wrong type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from skillwire.client.meter import ValueCounter, too_many_values
from skillwire.errors import FormatError
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    from skillwire.limits import Limits
    from skillwire.skill.uri import SkillUri


def parse_json(data: bytes, what: str, limits: Limits) -> object:
    """Decode ``data``; ``LimitError`` for too many values (B1), ``ValueError`` if it is not JSON."""
    if ValueCounter(limits.max_message_values).add(data):
        raise too_many_values(what, limits)
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


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
