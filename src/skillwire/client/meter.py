"""What one server has sent so far, and why it was stopped (B1, B2).

A transport counts bytes as they arrive and can only end a stream; the reason waits here until the call that
suffers from it asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.errors import LimitError

if TYPE_CHECKING:
    from skillwire.errors import SkillwireError
    from skillwire.limits import Limits


class Meter:
    """Counts for one server, over all connections to it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.received = 0
        self.status: int | None = None  # of the last HTTP answer
        self.last_words = ""  # of a process, on stderr
        self._failure: SkillwireError | None = None

    def count(self, size: int) -> None:
        """B2: that many bytes more."""
        self.received += size
        if self.received > self.limits.max_server_bytes:
            raise self.stop(
                LimitError(
                    "server-budget",
                    f"the server has sent more than {self.limits.max_server_bytes} bytes",
                    "connect again, or raise Limits.max_server_bytes",
                    rule="B2",
                )
            )

    def check_message(self, size: int) -> None:
        """B1: one message may be that large."""
        if size > self.limits.max_message_bytes:
            raise self.stop(
                LimitError(
                    "message-too-large",
                    f"an answer has more than {self.limits.max_message_bytes} bytes",
                    "ask the server for less at once, or raise Limits.max_message_bytes",
                    rule="B1",
                )
            )

    def stop(self, failure: SkillwireError) -> SkillwireError:
        """Remember why a stream ends; the same error is returned, to be raised."""
        self._failure = failure
        return failure

    def take_failure(self) -> SkillwireError | None:
        """Why a stream was ended, once."""
        failure, self._failure = self._failure, None
        return failure
