"""Pages from a server, to the last one or to a bound (B3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from skillwire.client.shapes import as_list, as_object
from skillwire.errors import LimitError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from skillwire.client.connection import Connection

_CORRECT = "the server has to be corrected"


async def each_page(
    connection: Connection, method: str, field: str, **params: Any
) -> AsyncIterator[list[dict[str, Any]]]:
    """The items of every page. A cursor that comes twice, or too many pages or items, end it with an error.

    What came within the bounds is given before that.
    """
    limits = connection.limits
    seen: set[str] = set()
    count = 0
    while True:
        result = await connection.request(method, **params)
        items = _items(result, method, field)
        yield items[: limits.max_entries - count]
        count += len(items)
        if count > limits.max_entries:
            raise LimitError(
                "listing-too-long",
                f"{method} gave more than {limits.max_entries} items",
                "raise Limits.max_entries if you trust the server that far",
                rule="B3",
            )
        cursor = _cursor(result, method, limits.max_cursor_length)
        if cursor is None:
            return
        if cursor in seen:
            raise ProtocolError(
                "cursor-repeats",
                f"{method} gave the same cursor twice, so that its pages never end",
                f"{_CORRECT}; the pages so far were read",
                rule="B3",
            )
        seen.add(cursor)
        if len(seen) >= limits.max_pages:
            raise LimitError(
                "listing-too-long",
                f"{method} gave more than {limits.max_pages} pages",
                "raise Limits.max_pages if you trust the server that far",
                rule="B3",
            )
        params["cursor"] = cursor


def _items(result: dict[str, Any], method: str, field: str) -> list[dict[str, Any]]:
    items = result.get(field)
    if not isinstance(items, list):
        raise ProtocolError(
            "answer-invalid", f"the answer to {method} has no list of {field!r}", _CORRECT, rule="L1"
        )
    return [as_object(item) for item in as_list(cast("object", items))]


def _cursor(result: dict[str, Any], method: str, max_length: int) -> str | None:
    cursor = result.get("nextCursor")
    if cursor is not None and (not isinstance(cursor, str) or len(cursor) > max_length):
        raise ProtocolError(
            "answer-invalid", f"the cursor that {method} gave is not a short text", _CORRECT, rule="L3"
        )
    return cursor
