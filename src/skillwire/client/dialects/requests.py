"""The two kinds of request that every dialect sends: pages of a listing, and the bytes of a resource.

A listing ends at its last page or at a bound (B3). Content is measured before it is decoded (B1, R1).
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any, cast

import anyio

from skillwire.client.shapes import as_list, as_object, as_text
from skillwire.errors import FormatError, LimitError, NotFoundError, ProtocolError, UpstreamError
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from skillwire.client.connection import Connection
    from skillwire.limits import Limits

_FIX_SERVER = "the server must be fixed"
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')


async def each_page(
    connection: Connection, method: str, field: str, **params: Any
) -> AsyncIterator[list[dict[str, Any]]]:
    """Yield the items of every page (B3).

    Raises an error at a repeated cursor, at a page without a new item, and at the bounds on pages, items, bytes,
    JSON values and time. Everything within the bounds is yielded first.
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
        seconds -= anyio.current_time() - begun  # time that the caller spends on a page does not count
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
            raise _repeats("cursor-repeats", f"{method} returned the same cursor twice, so its pages never end")
        cursors.add(cursor)
        named = {as_text(item.get("uri")) or as_text(item.get("name")) for item in items}
        if named <= known:
            raise _repeats("page-repeats", f"{method} returned a page without a new entry, and another cursor")
        known |= named
        if len(cursors) >= limits.max_pages:
            raise _too_long(limits, "max_pages", method)
        params["cursor"] = cursor


async def read_content(connection: Connection, uri: str, at_most: int) -> bytes:
    """Read the resource at ``uri``, at most ``at_most`` bytes."""
    result = await connection.request("resources/read", uri=uri)
    return decode_content(result, uri, at_most)


async def read_if_exists(connection: Connection, uri: str, at_most: int) -> bytes | None:
    """Read the resource at ``uri``, or return ``None`` if the server does not have it."""
    try:
        return await read_content(connection, uri, at_most)
    except NotFoundError:
        return None
    except (ProtocolError, UpstreamError) as error:
        # Servers report a missing resource in different ways.
        if error.reference in ("method-unknown", "server-failed"):
            return None
        raise


def decode_content(result: dict[str, Any], uri: str, at_most: int) -> bytes:
    """Decode the content for ``uri`` in a response to ``resources/read``."""
    item = next((item for item in map(as_object, as_list(result.get("contents"))) if _is_about(item, uri)), None)
    match item:
        case {"text": str(text)}:
            return _from_text(text, uri, at_most)
        case {"blob": str(blob)}:
            return _from_base64(blob, uri, at_most)
        case None:
            raise _invalid_content(uri, "is about another resource")
        case _:
            raise _invalid_content(uri, "has neither text nor base64")


def check_size(size: int, uri: str, at_most: int) -> None:
    """B1: raise ``LimitError`` for more than ``at_most`` bytes."""
    if size > at_most:
        raise LimitError(
            "file-too-large",
            f"{uri!r:.300} has more than {at_most} bytes",
            "the file is larger than its entry claims, or than Limits.max_file_bytes allows",
            rule="B1",
        )


def _is_about(item: dict[str, Any], uri: str) -> bool:
    """Whether ``item`` is the requested resource, in any spelling of its URI."""
    claimed = item.get("uri", uri)
    if claimed == uri:
        return True
    try:
        return isinstance(claimed, str) and parse_uri(claimed) == parse_uri(uri)
    except FormatError:
        return False


def _from_text(text: str, uri: str, at_most: int) -> bytes:
    check_size(len(text), uri, at_most)
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise _invalid_content(uri, "has text that is not Unicode") from error
    check_size(len(data), uri, at_most)
    return data


def _from_base64(blob: str, uri: str, at_most: int) -> bytes:
    check_size(len(blob) // 4 * 3 - 2, uri, at_most)
    try:
        data = b64decode(blob, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid_content(uri, "has base64 that cannot be decoded") from error
    check_size(len(data), uri, at_most)
    return data


def _items(result: dict[str, Any], method: str, field: str) -> list[dict[str, Any]]:
    items = result.get(field)
    if not isinstance(items, list):
        raise ProtocolError(
            "answer-invalid", f"the response to {method} has no list of {field!r}", _FIX_SERVER, rule="L1"
        )
    return [as_object(item) for item in as_list(cast("object", items))]


def _cursor(result: dict[str, Any], method: str, max_length: int) -> str | None:
    cursor = result.get("nextCursor")
    if cursor is not None and (not isinstance(cursor, str) or len(cursor) > max_length):
        raise ProtocolError(
            "answer-invalid", f"the cursor from {method} is not a short string", _FIX_SERVER, rule="L3"
        )
    return cursor


def _too_long(limits: Limits, bound: str, method: str) -> LimitError:
    return LimitError(
        "listing-too-long",
        f"the listing by {method} exceeds {getattr(limits, bound)} {bound.rpartition('_')[2]}",
        f"raise Limits.{bound} if you trust the server",
        rule="B3",
    )


def _repeats(reference: str, message: str) -> ProtocolError:
    return ProtocolError(reference, message, f"{_FIX_SERVER}; the pages so far were read", rule="B3")


def _invalid_content(uri: str, reason: str) -> ProtocolError:
    return ProtocolError("content-invalid", f"the response for {uri!r:.300} {reason}", _FIX_SERVER, rule="R1")
