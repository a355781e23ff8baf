"""The values that frontmatter can hold, and where they stand: apart from ``coreyaml``, which is slow to import."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Position(NamedTuple):
    """A place in the text, counted from 1."""

    line: int
    column: int
