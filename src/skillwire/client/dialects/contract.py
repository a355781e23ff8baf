"""The interface of a dialect, and the requests that all of them send.

These are the pages of a listing, the bytes of a resource, and a directory. A listing ends at its last page or at a
bound (B3). Content is measured before it is decoded (B1, R1).
"""

from __future__ import annotations

import binascii
import json
import re
from abc import ABC, abstractmethod
from base64 import b64decode
from typing import TYPE_CHECKING, Any, ClassVar, cast

import anyio

from skillwire.catalog.contract import DirectoryChild
from skillwire.client.bounds import as_list, as_object, as_size, as_text, as_uri
from skillwire.errors import FormatError, LimitError, NotFoundError, ProtocolError, SkillwireError, UpstreamError
from skillwire.skill.diagnostics import KINDS, Diagnostic
from skillwire.skill.entry import invalid_entry
from skillwire.skill.uri import is_within, parse_uri, skill_root
from skillwire.skill.version_status import VERSIONS
from skillwire.wire.extension import DIRECTORY, DIRECTORY_READ

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from skillwire.client.connection import Connection
    from skillwire.client.dialects import DialectName
    from skillwire.limits import Limits
    from skillwire.skill import SkillEntry, SkillUri

_FIX_SERVER = "the server must be fixed"
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')


class Children(list[DirectoryChild]):
    """The children of a directory. With ``error`` they are partial (B3)."""

    error: SkillwireError | None = None


class PageItems(list[dict[str, Any]]):
    """The items of a page. ``versions``: what the server states about the versions of its skills, by URI."""

    versions: Mapping[str, Any] = {}


class ClientDialect(ABC):
    """A dialect on one connection. ``report`` is called for every entry that is skipped."""

    name: ClassVar[DialectName]

    def __init__(self, connection: Connection, report: Callable[[Diagnostic], None]) -> None:
        self.connection = connection
        self.limits = connection.limits
        self.report = report

    @abstractmethod
    def pages(self) -> AsyncIterator[list[SkillEntry]]:
        """The listing, page by page. Invalid entries are reported and skipped."""

    @abstractmethod
    async def get_skill(self, uri: str) -> SkillEntry:
        """The current entry of one skill, with all details that the server has."""

    async def read(self, uri: str, at_most: int, skill: str = "") -> bytes:  # noqa: ARG002 - native needs it
        """The bytes at ``uri``, unverified; ``skill`` is the URI of their skill, if known."""
        return await read_content(self.connection, uri, at_most)

    async def read_directory(self, uri: str) -> Children:
        """``resources/directory/read``, all pages up to a bound of the listing (D1)."""
        if not self.connection.reads_directories:
            raise ProtocolError(
                "directory-unsupported",
                f"the server cannot read directories, such as {uri!r:.300}",
                "the entry of a skill lists its files",
                side="local",
                rule="K2",
            )
        folder = parse_uri(uri.removesuffix("/"))
        found: dict[str, DirectoryChild] = {}
        ended: SkillwireError | None = None
        try:
            async for items in each_page(self.connection, DIRECTORY_READ, "resources", uri=uri):
                for item in items:
                    try:
                        child = _parse_child(item, folder)
                    except FormatError as error:
                        self.skip(FormatError("child-invalid", error.message, error.hint, rule="D1"), uri)
                    else:
                        found.setdefault(child.name, child)
        except (LimitError, ProtocolError) as error:
            if error.rule != "B3" or not found:
                raise
            ended = error
            self.report(Diagnostic("listing-partial", error.message, error.hint, file=uri, skill=uri))
        children = Children(found[name] for name in sorted(found))
        children.error = ended
        return children

    def skip(self, error: SkillwireError, uri: object) -> None:
        """Report an invalid entry, which is then skipped."""
        self.report(problem_of(error, uri))


