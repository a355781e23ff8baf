"""Counts the bytes and JSON values that one server sends, and keeps the reason for ending a stream (B1, B2).

A transport counts bytes as they arrive, and can only end the stream when there are too many. The reason is kept
here until the failed request takes it. JSON values are counted in the same bytes, since a few KiB of compressed
``{},{},…`` become gigabytes of objects when they are decoded.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillwire.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Generator

    from skillwire.errors import SkillwireError
    from skillwire.limits import Limits

# A raw control character ends a string: JSON does not allow it in one, and an event stream has line ends between
# its fields.
_CONTROL = bytes(range(32))
_TO_LINE_END = bytes.maketrans(_CONTROL, b"\n" * len(_CONTROL))
_OTHERS = bytes(set(range(256)) - {*b',[{"', *_CONTROL})
_STRING = re.compile(rb'"[^"\n]*["\n]')
_SLICE = 256 * 1024

LISTEN = "subscriptions/listen"
"""A request that waits for notifications; its response is small."""


class Meter:
    """Counts for one server, over all connections to it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.received = 0
        self.status: int | None = None  # of the last HTTP response
        self.last_output = ""  # of a process, on stderr
        self._failure: SkillwireError | None = None
        self._expected: list[int] = []  # the largest allowed response of each waiting request

    @contextmanager
    def expecting(self, size: int) -> Generator[None]:
        """A request waits for a response of at most ``size`` bytes. The largest bound of all requests applies."""
        self._expected.append(size)
        try:
            yield
        finally:
            self._expected.remove(size)

    def start_over(self) -> None:
        """Reset the budget: over days, an honest server sends many responses (B2)."""
        self.received = 0

    def count(self, size: int) -> None:
        """B2: count ``size`` more bytes."""
        self.received += size
        if self.received > self.limits.max_server_bytes:
            raise self.stop(
                LimitError(
                    "server-budget",
                    f"the server has sent more than {self.limits.max_server_bytes} bytes",
                    "reconnect, or raise Limits.max_server_bytes",
                    rule="B2",
                )
            )

    def check_message(self, size: int) -> None:
        """B1: raise ``LimitError`` if a message of ``size`` bytes is too large."""
        limits = self.limits
        bound = min(limits.max_message_bytes, max(self._expected, default=limits.max_message_bytes))
        if size > bound:
            setting = "max_message_bytes" if bound == limits.max_message_bytes else "max_page_bytes"
            raise self.stop(
                LimitError(
                    "message-too-large",
                    f"a response has more than {bound} bytes",
                    f"request less at once, or raise Limits.{setting}",
                    rule="B1",
                )
            )

    def values(self) -> ValueCounter:
        """A counter for the values of one message."""
        return ValueCounter(self.limits.max_message_values)

    def check_values(self, values: ValueCounter, piece: bytes) -> None:
        """B1: raise ``LimitError`` if a message has too many JSON values; ``piece`` is the next part of it."""
        if values.add(piece):
            raise self.stop(too_many_values("a response", self.limits))

    def is_notice(self, size: int, values: ValueCounter) -> bool:
        """B1: whether a message is small enough to be anything but a response."""
        return size <= self.limits.max_notice_bytes and not values.is_above(self.limits.max_notice_values)

    def unrequested(self) -> SkillwireError:
        """B1: the error for a large message that is not a response."""
        limits = self.limits
        return self.stop(
            LimitError(
                "message-too-large",
                f"the server sent a message that is not a response and has more than {limits.max_notice_bytes}"
                f" bytes or {limits.max_notice_values} JSON values",
                "fix the server, or raise Limits.max_notice_bytes and Limits.max_notice_values",
                rule="B1",
            )
        )

    def stop(self, failure: SkillwireError) -> SkillwireError:
        """Keep the reason for ending a stream, and return it."""
        self._failure = failure
        return failure

    def take_failure(self) -> SkillwireError | None:
        """Return the reason for ending a stream, and forget it."""
        failure, self._failure = self._failure, None
        return failure


class ValueCounter:
    """Counts the JSON values in bytes that arrive in pieces, without decoding them (B1).

    Each value except the first follows a comma, a bracket or a brace outside of strings. Strings are searched for
    only if there are more than ``enough`` of these characters in total, which is rare in text files.
    """

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._most = 0  # including those inside strings
        self._pending: list[bytes] = []
        self._count = 0
        self._in_string = False
        self._escape = b""  # a backslash at the end of a piece belongs to the next one

    def add(self, piece: bytes) -> bool:
        """Count one more piece; whether there are more than ``enough`` values now."""
        self._most += _count_marks(piece)
        self._pending.append(piece)
        return self.is_above(self._enough)

    def is_above(self, bound: int) -> bool:
        """Whether there are more than ``bound`` values; ``bound`` is at most ``enough``."""
        if self._most <= bound:
            return False
        pending, self._pending = self._pending, []
        for data in pending:
            for start in range(0, len(data), _SLICE):
                self._count_outside_strings(data[start : start + _SLICE])
                if self._count > self._enough:
                    return True
        return self._count > bound

    def _count_outside_strings(self, piece: bytes) -> None:
        text = (self._escape + piece).replace(b"\\\\", b"").replace(b'\\"', b"")
        self._escape = b"\\" if text.endswith(b"\\") else b""
        marks = text.translate(_TO_LINE_END, _OTHERS)
        outside, strings = _STRING.subn(b"", b'"' + marks if self._in_string else marks)
        outside, quote, _ = outside.partition(b'"')
        self._in_string = bool(quote)
        # A value has at most two strings: its key and itself. More strings are not JSON, and decoding them costs
        # time too.
        self._count += max(_count_marks(outside), strings // 2)


def _count_marks(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def too_many_values(what: str, limits: Limits) -> LimitError:
    """B1: the error for ``what`` having too many JSON values."""
    return LimitError(
        "too-many-values",
        f"{what} has more than {limits.max_message_values} JSON values",
        "request less at once, or raise Limits.max_message_values",
        rule="B1",
    )
