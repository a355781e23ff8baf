"""Digests: ``sha256:`` and 64 lowercase hex digits over raw bytes (E3, F6)."""

from __future__ import annotations

import re
from typing import TypeGuard

from skillwire.errors import FormatError

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")


def digest_of(data: bytes) -> str:
    """The digest of the raw bytes ``data``, without decoding or newline conversion."""
    from hashlib import sha256  # late: loading OpenSSL takes a tenth of the import time of this package

    return "sha256:" + sha256(data).hexdigest()


def is_digest(text: object) -> TypeGuard[str]:
    """Whether ``text`` is a digest in the form that E3 requires."""
    return isinstance(text, str) and _DIGEST.match(text) is not None


def parse_digest(text: object) -> str:
    """``text`` if it is a digest, else ``FormatError``."""
    if is_digest(text):
        return text
    raise FormatError(
        "digest-invalid",
        f"{text!r:.100} is not a digest",
        "a digest is 'sha256:' and 64 lowercase hexadecimal digits",
        rule="E3",
    )
