"""Pages from a server, to the last one or to a bound (B3)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

import anyio

from skillwire.client.shapes import as_list, as_object, as_text
from skillwire.errors import LimitError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from skillwire.client.connection import Connection
    from skillwire.limits import Limits

_CORRECT = "the server has to be corrected"
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')


async def each_page(
    connection: Connection, method: str, field: str, **params: Any
) -> AsyncIterator[list[dict[str, Any]]]:
    """The items of every page (B3).

    It ends with an error at a cursor that repeats, at a page that brings nothing new, and at the bounds on pages,
    items, bytes, JSON values and time. What came within the bounds is given before that.
    """
    limits = connection.limits
    cursors: set[str] = set()
    known: set[str] = set()
    count = size = values = objects = 0
    seconds = limits.max_listing_seconds
    while True:
        begun = anyio.current_time()
        try:
            with anyio.fail_after(seconds):
                result = await connection.request(method, **params)
        except TimeoutError:
            raise _too_long(limits, "max_listing_seconds", method) from None
        seconds -= anyio.current_time() - begun
        items = _items(result, method, field)
        text = json.dumps(items, ensure_ascii=False)
        marks = _STRING.sub("", text)
        size += len(text)
        objects += (nested := marks.count("{") + marks.count("["))
        values += nested + marks.count(",")
        if size > limits.max_listing_bytes:
            raise _too_long(limits, "max_listing_bytes", method)
        if values > limits.max_listing_values:
            raise _too_long(limits, "max_listing_values", method)
        if objects > limits.max_listing_objects:
            raise _too_long(limits, "max_listing_objects", method)
        yield items[: limits.max_entries - count]
        count += len(items)
        if count > limits.max_entries:
            raise _too_long(limits, "max_entries", method)
        cursor = _cursor(result, method, limits.max_cursor_length)
        if cursor is None:
            return
        if cursor in cursors:
            raise _repeats("cursor-repeats", f"{method} gave the same cursor twice, so that its pages never end")
        cursors.add(cursor)
        named = {as_text(item.get("uri")) or as_text(item.get("name")) for item in items}
        if named <= known:
            raise _repeats("page-repeats", f"{method} gave a page without a new entry, and a cursor for another")
        known |= named
        if len(cursors) >= limits.max_pages:
            raise _too_long(limits, "max_pages", method)
        params["cursor"] = cursor


def _too_long(limits: Limits, bound: str, method: str) -> LimitError:
    return LimitError(
        "listing-too-long",
        f"{method} went on beyond {getattr(limits, bound)} {bound.rpartition('_')[2]}",
        f"raise Limits.{bound} if you trust the server that far",
        rule="B3",
    )


def _repeats(reference: str, message: str) -> ProtocolError:
    return ProtocolError(reference, message, f"{_CORRECT}; the pages so far were read", rule="B3")


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
