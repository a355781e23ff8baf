"""Nobody listens to what it may not see, on whatever bus (S1)."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.server.subscriptions import InMemorySubscriptionBus

from skillwire.server.notices import Notices
from skillwire.skill.uri import parse_uri


def notices() -> Notices:
    return Notices(InMemorySubscriptionBus(), lambda: lambda uri: parse_uri(uri).path.startswith("mine/"))


def test_files_that_a_caller_may_not_see_are_taken_out_of_what_it_listens_to() -> None:
    wanted = {
        "resourcesListChanged": True,
        "resourceSubscriptions": [
            "skill://mine/a/SKILL.md",
            "skill://theirs/b/SKILL.md",
            "SKILL://theirs/b",
            "x://y",
        ],
    }
    told = notices().only_seen({"notifications": wanted, "_meta": {"a": 1}}, "skill")
    assert told == {
        "_meta": {"a": 1},
        "notifications": {
            "resourcesListChanged": True,
            "resourceSubscriptions": ["skill://mine/a/SKILL.md", "x://y"],
        },
    }


@pytest.mark.parametrize(
    "params",
    [{}, {"notifications": 5}, {"notifications": {"resourceSubscriptions": "a"}}],
    ids=["nothing", "not-an-object", "not-a-list"],
)
def test_what_has_another_shape_is_left_to_the_sdk(params: dict[str, Any]) -> None:
    assert notices().only_seen(params, "skill") == params
