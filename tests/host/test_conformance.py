"""The table in docs/host-conformance.md is what the tests say, in both directions."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from host import conformance
from unit.test_rules import RULES

if TYPE_CHECKING:
    from pathlib import Path

LETTERS = "VWAONCB"
COMMAND = "write it anew: .venv/bin/python tests/host/conformance.py > docs/host-conformance.md"


@pytest.fixture(scope="module")
def current() -> str:
    """The table as it should be, from a collection of its own."""
    command = [sys.executable, conformance.__file__, "--collect"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=conformance.ROOT)
    assert done.stdout.startswith(conformance.HEAD), done.stderr
    return done.stdout


def listed_in(page: str) -> dict[str, set[str]]:
    """By rule, what is listed under its heading, as ``file::test``."""
    found: dict[str, set[str]] = {}
    rule = file = ""
    for line in page.splitlines():
        if heading := re.fullmatch(r"## (\w+)", line):
            rule = heading[1]
            found[rule] = set()
        elif link := re.fullmatch(r"\[(tests/\S+)\]\(\S+\)", line):
            file = link[1]
        elif name := re.fullmatch(r"- `(\w+)`", line):
            found[rule].add(f"{file}::{name[1]}")
    return found


def test_the_rules_of_the_host_are_all_in_the_table() -> None:
    """V1, W1, A1, O1, N1, C1, B1: every rule of these letters, and no other."""
    assert set(conformance.RULES) == {rule for rule in RULES if rule[0] in LETTERS}


def test_every_rule_of_the_host_has_a_test(current: str) -> None:
    """V1, W1, A1, O1, N1, C1, B1: a rule that nothing proves is a wish."""
    assert [rule for rule, tests in listed_in(current).items() if not tests] == []


def test_every_test_of_the_host_cites_a_rule_that_exists(current: str) -> None:
    """V1, W1, A1, O1, N1, C1, B1: at the beginning of its docstring."""
    wrong: list[str] = []
    for folder in conformance.OURS:
        for path in sorted((conformance.ROOT / folder).glob("test_*.py")):
            for name, docstring in docstrings(path):
                rules = conformance.cited(docstring)
                if not rules or not set(rules) <= RULES:
                    wrong.append(f"{path.name}::{name}: {docstring[:40]!r}")
    assert wrong == []


def test_the_table_names_no_test_that_is_gone_and_every_test_there_is(current: str) -> None:
    """V1, W1, A1, O1, N1, C1, B1"""
    committed, expected = listed_in(conformance.PAGE.read_text()), listed_in(current)
    for rule in conformance.RULES:
        listed = committed.get(rule, set())
        assert listed - expected[rule] == set(), f"{rule} names tests that do not exist; {COMMAND}"
        assert expected[rule] - listed == set(), f"{rule} lacks tests; {COMMAND}"


def test_the_table_is_the_one_that_the_tests_make(current: str) -> None:
    """V1, W1, A1, O1, N1, C1, B1: with the number of cases, and every result a pass."""
    assert conformance.PAGE.read_text() == current, COMMAND


def docstrings(path: Path) -> list[tuple[str, str]]:
    import ast

    return [
        (node.name, ast.get_docstring(node) or "")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
