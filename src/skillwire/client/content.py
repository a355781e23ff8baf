"""Bytes out of ``resources/read``: capped before they are decoded (B1, R1)."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from skillwire.client.shapes import as_list, as_object
from skillwire.errors import FormatError, LimitError, NotFoundError, ProtocolError, UpstreamError
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    from skillwire.client.connection import Connection


async def read_content(connection: Connection, uri: str, at_most: int) -> bytes:
    """The bytes of the resource at ``uri``, at most so many."""
    result = await connection.request("resources/read", uri=uri)
    return decode_content(result, uri, at_most)


async def read_if_there(connection: Connection, uri: str, at_most: int) -> bytes | None:
    """The same for a resource that may not exist. Servers have many ways to say so."""
    try:
        return await read_content(connection, uri, at_most)
    except NotFoundError:
        return None
    except (ProtocolError, UpstreamError) as error:
        if error.reference in ("method-unknown", "server-failed"):
            return None
        raise


def decode_content(result: dict[str, Any], uri: str, at_most: int) -> bytes:
    """The one content that is about ``uri``."""
    item = next((item for item in map(as_object, as_list(result.get("contents"))) if _is_about(item, uri)), None)
    match item:
        case {"text": str(text)}:
            return _from_text(text, uri, at_most)
        case {"blob": str(blob)}:
            return _from_base64(blob, uri, at_most)
        case None:
            raise _invalid(uri, "is not about it")
        case _:
            raise _invalid(uri, "has neither text nor base64")


def _is_about(item: dict[str, Any], uri: str) -> bool:
    """Whether ``item`` says that it is the resource that was asked for, in whatever spelling."""
    said = item.get("uri", uri)
    if said == uri:
        return True
    try:
        return isinstance(said, str) and parse_uri(said) == parse_uri(uri)
    except FormatError:
        return False


def _from_text(text: str, uri: str, at_most: int) -> bytes:
    check_size(len(text), uri, at_most)
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise _invalid(uri, "has text that is not Unicode") from error
    check_size(len(data), uri, at_most)
    return data


def _from_base64(blob: str, uri: str, at_most: int) -> bytes:
    check_size(len(blob) // 4 * 3 - 2, uri, at_most)
    try:
        data = b64decode(blob, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid(uri, "has base64 that cannot be decoded") from error
    check_size(len(data), uri, at_most)
    return data


def check_size(size: int, uri: str, at_most: int) -> None:
    """B1: refuse what is larger than it may be."""
    if size > at_most:
        raise LimitError(
            "file-too-large",
            f"{uri!r:.300} has more than the {at_most} bytes that it may have",
            "it is larger than its entry says, or than Limits.max_file_bytes allows",
            rule="B1",
        )


def _invalid(uri: str, reason: str) -> ProtocolError:
    return ProtocolError(
        "content-invalid", f"the answer for {uri!r:.300} {reason}", "the server has to be corrected", rule="R1"
    )
