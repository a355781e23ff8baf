"""A registry and its publisher, killed at random moments. ``kills.py`` as a command does it 200 times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from registry.kills import Story

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_kill_leaves_no_half_of_a_version_and_a_repeat_finishes(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "server") if engine == "sqlite" else request.getfixturevalue("postgres_url")
    tally = await Story(place, tmp_path, seed=int.from_bytes(tmp_path.name.encode()[-4:])).run(6)
    print(tally)
