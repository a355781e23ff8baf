"""A text that is compressed once can be read behind every beginning."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from skillwire.server.response_cache import deflated, gzip_file

NOISE = random.Random(7).randbytes(70_000)


TEXTS = (b"", b"y", b"line of text\n" * 2000, NOISE)


@pytest.mark.parametrize(
    "beginning",
    [b"", b"x", b'{"jsonrpc":"2.0","id":12', NOISE[:65_535]],
    ids=["nothing", "a-byte", "json", "as-long-as-allowed"],
)
def test_the_whole_is_one_gzip_file(beginning: bytes) -> None:
    for text in TEXTS:
        whole = gzip_file(beginning, text, deflated(text))
        assert gzip.decompress(whole) == beginning + text
        reader = zlib.decompressobj(16 + zlib.MAX_WBITS)  # as HTTP clients read it: one member, nothing behind
        assert reader.decompress(whole) == beginning + text
        assert reader.eof
        assert not reader.unused_data
