"""B1, R1: bytes out of an answer, capped before they are decoded, and only if they are about what was asked."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from answering import Answering, serving
from rules import rule
from skillwire.client.content import decode_content, read_content, read_if_there
from skillwire.errors import LimitError, NotFoundError, ProtocolError, SkillwireError, UpstreamError

URI = "skill://acme/refunds/a%20b.md"
LARGE = 10**6


def answer(*items: Any) -> dict[str, Any]:
    return {"contents": list(items)}


def blob(data: bytes) -> dict[str, Any]:
    return {"uri": URI, "blob": b64encode(data).decode()}


def text(words: str) -> dict[str, Any]:
    return {"uri": URI, "text": words}


def refusal(result: dict[str, Any], at_most: int = LARGE) -> SkillwireError:
    with pytest.raises((ProtocolError, LimitError)) as caught:
        decode_content(result, URI, at_most)
    assert caught.value.message
    assert caught.value.hint
    return caught.value


@rule("R1", "F6")
@pytest.mark.parametrize(
    "words", ["", "a\r\nb\n", "\ufeffnaïve 日本語 😀\x00"], ids=["empty", "line-ends", "unicode"]
)
def test_text_comes_out_as_its_bytes(words: str) -> None:
    assert decode_content(answer(text(words)), URI, LARGE) == words.encode()


@rule("R1")
@pytest.mark.parametrize("data", [b"", bytes(range(256))], ids=["empty", "all-bytes"])
def test_base64_comes_out_as_its_bytes(data: bytes) -> None:
    assert decode_content(answer(blob(data)), URI, LARGE) == data


@rule("R1", "U7")
@pytest.mark.parametrize("said", [URI, "SKILL://acme/refunds/%61%20b.md", "skill://acme/refunds/a b.md"])
def test_an_answer_about_the_resource_is_taken_in_any_spelling(said: str) -> None:
    assert decode_content(answer({"uri": said, "text": "x"}), URI, LARGE) == b"x"


@rule("R1")
def test_an_answer_that_does_not_say_what_it_is_about_is_about_what_was_asked() -> None:
    """Some servers leave it out."""
    assert decode_content(answer({"text": "x"}), URI, LARGE) == b"x"


@rule("R1")
def test_the_content_that_is_about_the_resource_is_found_among_others() -> None:
    """The first that is."""
    others = [{"uri": "skill://acme/refunds/other.md", "text": "no"}, {"uri": 5, "text": "no"}]
    assert decode_content(answer(*others, text("yes"), text("second")), URI, LARGE) == b"yes"


@rule("R1", "V2")
@pytest.mark.parametrize(
    "said", ["skill://acme/refunds/A%20b.md", "", 5, "x"], ids=["other-file", "empty", "number", "no-uri"]
)
def test_an_answer_about_something_else_is_none(said: object) -> None:
    """Whatever it holds."""
    error = refusal(answer({"uri": said, "text": "x"}))
    assert (error.reference, error.rule) == ("content-invalid", "R1")
    assert URI in error.message


@rule("R1")
@pytest.mark.parametrize(
    "result",
    [
        pytest.param({}, id="no-contents"),
        pytest.param({"contents": {"text": "x"}}, id="contents-are-an-object"),
        pytest.param(answer(), id="empty"),
        pytest.param(answer("x"), id="item-is-text"),
        pytest.param(answer({"uri": URI}), id="neither-text-nor-blob"),
        pytest.param(answer({"uri": URI, "text": 5}), id="text-is-a-number"),
        pytest.param(answer({"uri": URI, "blob": ["eA=="]}), id="blob-is-a-list"),
    ],
)
def test_an_answer_of_another_shape_is_refused(result: dict[str, Any]) -> None:
    error = refusal(result)
    assert (type(error), error.reference, error.rule) == (ProtocolError, "content-invalid", "R1")


@rule("R1")
@pytest.mark.parametrize(
    "bad", ["eA", "eA==eA==", "eA==\n", "éééé", "eA*="], ids=["cut", "two", "line-end", "not-ascii", "asterisk"]
)
def test_base64_that_cannot_be_decoded_is_refused(bad: str) -> None:
    """Nothing is skipped over and nothing is guessed."""
    assert refusal(answer({"uri": URI, "blob": bad})).reference == "content-invalid"


@rule("R1")
def test_text_that_is_not_unicode_is_refused() -> None:
    assert refusal(answer(text("a\ud800b"))).reference == "content-invalid"


@rule("B1")
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4])
def test_content_may_have_so_many_bytes_and_no_more(size: int) -> None:
    """To the byte, in both forms."""
    data = b"x" * size
    for item in (text("x" * size), blob(data)):
        assert decode_content(answer(item), URI, size) == data
        if size:
            error = refusal(answer(item), size - 1)
            assert (type(error), error.reference, error.rule) == (LimitError, "file-too-large", "B1")
            assert URI in error.message
            assert str(size - 1) in error.message


@rule("B1")
def test_bytes_are_counted_not_characters() -> None:
    assert decode_content(answer(text("日")), URI, 3) == "日".encode()
    assert refusal(answer(text("日")), 2).reference == "file-too-large"


@rule("B1")
def test_what_is_too_large_is_refused_before_it_is_decoded() -> None:
    """Neither of these could be decoded."""
    assert refusal(answer({"uri": URI, "blob": "*" * 1000}), 10).reference == "file-too-large"
    assert refusal(answer(text("\ud800" * 1000)), 10).reference == "file-too-large"


@rule("R1")
@pytest.mark.anyio
async def test_content_is_asked_for_by_its_uri() -> None:
    connection = serving({URI: answer(text("x"))})
    assert await read_content(connection, URI, 5) == b"x"
    assert connection.asked == [("resources/read", {"uri": URI})]
    with pytest.raises(LimitError):
        await read_content(connection, URI, 0)


ABSENT = [
    NotFoundError("not-served", "no such resource"),
    ProtocolError("method-unknown", "what is resources/read?"),
    UpstreamError("server-failed", "KeyError"),
]


@rule("I4")
@pytest.mark.anyio
@pytest.mark.parametrize("error", ABSENT, ids=lambda error: error.reference)
async def test_a_resource_that_may_not_be_there_is_none_however_the_server_says_so(error: Exception) -> None:
    assert await read_if_there(Answering(lambda *_: error), URI, LARGE) is None


@rule("I4", "L2")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "error",
    [
        UpstreamError("connection-lost", "gone"),
        UpstreamError("timed-out", "slow"),
        UpstreamError("not-allowed", "401"),
        ProtocolError("message-invalid", "?"),
        LimitError("server-budget", "too much"),
    ],
    ids=lambda error: error.reference,
)
async def test_a_failure_is_not_taken_for_absence(error: SkillwireError) -> None:
    """A server that cannot answer may well have it."""
    with pytest.raises(type(error)) as caught:
        await read_if_there(Answering(lambda *_: error), URI, LARGE)
    assert caught.value is error


@rule("R1", "B1")
@pytest.mark.anyio
async def test_a_resource_that_is_there_and_broken_is_not_taken_for_absent() -> None:
    assert await read_if_there(serving({URI: answer(text("x"))}), URI, 1) == b"x"
    with pytest.raises(ProtocolError):
        await read_if_there(serving({URI: answer()}), URI, LARGE)
    with pytest.raises(LimitError):
        await read_if_there(serving({URI: answer(text("xx"))}), URI, 1)
