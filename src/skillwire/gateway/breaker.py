"""When an upstream that fails is left alone, and when it is asked again. Pure: ``now`` is passed in.

    closed       everything is asked
       │ ▲       so many failures in a row
       ▼ │
    open ──────► half-open: after a rest, one may ask; a success closes, a failure opens again, for longer
       ▲            │
       └────────────┘

What failed is that there was no answer. A refusal, or a lie that was noticed, is an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

BreakerState: TypeAlias = Literal["closed", "open", "half-open"]


@dataclass(frozen=True, slots=True)
class Breaker:
    """What is known about an upstream's failures. Each method returns what is known afterwards."""

    failures: int = 0
    rests_until: float = 0.0
    is_probing: bool = False
    tolerated: int = 3
    first_rest: float = 1.0
    longest_rest: float = 60.0

    def state(self, now: float) -> BreakerState:
        """Whether it is asked."""
        if self.failures < self.tolerated:
            return "closed"
        return "open" if now < self.rests_until else "half-open"

    def allows(self, now: float) -> bool:
        """Whether one more may ask now: half-open, only the first."""
        state = self.state(now)
        return state == "closed" or (state == "half-open" and not self.is_probing)

    def asking(self, now: float) -> Breaker:
        """Somebody asks, and will say how it ended."""
        return replace(self, is_probing=True) if self.state(now) == "half-open" else self

    def failed(self, now: float) -> Breaker:
        """There was no answer."""
        failures = self.failures + 1
        over = failures - self.tolerated
        if over < 0:
            return replace(self, failures=failures)
        rest = min(self.longest_rest, self.first_rest * 2.0 ** min(over, 30))
        return replace(self, failures=failures, rests_until=now + rest, is_probing=False)

    def succeeded(self) -> Breaker:
        """There was an answer."""
        return replace(self, failures=0, rests_until=0.0, is_probing=False)

    def rest(self, now: float) -> float:
        """For how long nobody asks."""
        return max(0.0, self.rests_until - now) if self.state(now) == "open" else 0.0
