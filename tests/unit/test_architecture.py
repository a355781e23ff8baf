"""ARCHITECTURE.md agrees with the code."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "skillwire"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
FILES = sorted(SOURCE.rglob("*.py"))
# The files that may use private names of other packages.
COMPATIBLE = {"server/sdk_compat.py", "catalog/watch.py"}
PRIVATE = re.compile(r"(?:mcp|mcp_types|fastmcp|uvicorn|starlette|watchfiles)\.(?:.*\.)?_\w")
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


def test_the_packages_that_use_the_sdk_are_named() -> None:
    sentence = re.search(r"`mcp` is imported only in ([a-z, ]+)\.", " ".join(TEXT.split()))
    assert sentence is not None
    sdk = re.compile(r"(?:mcp|mcp_types)(?:\.|\Z)")
    using = {
        file.relative_to(SOURCE).parts[0]
        for file in FILES
        if any(sdk.match(name) for name in _imported(ast.parse(file.read_text())))
    }
    assert using == set(re.split(", | and ", sentence[1]))


def test_the_table_of_changes_is_short() -> None:
    rows = re.findall(r"^\| (?!to change)(?!---).+\|$", TEXT, re.MULTILINE)
    assert len(rows) <= 25


def test_public_type_names_are_unique() -> None:
    """A reader who meets a name may search for it."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file in FILES:
        for node in ast.parse(file.read_text()).body:
            for name in _type_names(node):
                if not name.startswith("_"):
                    places[name].append(str(file.relative_to(SOURCE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def _type_names(node: ast.stmt) -> list[str]:
    """The class or the type alias that a statement defines."""
    if isinstance(node, ast.If):  # TYPE_CHECKING
        return [name for each in node.body for name in _type_names(each)]
    if isinstance(node, ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id] if ast.unparse(node.annotation) == "TypeAlias" else []
    targets = node.targets if isinstance(node, ast.Assign) else []
    names = [each.id for each in targets if isinstance(each, ast.Name)]
    return [name for name in names if re.fullmatch(r"(?:[A-Z][a-z0-9]+)+", name)]


def test_private_names_of_other_packages_are_used_in_two_files() -> None:
    found = {
        str(file.relative_to(SOURCE)): private
        for file in FILES
        if (private := [name for name in _imported(ast.parse(file.read_text())) if PRIVATE.match(name)])
    }
    assert set(found) <= COMPATIBLE


def _imported(tree: ast.Module) -> list[str]:
    """The names that a file imports, each with its module."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{each.name}" for each in node.names]
        elif isinstance(node, ast.Import):
            found += [each.name for each in node.names]
    return found
