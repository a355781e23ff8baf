from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from skillwire.client.link import CircuitBreaker


def failed(times: int, now: float = 0.0) -> CircuitBreaker:
    breaker = CircuitBreaker()
    for _ in range(times):
        breaker = breaker.failed(now)
    return breaker


def test_a_few_failures_are_tolerated() -> None:
    assert failed(2).state(0) == "closed"
    assert failed(2).allows(0)


def test_an_upstream_that_keeps_failing_rests() -> None:
    breaker = failed(3, now=100)
    assert breaker.state(100) == "open"
    assert not breaker.allows(100.5)
    assert breaker.pause(100.25) == 0.75


def test_after_the_rest_one_may_ask() -> None:
    breaker = failed(3, now=100)
    assert breaker.state(101) == "half-open"
    assert breaker.allows(101)
    asking = breaker.started(101)
    assert not asking.allows(101)
    assert asking.succeeded().state(101) == "closed"
    assert asking.succeeded().allows(101)


def test_a_probe_that_fails_rests_for_longer_up_to_a_bound() -> None:
    breaker, now, rests = failed(3), 0.0, []
    for _ in range(12):
        now += breaker.pause(now)
        breaker = breaker.started(now).failed(now)
        rests.append(breaker.pause(now))
    assert rests[:3] == [2.0, 4.0, 8.0]
    assert max(rests) == rests[-1] == 60.0


def test_one_success_forgets_all_failures() -> None:
    assert failed(50).succeeded() == CircuitBreaker()


@settings(max_examples=settings().max_examples // 2)  # half of the profile's
@given(st.lists(st.tuples(st.sampled_from(["ask", "fail", "succeed"]), st.floats(0, 100)), max_size=40))
def test_whatever_happens_it_is_asked_again_in_the_end(events: list[tuple[str, float]]) -> None:
    """No sequence of failures closes an upstream off for ever."""
    breaker, now = CircuitBreaker(), 0.0
    for what, later in events:
        now += later
        if what == "ask" and breaker.allows(now):
            breaker = breaker.started(now).failed(now)
        elif what == "fail":
            breaker = breaker.failed(now)
        elif what == "succeed":
            breaker = breaker.succeeded()
    assert breaker.allows(now + 60)
