"""Every error of the client and of verification says which rule it is about, and every such rule exists.

Read from the source, so that an error that no test raises is looked at too.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import skillwire
from rules import RULES, rule

SOURCE = Path(skillwire.__file__).parent
FILES = sorted([*(SOURCE / "client").rglob("*.py"), SOURCE / "skill/verify.py"])
ERRORS = {
    "FormatError", "NotFoundError", "ProtocolError", "VerificationError", "LimitError", "UpstreamError",
}  # fmt: skip
ALWAYS_RULED = {"VerificationError", "LimitError"}  # nobody else's business: they exist for a rule's sake
HINTED = ("skill/verify", "client/dialects/", "client/servers", "client/bounds")


@dataclass(frozen=True)
class Raised:
    """One place where an error is made."""

    kind: str
    place: str
    reference: str | None
    rule: str | None
    has_hint: bool


def constant(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def errors_in(path: Path) -> list[Raised]:
    found: list[Raised] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        name, words = node.func.id, {keyword.arg: keyword.value for keyword in node.keywords}
        place = f"{path.relative_to(SOURCE)}:{node.lineno}"
        if name in ERRORS:
            reference = constant(node.args[0]) if node.args else None
            found.append(Raised(name, place, reference, constant(words.get("rule")), len(node.args) > 2))
        elif name == "invalid_entry":
            found.append(Raised("FormatError", place, "entry-invalid", constant(node.args[1]), True))
    return found


RAISED = [raised for path in FILES for raised in errors_in(path)]


@rule("E2b")
def test_errors_are_found_where_they_are_made() -> None:
    """This check would pass on nothing."""
    assert len(RAISED) > 40
    assert {raised.place.partition(":")[0] for raised in RAISED} >= {
        "skill/verify.py", "client/dialects/contract.py", "client/bounds.py", "client/dialects/index.py",
    }  # fmt: skip


@rule("F7")
def test_every_rule_that_an_error_names_exists() -> None:
    """A person looks it up."""
    assert [raised for raised in RAISED if raised.rule is not None and raised.rule not in RULES] == []


@rule("V1", "V2", "V4", "V7", "B1", "B2", "B3", "B4")
def test_the_rules_of_a_client_are_each_named_by_an_error() -> None:
    """What can be broken by what a server sends has an error that says so."""
    expected = "V1 V2 V4 V7 B1 B2 B3 B4 K2 G1 L1 L3 R1 D1 I1 P1 P2 M3 U3 E1 E2 E3 E5"
    assert {raised.rule for raised in RAISED} >= set(expected.split())


@rule("V1", "B1")
@pytest.mark.parametrize("kind", sorted(ALWAYS_RULED))
def test_what_is_refused_for_a_rule_says_which(kind: str) -> None:
    made = [raised for raised in RAISED if raised.kind == kind]
    assert made
    assert [raised for raised in made if raised.rule is None] == []


def test_every_reference_can_be_searched_for() -> None:
    """Stable and kebab-case."""
    for raised in RAISED:
        assert raised.reference is None or re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", raised.reference), raised


def test_every_error_says_what_to_do_next() -> None:
    """A message without a way out leaves a person standing."""
    hinted = [raised for raised in RAISED if raised.place.startswith(HINTED)]
    assert len(hinted) > 30
    assert [raised for raised in hinted if not raised.has_hint] == []
