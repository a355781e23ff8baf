"""B1, B2: what one server has sent is counted, and why it was stopped is told once to whoever suffers from it."""

from __future__ import annotations

import pytest

from rules import rule
from skillwire.client.bounds import Meter
from skillwire.errors import LimitError, UpstreamError
from skillwire.limits import Limits


@rule("B2")
def test_a_server_may_send_so_many_bytes_and_no_more() -> None:
    """All messages together."""
    meter = Meter(Limits(max_server_bytes=10))
    for size in (4, 0, 6):
        meter.count(size)
    assert meter.received == 10
    with pytest.raises(LimitError) as caught:
        meter.count(1)
    error = caught.value
    assert (error.reference, error.rule) == ("server-budget", "B2")
    assert "10 bytes" in error.message
    assert "Limits.max_server_bytes" in error.hint


@rule("B2")
def test_a_spent_budget_stays_spent() -> None:
    """A new connection to the same server does not fill it again."""
    meter = Meter(Limits(max_server_bytes=10))
    for _ in range(3):
        with pytest.raises(LimitError):
            meter.count(11)


@rule("B1")
@pytest.mark.parametrize(("size", "refused"), [(0, False), (10, False), (11, True), (10**12, True)])
def test_one_message_may_be_so_large_and_no_larger(size: int, refused: bool) -> None:
    """Whatever the others were."""
    meter = Meter(Limits(max_message_bytes=10))
    if not refused:
        meter.check_message(size)
        meter.check_message(size)
        assert meter.take_failure() is None
        return
    with pytest.raises(LimitError) as caught:
        meter.check_message(size)
    assert (caught.value.reference, caught.value.rule) == ("message-too-large", "B1")
    assert "Limits.max_message_bytes" in caught.value.hint


@rule("B1", "B2")
def test_checking_a_message_counts_nothing() -> None:
    """A body is counted as it arrives, compressed; its size is checked as it comes out."""
    meter = Meter(Limits())
    meter.check_message(1000)
    assert meter.received == 0


@rule("B1", "B2")
def test_why_a_stream_ended_is_told_once() -> None:
    """A transport can only end a stream; the call that suffers from it asks why."""
    meter = Meter(Limits(max_message_bytes=1, max_server_bytes=1))
    assert meter.take_failure() is None
    with pytest.raises(LimitError) as caught:
        meter.check_message(2)
    assert meter.take_failure() is caught.value
    assert meter.take_failure() is None


@rule("B4")
def test_the_last_reason_counts() -> None:
    meter = Meter(Limits())
    slow, lost = UpstreamError("timed-out", "slow"), UpstreamError("connection-lost", "gone")
    assert meter.stop(slow) is slow
    assert meter.stop(lost) is lost
    assert meter.take_failure() is lost


@rule("B2")
def test_a_new_meter_knows_nothing() -> None:
    meter = Meter(Limits())
    assert (meter.received, meter.status, meter.last_output) == (0, None, "")
