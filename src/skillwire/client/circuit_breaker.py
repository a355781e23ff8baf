"""A circuit breaker: when to stop sending requests to a server that does not respond. Pure: ``now`` is passed in.

    closed       every request is sent
       │ ▲       after several failures in a row
       ▼ │
    open ──────► half-open: after a pause one request tests recovery; success closes the circuit, failure opens
       ▲            │        it again for longer
       └────────────┘

A failure is a request without a response. An error from the server, or an invalid response, is a response.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

CircuitState: TypeAlias = Literal["closed", "open", "half-open"]


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """The failures of one server. Each method returns the next state."""

    failures: int = 0
    open_until: float = 0.0
    is_probing: bool = False
    tolerated: int = 3
    first_pause: float = 1.0
    longest_pause: float = 60.0

    def state(self, now: float) -> CircuitState:
        """The state of the circuit."""
        if self.failures < self.tolerated:
            return "closed"
        return "open" if now < self.open_until else "half-open"

    def allows(self, now: float) -> bool:
        """Whether a request may be sent. A half-open circuit allows one request."""
        state = self.state(now)
        return state == "closed" or (state == "half-open" and not self.is_probing)

    def started(self, now: float) -> CircuitBreaker:
        """A request was sent."""
        return replace(self, is_probing=True) if self.state(now) == "half-open" else self

    def failed(self, now: float) -> CircuitBreaker:
        """A request got no response."""
        failures = self.failures + 1
        over = failures - self.tolerated
        if over < 0:
            return replace(self, failures=failures)
        pause = min(self.longest_pause, self.first_pause * 2.0 ** min(over, 30))
        return replace(self, failures=failures, open_until=now + pause, is_probing=False)

    def succeeded(self) -> CircuitBreaker:
        """A request got a response."""
        return replace(self, failures=0, open_until=0.0, is_probing=False)

    def pause(self, now: float) -> float:
        """How long the circuit stays open."""
        return max(0.0, self.open_until - now) if self.state(now) == "open" else 0.0
