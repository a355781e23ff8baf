"""The bytes of a resource, measured before they are decoded (B1, R1), and pages up to a bound (B3, L1, L3)."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from answering import Answering, serving
from rules import rule
from skillwire.client.dialects.contract import decode_content, each_page, read_content, read_if_exists
from skillwire.errors import LimitError, NotFoundError, ProtocolError, SkillwireError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.anyio

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
@pytest.mark.parametrize("error", ABSENT, ids=lambda error: error.reference)
async def test_a_resource_that_may_not_be_there_is_none_however_the_server_says_so(error: Exception) -> None:
    assert await read_if_exists(Answering(lambda *_: error), URI, LARGE) is None


@rule("I4", "L2")
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
        await read_if_exists(Answering(lambda *_: error), URI, LARGE)
    assert caught.value is error


@rule("R1", "B1")
async def test_a_resource_that_is_there_and_broken_is_not_taken_for_absent() -> None:
    assert await read_if_exists(serving({URI: answer(text("x"))}), URI, 1) == b"x"
    with pytest.raises(ProtocolError):
        await read_if_exists(serving({URI: answer()}), URI, LARGE)
    with pytest.raises(LimitError):
        await read_if_exists(serving({URI: answer(text("xx"))}), URI, 1)


# Pages

ITEM = {"uri": "x"}


def paging(*pages: dict[str, Any], limits: Limits = DEFAULT_LIMITS) -> Answering:
    """A server that gives these pages one after another, and the last for ever."""
    given = iter(pages)

    def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return next(given, pages[-1])

    return Answering(answer, limits)


async def read_pages(connection: Answering) -> list[list[dict[str, Any]]]:
    return [items async for items in each_page(connection, "skills/list", "skills", uri="u")]


async def listing_error(connection: Answering) -> SkillwireError:
    with pytest.raises((ProtocolError, LimitError)) as caught:
        await read_pages(connection)
    assert "skills/list" in caught.value.message
    assert caught.value.hint
    return caught.value


@rule("L1", "L3")
async def test_every_page_is_asked_for_with_the_cursor_of_the_one_before() -> None:
    """The last page may be empty, and a cursor may be empty text."""
    other = {"uri": "y"}
    connection = paging(
        {"skills": [ITEM, ITEM], "nextCursor": "1"}, {"skills": [other], "nextCursor": ""}, {"skills": []}
    )
    assert await read_pages(connection) == [[ITEM, ITEM], [other], []]
    assert [params for _, params in connection.asked] == [
        {"uri": "u"}, {"uri": "u", "cursor": "1"}, {"uri": "u", "cursor": ""},
    ]  # fmt: skip


@rule("V5")
async def test_a_page_is_given_before_the_next_is_asked_for() -> None:
    connection = paging({"skills": [ITEM], "nextCursor": "1"}, {"skills": []})
    async for _ in each_page(connection, "skills/list", "skills"):
        break
    assert len(connection.asked) == 1


@rule("L1")
async def test_an_item_that_is_no_object_is_an_empty_one() -> None:
    """It is refused as an entry, and the others are read."""
    assert await read_pages(paging({"skills": [1, None, "x", [], ITEM]})) == [[{}, {}, {}, {}, ITEM]]


@rule("L1")
@pytest.mark.parametrize("page", [{}, {"skills": None}, {"skills": {}}], ids=["none", "null", "object"])
async def test_an_answer_without_the_list_is_refused(page: dict[str, Any]) -> None:
    error = await listing_error(paging(page))
    assert (error.reference, error.rule) == ("answer-invalid", "L1")


@rule("L3", "B1")
@pytest.mark.parametrize("cursor", [5, "c" * (DEFAULT_LIMITS.max_cursor_length + 1)], ids=["number", "too-long"])
async def test_an_invalid_cursor_is_refused(cursor: object) -> None:
    error = await listing_error(paging({"skills": [], "nextCursor": cursor}))
    assert (error.reference, error.rule) == ("answer-invalid", "L3")


@rule("B3")
@pytest.mark.parametrize("cursors", ["a", "abc"])
async def test_a_cursor_that_comes_again_ends_it(cursors: str) -> None:
    """At once, or after some others."""
    pages = [{"skills": [{"uri": f"{n}"}], "nextCursor": c} for n, c in enumerate([*cursors, cursors[0]])]
    connection = paging(*pages)
    error = await listing_error(connection)
    assert (type(error), error.reference, error.rule) == (ProtocolError, "cursor-repeats", "B3")
    assert len(connection.asked) == len(cursors) + 1


@rule("B3")
async def test_so_many_pages_and_no_more() -> None:
    pages = [{"skills": [{"name": f"{number}"}], "nextCursor": f"{number}"} for number in range(9)]
    connection = paging(*pages, {"skills": []}, limits=Limits(max_pages=10))
    assert len(await read_pages(connection)) == 10
    connection = paging(*pages, {"skills": []}, limits=Limits(max_pages=9))
    error = await listing_error(connection)
    assert (type(error), error.reference, error.rule) == (LimitError, "listing-too-long", "B3")
    assert len(connection.asked) == 9


@rule("B3")
async def test_so_many_items_and_no_more() -> None:
    """Over all pages."""
    pages = ({"skills": [ITEM] * 3, "nextCursor": "1"}, {"skills": [ITEM] * 2})
    assert len(await read_pages(paging(*pages, limits=Limits(max_entries=5)))) == 2
    error = await listing_error(paging(*pages, limits=Limits(max_entries=4)))
    assert (type(error), error.reference, error.rule) == (LimitError, "listing-too-long", "B3")
