"""Names under which this package says more than a dialect has fields for (R4): nobody needs to read them."""

from __future__ import annotations

_PREFIX = "io.github.skillwire"

URI = f"{_PREFIX}/uri"  # the skill's SKILL.md, as the extension serves it
DIGEST = f"{_PREFIX}/digest"  # of a file's raw bytes
SIZE = f"{_PREFIX}/size"
ACTIVATION = f"{_PREFIX}/activation"  # a token that carries which skills are active (stateless era)
