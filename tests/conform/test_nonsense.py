"""Invalid values anywhere in a response: every run ends with a report."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from conform.spoiling import report_of
from skillwire.conform.report import as_json, as_junit
from skillwire.conform.session import Bounds
from skillwire.errors import UpstreamError

pytestmark = pytest.mark.anyio

NONSENSE = [
    None,
    True,
    -1,
    1e300,
    "",
    "x",
    "\ud800",
    "a/../b",
    "%",
    [],
    {},
    [[]],
    [None],
    {"uri": 5},
    "skill://",
    "~" * 5000,
]
PATHS = ("", "/sep-2076", "/native")


def spoil_anywhere(seed: int) -> Any:
    """Replace one value in a hundred, and sometimes a name."""
    dice = random.Random(seed)

    def spoiled(value: Any) -> Any:
        if dice.random() < 0.01:
            return dice.choice(NONSENSE)
        if isinstance(value, dict):
            return {key if dice.random() > 0.003 else "other": spoiled(item) for key, item in value.items()}
        return [spoiled(item) for item in value] if isinstance(value, list) else value

    def spoil(asked: str, params: dict[str, Any], message: dict[str, Any]) -> Any:
        return message if asked in ("server/discover", "initialize") else spoiled(message)

    return spoil


@pytest.mark.parametrize("seed", range(6), ids=lambda seed: f"seed-{seed}")
async def test_nonsense_is_reported(seed: int) -> None:
    bounds = Bounds(seconds=100, call_seconds=60, pages=20)
    try:
        report = await report_of(spoil_anywhere(seed), PATHS[seed % 3], bounds=bounds)
    except UpstreamError:
        return  # it could not even say what it is
    assert report.has_failed() or PATHS[seed % 3]  # in the smaller dialects there may be none where it shows
    assert json.loads(json.dumps(as_json(report, "1")))["kind"] == "server"
    assert as_junit(report).encode().startswith(b"<?xml")
