"""Pages and their cursors (L3), and the directories of an entry (D1, W3).

A cursor contains the key of the last item of a page. The next page begins after that key, even if items were added
or removed meanwhile. Cursors are opaque to clients. A checksum that includes the listing detects damaged cursors
and cursors of other listings. A cursor is not a secret and grants nothing.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from hashlib import blake2b
from itertools import takewhile
from typing import TYPE_CHECKING, TypeVar

from skillwire.catalog.contract import DirectoryChild, Page, no_directory
from skillwire.errors import ProtocolError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.uri import format_uri, parse_uri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from skillwire.skill import SkillEntry, SkillUri

T = TypeVar("T")

_CHECK_BYTES = 6


def encode_cursor(listing: str, key: str) -> str:
    """The cursor for the items after ``key`` in the listing named ``listing``."""
    raw = key.encode()
    return base64.urlsafe_b64encode(_check(listing, raw) + raw).decode().rstrip("=")


def decode_cursor(listing: str, cursor: str) -> str:
    """The key in a cursor of the listing named ``listing``. ``ProtocolError`` if the cursor is invalid."""
    if len(cursor) > DEFAULT_LIMITS.max_cursor_length or not cursor.isascii():
        raise bad_cursor()
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        check, key = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
        if check != _check(listing, key):
            raise bad_cursor()
        return key.decode()
    except (binascii.Error, ValueError) as error:
        raise bad_cursor() from error


def page_of(
    listing: str, keys: Sequence[str], item: Callable[[str], T], cursor: str | None, limit: int
) -> Page[T]:
    """The page after ``cursor`` of the sorted ``keys``, each converted by ``item``."""
    start = 0 if cursor is None else bisect_right(keys, decode_cursor(listing, cursor))
    stop = start + clamp_limit(limit)
    chosen = keys[start:stop]
    more = encode_cursor(listing, chosen[-1]) if stop < len(keys) else None
    return Page([item(key) for key in chosen], more)


async def page_of_sources(
    listing: str,
    sources: Mapping[str, Callable[[str | None, int], Awaitable[Page[T]]]],
    cursor: str | None,
    limit: int,
) -> Page[T]:
    """One page of several listings, by label, one after another. A source that was removed ends the listing.

    A cursor contains the label of a source and the cursor of that source.
    """
    labels = list(sources)
    index, inner = 0, None
    if cursor is not None:
        label, _, inner = decode_cursor(listing, cursor).partition("\n")
        index, inner = (labels.index(label), inner or None) if label in sources else (len(labels), None)
    room, items = clamp_limit(limit), list[T]()
    while index < len(labels) and len(items) < room:
        page = await sources[labels[index]](inner, room - len(items))
        items += page.items
        inner = page.next_cursor
        index += inner is None
    return Page(items, encode_cursor(listing, f"{labels[index]}\n{inner or ''}") if index < len(labels) else None)


def beginning_with(keys: Sequence[str], beginning: str, limit: int) -> list[str]:
    """The first ``limit`` of the sorted ``keys`` that begin with ``beginning``."""
    start = bisect_left(keys, beginning)
    rest = (keys[index] for index in range(start, min(start + limit, len(keys))))
    return list(takewhile(lambda key: key.startswith(beginning), rest))


class DirectoryPages:
    """Pages of directories on a server. All pages of a directory come from one read, made for the first page.

    Otherwise a server that returns new names on each request could cause endless pages (B3).
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[SkillUri, Mapping[str, DirectoryChild]] = OrderedDict()

    async def page(
        self,
        place: SkillUri,
        read: Callable[[], Awaitable[Mapping[str, DirectoryChild]]],
        cursor: str | None,
        limit: int,
    ) -> Page[DirectoryChild]:
        """One page of the directory at ``place``. Calls ``read`` for the first page, and if nothing is cached."""
        listing = f"directory {place.path}"
        if cursor is not None:
            decode_cursor(listing, cursor)
        children = None if cursor is None else self._kept.get(place)
        if children is None:
            children = await read()
        page = page_of(listing, sorted(children), children.__getitem__, cursor, limit)
        if page.next_cursor is not None:
            self._kept[place] = children
            self._kept.move_to_end(place)
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) > DEFAULT_LIMITS.max_entries:
                self._kept.popitem(last=False)
        return page


def children_in(entry: SkillEntry, place: SkillUri) -> dict[str, DirectoryChild]:
    """The direct children of the directory ``place``, by name, according to the files of ``entry``."""
    children: dict[str, DirectoryChild] = {}
    depth = len(place.segments)
    for file in entry.files:
        parsed = parse_uri(file.uri)
        if parsed.scheme != place.scheme or parsed.segments[:depth] != place.segments:
            continue
        if len(parsed.segments) == depth + 1:
            name = parsed.segments[depth]
            children[name] = DirectoryChild(file.uri, name, is_directory=False, size=file.size)
        elif len(parsed.segments) > depth:
            name = parsed.segments[depth]
            folder = format_uri(f"{place.path}/{name}", place.scheme)
            children.setdefault(name, DirectoryChild(folder, name, is_directory=True))
    return children


def page_of_directory(entry: SkillEntry, uri: str, cursor: str | None, limit: int) -> Page[DirectoryChild]:
    """One page of the directory at ``uri``, according to the files of ``entry``."""
    place = parse_uri(uri)
    children = children_in(entry, place)
    if not children:
        raise no_directory(uri)
    return page_of(f"directory {place.path}", sorted(children), children.__getitem__, cursor, limit)


def clamp_limit(limit: int) -> int:
    """``limit``, but at least 1 and at most the largest allowed page size."""
    return max(1, min(limit, DEFAULT_LIMITS.max_page_size))


def _check(listing: str, key: bytes) -> bytes:
    person = blake2b(listing.encode(), digest_size=16).digest()
    return blake2b(key, digest_size=_CHECK_BYTES, person=person).digest()


def bad_cursor() -> ProtocolError:
    """The error for an invalid cursor."""
    return ProtocolError(
        "cursor-invalid",
        "the cursor does not belong to this listing",
        "pass nextCursor back unchanged, or start again without a cursor",
    )
