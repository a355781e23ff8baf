"""One compressed text behind many short beginnings, without compressing it again (RFC 1951, 1952).

The beginning goes into a block that is stored as it is, which ends on a whole byte; the compressed rest follows.
The checksum is the only thing that is computed anew over all of it.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # gzip, deflate, no name, no time, any system
_LEVEL = 6


class Deflated(NamedTuple):
    """A text as a raw deflate stream that ends a file."""

    stream: bytes

    @classmethod
    def of(cls, text: bytes) -> Deflated:
        """Compress ``text``."""
        compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        return cls(compressor.compress(text) + compressor.flush())

    def behind(self, beginning: bytes, text: bytes) -> bytes:
        """A gzip file of ``beginning`` (at most 65,535 bytes) and ``text``, the one that was compressed."""
        size = len(beginning)
        stored = b"\x00" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + beginning
        checksum = zlib.crc32(text, zlib.crc32(beginning))
        length = (size + len(text)) & 0xFFFFFFFF
        return b"".join(
            (_HEADER, stored, self.stream, checksum.to_bytes(4, "little"), length.to_bytes(4, "little"))
        )
