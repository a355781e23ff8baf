"""``skillwire cache`` on a cache with something in it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from rules import rule
from skillwire.cli.main import run
from skillwire.host.state import open_cache
from skillwire.skill.entry import build_entry, digest_of
from skillwire.skill.verify import verify_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Two files of one origin."""
    place = tmp_path / "state"
    cache = open_cache(place)
    for text in (b"one\n", b"two, longer\n"):
        entry = build_entry(
            "refunds",
            {"name": "refunds", "description": "-"},
            [("SKILL.md", digest_of(b""), 0), ("x.md", digest_of(text), len(text))],
        )
        cache.put("acme", verify_file(entry, "skill://refunds/x.md", text))
    return place


def asked(capsys: pytest.CaptureFixture[str], code: int, *words: object) -> dict[str, Any]:
    assert run(["cache", *map(str, words), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_what_is_kept_is_shown_by_origin(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(capsys, 0, "show", "--state", state) == {"files": 2, "bytes": 16, "origins": {"acme": 16}}
    assert run(["cache", "show", "--state", str(state)]) == 0
    out, err = capsys.readouterr()
    assert out == "acme\t16 B\n"
    assert re.findall(r"\d+", err) == ["2", "16"]


@rule("C1")
def test_damage_is_found_reported_and_removed(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(capsys, 0, "verify", "--state", state) == {"files": 2, "damaged": []}
    damaged = next((state / "cache" / "o-acme").iterdir())
    damaged.write_bytes(b"other")
    report = asked(capsys, 1, "verify", "--state", state)
    assert (report["files"], [each["origin"] for each in report["damaged"]]) == (1, ["acme"])
    assert run(["cache", "verify", "--state", str(state)]) == 0
    assert re.findall(r"\d+", capsys.readouterr().err) == ["1", "0"]


def test_pruning_keeps_what_fits(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(capsys, 0, "prune", "--state", state) == {"freed": 0, "files": 2, "bytes": 16}
    assert asked(capsys, 0, "prune", "--max", "0.015K", "--state", state)["files"] == 1
    assert asked(capsys, 0, "prune", "--max", "0", "--state", state)["bytes"] == 0


@rule("C1")
def test_a_cache_that_others_can_open_is_refused_in_a_line(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (state / "cache").chmod(0o755)
    for words in (["show"], ["verify"], ["prune"]):
        assert run(["cache", *words, "--state", str(state)]) == 2
        assert "[cache-unsafe]" in capsys.readouterr().err
