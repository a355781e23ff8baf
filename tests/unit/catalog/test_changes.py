"""Merging changes: a slow listener hears one event that says what a quick one heard in several (S1)."""

from __future__ import annotations

from itertools import pairwise

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules import rule
from skillwire.catalog.contract import Change, ChangeFeed

STATES = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2))


def difference(before: dict[str, int], after: dict[str, int]) -> Change:
    return Change(
        frozenset(after.keys() - before.keys()),
        frozenset(key for key in before.keys() & after.keys() if before[key] != after[key]),
        frozenset(before.keys() - after.keys()),
    )


@rule("S1")
@given(st.lists(STATES, min_size=2, max_size=6))
def test_merged_changes_name_everything_that_is_different_in_the_end(states: list[dict[str, int]]) -> None:
    """Added and removed are exact; changed may name what changed back."""
    merged = Change()
    for before, after in pairwise(states):
        merged = merged.then(difference(before, after))
    whole = difference(states[0], states[-1])
    assert (merged.added, merged.removed) == (whole.added, whole.removed)
    assert merged.changed >= whole.changed
    assert not merged.changed & (merged.added | merged.removed)


@pytest.mark.anyio
async def test_a_slow_listener_hears_one_merged_change() -> None:
    feed = ChangeFeed()
    with feed.subscribe() as quick, feed.subscribe() as slow, anyio.fail_after(60):
        feed.publish(Change(added=frozenset({"a"})))
        assert (await anext(quick)).added == {"a"}
        feed.publish(Change(added=frozenset({"b"})))
        assert (await anext(quick)).added == {"b"}
        assert (await anext(slow)).added == {"a", "b"}


@pytest.mark.anyio
async def test_a_closed_stream_gets_nothing() -> None:
    feed = ChangeFeed()
    stream = feed.subscribe()
    stream.close()
    feed.publish(Change(added=frozenset({"a"})))
    assert [change async for change in stream] == []


@pytest.mark.anyio
async def test_pending_changes_are_taken_once_without_waiting() -> None:
    feed = ChangeFeed()
    with feed.subscribe() as stream:
        assert not await stream.pending()
        feed.publish(Change(added=frozenset({"a"})))
        feed.publish(Change(changed=frozenset({"b"})))
        assert await stream.pending() == Change(added=frozenset({"a"}), changed=frozenset({"b"}))
        assert not await stream.pending()
