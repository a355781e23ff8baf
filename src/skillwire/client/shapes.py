"""JSON from a stranger: the shape is asked for, never assumed. What is not of it is empty."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from skillwire.client.meter import ValueCounter, too_many_values

if TYPE_CHECKING:
    from skillwire.limits import Limits


def parse_json(data: bytes, what: str, limits: Limits) -> object:
    """``data`` decoded, if it has not too many values (B1); ``ValueError`` if it is not JSON."""
    if ValueCounter(limits.max_message_values).add(data):
        raise too_many_values(what, limits)
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def as_object(value: object) -> dict[str, Any]:
    """``value`` if it is a JSON object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """``value`` if it is a JSON array."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """``value`` if it is text."""
    return value if isinstance(value, str) else ""


def as_size(value: object) -> int | None:
    """``value`` if it is a number of bytes."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
