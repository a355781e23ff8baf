"""ARCHITECTURE.md agrees with the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "skillwire"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
PLACES = sorted(set(re.findall(r"`([a-z_][\w./-]*(?:\.py|\.md|\.json|/))`", TEXT)))


@pytest.mark.parametrize("place", PLACES)
def test_every_path_that_it_names_exists(place: str) -> None:
    assert (SOURCE / place).exists() or (ROOT / place).exists()


def test_every_package_has_its_line() -> None:
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert packages <= set(re.findall(r"^ +([a-z]+)/ ", TEXT, re.MULTILINE))


def test_the_layers_are_those_of_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [layer.replace("skillwire.", "") for layer in reversed(contracts[0]["layers"])]
    assert " ← ".join(f"`{layer}`" for layer in layers) in " ".join(TEXT.split())


def test_the_table_of_changes_is_short() -> None:
    rows = re.findall(r"^\| (?!to change)(?!---).+\|$", TEXT, re.MULTILINE)
    assert len(rows) <= 25
