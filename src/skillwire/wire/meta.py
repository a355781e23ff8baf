"""Keys in ``_meta`` for data that a dialect has no fields for (R4). Other clients may ignore them."""

from __future__ import annotations

_PREFIX = "io.github.skillwire"

URI = f"{_PREFIX}/uri"  # the URI of the skill's SKILL.md in the extension
DIGEST = f"{_PREFIX}/digest"  # of a file's raw bytes
SIZE = f"{_PREFIX}/size"
ACTIVATION = f"{_PREFIX}/activation"  # the token with the active skills (stateless era)
