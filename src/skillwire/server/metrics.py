"""Metrics in Prometheus' format: requests by method and outcome, and their duration."""

from __future__ import annotations

import time
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

# Methods are a label. Unknown ones are counted together, because a caller could invent any number of labels.
_KNOWN = frozenset(
    {
        "initialize", "server/discover", "ping", "skills/list", "skills/get", "resources/directory/read",
        "resources/list", "resources/read", "resources/templates/list", "resources/subscribe",
        "resources/unsubscribe", "completion/complete", "subscriptions/listen", "tools/list", "tools/call",
        "prompts/list", "prompts/get",
    }
)  # fmt: skip


_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class _Tally:
    """Requests of one method with one outcome. Plain numbers, because every request is counted."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(_BUCKETS) + 1)
        self.seconds = 0.0

    def count(self, seconds: float) -> None:
        self.buckets[bisect_left(_BUCKETS, seconds)] += 1
        self.seconds += seconds


class Metrics(Collector):
    """A middleware that counts requests, and the page with the metrics."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self._tallies: dict[tuple[str, str], _Tally] = {}
        self._running = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Count one request."""
        if ctx.request_id is None:
            return await call_next(ctx)
        outcome, begun = "error", time.perf_counter()
        self._running += 1
        try:
            result = await call_next(ctx)
            outcome = "ok"
            return result
        except MCPError as error:
            outcome = str(error.error.code)
            raise
        finally:
            self._running -= 1
            self.counter(ctx.method, outcome)(time.perf_counter() - begun)

    def counter(self, method: str, outcome: str) -> Callable[[float], None]:
        """A function that counts one request with this outcome, given its duration."""
        known = method if method in _KNOWN else "other"
        return self._tallies.setdefault((known, outcome), _Tally()).count

    def collect(self) -> Iterator[Metric]:
        """The metrics for the registry."""
        requests = CounterMetricFamily("skillwire_requests", "Finished requests", labels=["method", "outcome"])
        durations = HistogramMetricFamily("skillwire_request_seconds", "Duration of requests", labels=["method"])
        together: dict[str, list[_Tally]] = {}
        for (method, outcome), tally in self._tallies.items():
            requests.add_metric([method, outcome], sum(tally.buckets))
            together.setdefault(method, []).append(tally)
        for method, tallies in together.items():
            columns = zip(*(tally.buckets for tally in tallies), strict=True)
            counts = accumulate(sum(column) for column in columns)
            bounds = [*(str(float(bound)) for bound in _BUCKETS), "+Inf"]
            durations.add_metric(
                [method], list(zip(bounds, counts, strict=True)), sum(tally.seconds for tally in tallies)
            )
        yield requests
        yield durations
        yield GaugeMetricFamily("skillwire_requests_running", "Requests in progress", self._running)

    def page(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)
