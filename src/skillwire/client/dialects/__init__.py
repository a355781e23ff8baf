"""The dialects: how to list, get and read the skills of a server that speaks one.

All dialects return ``SkillEntry`` values. Information that a dialect does not have is missing from them, never
invented.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

DialectName: TypeAlias = Literal["extension", "index", "sep-2076", "native", "fallback"]
DIALECT_NAMES: tuple[DialectName, ...] = get_args(DialectName)
