"""Sizes, counts and times as readable text. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def size_of(count: int) -> str:
    """A number of bytes, such as ``1.5 MiB``."""
    if count < 1024:
        return f"{count} B"
    size, unit = count / 1024, "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        if size >= 1024:
            size, unit = size / 1024, larger
    return f"{size:.1f} {unit}"


def counted(count: int, noun: str) -> str:
    """``1 skill``, ``2 skills``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def utc_text(at: float, precision: str = "milliseconds") -> str:
    """A time for programs, in UTC, such as ``2026-11-03T10:00:00.000Z``; ``precision`` may be ``seconds``."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec=precision).replace("+00:00", "Z")
