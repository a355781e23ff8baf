"""E3, F6: a digest is ``sha256:`` and 64 lowercase hexadecimal digits over raw bytes."""

from __future__ import annotations

import pytest

from rules import rule
from skillwire.errors import FormatError
from skillwire.skill.entry import digest_of, is_digest, parse_digest

EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
ABC = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@rule("E3")
@pytest.mark.parametrize(("data", "digest"), [(b"", EMPTY), (b"abc", ABC)], ids=["empty", "abc"])
def test_digests_are_those_of_the_standard(data: bytes, digest: str) -> None:
    """The test vectors of FIPS 180-2."""
    assert digest_of(data) == digest
    assert is_digest(digest)
    assert parse_digest(digest) == digest


@rule("F6")
def test_every_byte_counts() -> None:
    """A mark, a carriage return or a final newline is another file."""
    variants = [b"a\n", b"a\r\n", b"a", b"\xef\xbb\xbfa\n", b"a\n\n", b"\xff\xfea\x00"]
    assert len({digest_of(data) for data in variants}) == len(variants)


@rule("E3")
@pytest.mark.parametrize(
    "text",
    ["", ABC.upper(), "sha256:" + ABC[7:].upper(), ABC[:-1], ABC + "0", ABC + "\n", " " + ABC, ABC[7:],
     "sha512:" + ABC[7:], ABC[:-1] + "g", ABC[:-1] + "\u0663", None, ABC.encode()],
    ids=["empty", "upper-case", "upper-case-digits", "short", "long", "newline", "space", "no-algorithm",
         "another-algorithm", "not-hexadecimal", "arabic-digit", "null", "bytes"],
)  # fmt: skip
def test_any_other_spelling_is_refused(text: object) -> None:
    assert not is_digest(text)
    with pytest.raises(FormatError) as caught:
        parse_digest(text)
    assert caught.value.reference == "digest-invalid"


@rule("B1")
def test_a_refusal_of_something_long_is_short() -> None:
    with pytest.raises(FormatError) as caught:
        parse_digest("sha256:" + "0" * 1_000_000)
    assert len(caught.value.message) < 200
