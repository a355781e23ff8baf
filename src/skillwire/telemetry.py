"""Spans and events for OpenTelemetry: what happened to which skill, and never its content.

Every package uses these two functions. If the program has configured no SDK, they do nothing.
``docs/how-to/observe.md`` has the names and attributes. Attributes are labels, URIs, counts and
references of errors: no text of a file, no message and no secret.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from opentelemetry import trace

if TYPE_CHECKING:
    from collections.abc import Generator

_Value: TypeAlias = str | int | bool | None
_LONGEST = 300


class Recorder:
    """Adds attributes to a span."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set(self, **attributes: _Value) -> None:
        """Add attributes; ``None`` is omitted."""
        self._span.set_attributes(_named(attributes))

    def fail(self, reference: str) -> None:
        """Mark the span as failed, with the reference of the error."""
        self._span.set_attribute("error.type", reference)
        self._span.set_status(trace.StatusCode.ERROR, reference)


@contextmanager
def span(name: str, **attributes: _Value) -> Generator[Recorder]:
    """A span ``skillwire.NAME`` around the block. An exception marks it as failed and is raised."""
    with trace.get_tracer("skillwire").start_as_current_span(
        f"skillwire.{name}",
        attributes=_named(attributes),
        record_exception=False,  # its message may contain text of a server
        set_status_on_exception=False,
    ) as current:
        recorder = Recorder(current)
        try:
            yield recorder
        except BaseException as error:
            recorder.fail(getattr(error, "reference", type(error).__name__))
            raise


def event(name: str, **attributes: _Value) -> None:
    """An event ``skillwire.NAME`` in the current span."""
    current = trace.get_current_span()
    if current.is_recording():
        current.add_event(f"skillwire.{name}", _named(attributes))


def _named(attributes: dict[str, _Value]) -> dict[str, str | int | bool]:
    return {
        f"skillwire.{key}": value[:_LONGEST] if isinstance(value, str) else value
        for key, value in attributes.items()
        if value is not None
    }
