"""What every refusal must be: of its class, with its reference and rule, and with words on what to do."""

from __future__ import annotations

import tracemalloc
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillwire import SkillEntry, SkillwireError
    from skillwire.types import SkillsClient


@contextmanager
def refused(
    kind: type[SkillwireError], reference: str, rule: str = ""
) -> Iterator[pytest.ExceptionInfo[SkillwireError]]:
    """The block ends in this error, and nothing else comes out of it."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert (type(error), error.reference, error.rule) == (kind, reference, rule), error
    assert error.hint, f"nobody is told what to do about: {error}"


@contextmanager
def hasty(client: SkillsClient) -> Iterator[None]:
    """Calls in this block have 0.2 seconds (B4). They must all be calls that are never answered.

    Anything else in the block would fail on a machine that is busy.
    """
    connection = client.connection
    patient = connection.limits
    connection.limits = connection.meter.limits = replace(patient, max_call_seconds=0.2)
    try:
        yield
    finally:
        connection.limits = connection.meter.limits = patient


@contextmanager
def memory_below(size: int) -> Iterator[None]:
    """Never more than so many bytes at once, client and hostile server together."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()


async def listed(client: SkillsClient) -> list[SkillEntry]:
    return [entry async for entry in client.list_skills()]


async def only(client: SkillsClient) -> SkillEntry:
    """The one skill that is listed."""
    [entry] = await listed(client)
    return entry
