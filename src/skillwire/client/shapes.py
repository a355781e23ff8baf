"""JSON from a stranger: the shape is asked for, never assumed. What is not of it is empty."""

from __future__ import annotations

from typing import Any, cast


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
