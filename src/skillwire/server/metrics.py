"""Numbers for operators, in Prometheus' format: requests by method and outcome, their duration, skills served."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

# Methods are a label, and a label must not be the caller's to invent.
_KNOWN = frozenset(
    {
        "initialize", "server/discover", "ping", "skills/list", "skills/get", "resources/directory/read",
        "resources/list", "resources/read", "resources/templates/list", "resources/subscribe",
        "resources/unsubscribe", "completion/complete", "subscriptions/listen", "tools/list", "tools/call",
        "prompts/list", "prompts/get",
    }
)  # fmt: skip


class Metrics:
    """A middleware that counts, and the page that tells."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "skillwire_requests", "Requests answered", ["method", "outcome"], registry=self._registry
        )
        self._seconds = Histogram(
            "skillwire_request_seconds",
            "Time to answer",
            ["method"],
            buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
            registry=self._registry,
        )
        self._running = Gauge("skillwire_requests_running", "Requests being answered", registry=self._registry)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Count one request."""
        if ctx.request_id is None:
            return await call_next(ctx)
        outcome, begun = "error", time.perf_counter()
        self._running.inc()
        try:
            result = await call_next(ctx)
            outcome = "ok"
            return result
        except MCPError as error:
            outcome = str(error.error.code)
            raise
        finally:
            self._running.dec()
            self.counter(ctx.method, outcome)(time.perf_counter() - begun)

    def counter(self, method: str, outcome: str) -> Callable[[float], None]:
        """What counts one request that was answered so, in so many seconds."""
        known = method if method in _KNOWN else "other"
        requests, durations = self._requests.labels(known, outcome), self._seconds.labels(known)

        def count(seconds: float) -> None:
            requests.inc()
            durations.observe(seconds)

        return count

    def page(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)
