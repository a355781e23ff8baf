"""How long a client waits before it knocks again."""

from __future__ import annotations

from skillwire.client.connection import pause_before
from skillwire.limits import DEFAULT_LIMITS


def test_pauses_grow_to_a_bound_and_never_fail() -> None:
    """A server that is away for days is asked for days."""
    assert pause_before(0, DEFAULT_LIMITS) <= 0.1
    assert 0.1 <= pause_before(2, DEFAULT_LIMITS) <= 0.4
    assert all(2.5 <= pause_before(attempt, DEFAULT_LIMITS) <= 5.0 for attempt in (10, 1_000, 100_000))
