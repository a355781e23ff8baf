"""B3, L1, L3: pages to the last one, or to a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from answering import Answering
from rules import rule
from skillwire.client.pages import each_page
from skillwire.errors import LimitError, ProtocolError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.anyio

ITEM = {"uri": "x"}


def paging(*pages: dict[str, Any], limits: Limits = DEFAULT_LIMITS) -> Answering:
    """A server that gives these pages one after another, and the last for ever."""
    given = iter(pages)

    def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return next(given, pages[-1])

    return Answering(answer, limits)


async def read(connection: Answering) -> list[list[dict[str, Any]]]:
    return [items async for items in each_page(connection, "skills/list", "skills", uri="u")]


async def refusal(connection: Answering) -> SkillwireError:
    with pytest.raises((ProtocolError, LimitError)) as caught:
        await read(connection)
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
    assert await read(connection) == [[ITEM, ITEM], [other], []]
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
    """It is refused as an entry, and does not spoil the others."""
    assert await read(paging({"skills": [1, None, "x", [], ITEM]})) == [[{}, {}, {}, {}, ITEM]]


@rule("L1")
@pytest.mark.parametrize("page", [{}, {"skills": None}, {"skills": {}}], ids=["none", "null", "object"])
async def test_an_answer_without_the_list_is_refused(page: dict[str, Any]) -> None:
    error = await refusal(paging(page))
    assert (error.reference, error.rule) == ("answer-invalid", "L1")


@rule("L3", "B1")
@pytest.mark.parametrize("cursor", [5, "c" * (DEFAULT_LIMITS.max_cursor_length + 1)], ids=["number", "too-long"])
async def test_an_invalid_cursor_is_refused(cursor: object) -> None:
    error = await refusal(paging({"skills": [], "nextCursor": cursor}))
    assert (error.reference, error.rule) == ("answer-invalid", "L3")


@rule("B3")
@pytest.mark.parametrize("cursors", ["a", "abc"])
async def test_a_cursor_that_comes_again_ends_it(cursors: str) -> None:
    """At once, or after some others."""
    pages = [{"skills": [{"uri": f"{n}"}], "nextCursor": c} for n, c in enumerate([*cursors, cursors[0]])]
    connection = paging(*pages)
    error = await refusal(connection)
    assert (type(error), error.reference, error.rule) == (ProtocolError, "cursor-repeats", "B3")
    assert len(connection.asked) == len(cursors) + 1


@rule("B3")
async def test_so_many_pages_and_no_more() -> None:
    pages = [{"skills": [{"name": f"{number}"}], "nextCursor": f"{number}"} for number in range(9)]
    connection = paging(*pages, {"skills": []}, limits=Limits(max_pages=10))
    assert len(await read(connection)) == 10
    connection = paging(*pages, {"skills": []}, limits=Limits(max_pages=9))
    error = await refusal(connection)
    assert (type(error), error.reference, error.rule) == (LimitError, "listing-too-long", "B3")
    assert len(connection.asked) == 9


@rule("B3")
async def test_so_many_items_and_no_more() -> None:
    """Over all pages."""
    pages = ({"skills": [ITEM] * 3, "nextCursor": "1"}, {"skills": [ITEM] * 2})
    assert len(await read(paging(*pages, limits=Limits(max_entries=5)))) == 2
    error = await refusal(paging(*pages, limits=Limits(max_entries=4)))
    assert (type(error), error.reference, error.rule) == (LimitError, "listing-too-long", "B3")