def _parse_child(item: object, folder: SkillUri) -> DirectoryChild:
    fields = as_object(item)
    uri = fields.get("uri")
    if not isinstance(uri, str):
        raise invalid_entry("a child has no URI", "D1")
    parsed = parse_uri(uri.removesuffix("/"))
    if not is_within(folder, parsed) or len(parsed.segments) != len(folder.segments) + 1:
        raise invalid_entry(f"{uri!r:.200} is not directly inside {folder!s:.200}", "D1")
    return DirectoryChild(
        uri,
        parsed.segments[-1],
        is_directory=fields.get("mimeType") == DIRECTORY,
        size=as_size(fields.get("size")),
    )


def requested_root(uri: str) -> SkillUri:
    """The root of the skill at ``uri``; ``NotFoundError`` if it is not a ``SKILL.md``, as on a server (G1)."""
    parsed = parse_uri(uri)
    try:
        return skill_root(parsed)
    except FormatError as error:
        raise NotFoundError("skill-unknown", error.message, error.hint, rule="G1") from error


def problem_of(error: SkillwireError, uri: object) -> Diagnostic:
    """The diagnostic for an invalid entry; ``uri`` is the server's value, of any type."""
    name = str(uri)[:300] if isinstance(uri, str) else "an entry without a URI"
    reference = error.reference if error.reference in KINDS else "entry-invalid"
    return Diagnostic(reference, error.message, error.hint, file=name, skill=name, broken=error.rule)


async def each_page(connection: Connection, method: str, field: str, **params: Any) -> AsyncIterator[PageItems]:
    """Yield the items of every page (B3).

    Raises an error at a repeated cursor, at a page without a new item, and at the bounds on pages, items, bytes,
    JSON values and time. Everything within the bounds is yielded first.
    """
    limits, listing = connection.limits, f"the listing by {method}"
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
            raise too_long(limits, "max_listing_seconds", listing) from None
        seconds -= anyio.current_time() - begun  # time that the caller spends on a page does not count
        items = _items(result, method, field)
        versions = as_object(as_object(result.get("_meta")).get(VERSIONS))
        text = json.dumps([*items, versions] if versions else items, ensure_ascii=False)
        marks = _STRING.sub("", text)
        size += len(text)
        objects += (nested := marks.count("{") + marks.count("["))
        values += nested + marks.count(",")
        if size > limits.max_listing_bytes:
            raise too_long(limits, "max_listing_bytes", listing)
        if values > limits.max_listing_values:
            raise too_long(limits, "max_listing_values", listing)
        if objects > limits.max_listing_objects:
            raise too_long(limits, "max_listing_objects", listing)
        page = PageItems(items[: limits.max_entries - count])
        page.versions = versions
        yield page
        count += len(items)
        if count > limits.max_entries:
            raise too_long(limits, "max_entries", listing)
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
            raise too_long(limits, "max_pages", listing)
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
    return claimed == uri or ((place := as_uri(claimed)) is not None and place == as_uri(uri))


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


def too_long(limits: Limits, bound: str, what: str) -> LimitError:
    """B3: the error for a listing that exceeds a bound of ``limits``."""
    return LimitError(
        "listing-too-long",
        f"{what} exceeds {getattr(limits, bound)} {bound.rpartition('_')[2]}",
        f"raise Limits.{bound} if you trust the server",
        rule="B3",
    )


def repeated_entry() -> FormatError:
    """E5: the error for a second entry with the same URI."""
    return FormatError(
        "entry-repeated", "the URI is listed twice; the first entry is used", _FIX_SERVER, rule="E5"
    )


def _repeats(reference: str, message: str) -> ProtocolError:
    return ProtocolError(reference, message, f"{_FIX_SERVER}; the pages so far were read", rule="B3")


def _invalid_content(uri: str, reason: str) -> ProtocolError:
    return ProtocolError("content-invalid", f"the response for {uri!r:.300} {reason}", _FIX_SERVER, rule="R1")
