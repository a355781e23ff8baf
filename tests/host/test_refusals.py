"""A refusal is a value: its name, its rule, what happened, what to do; and for the model, less (V6, O2)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import skillwire
from rules import RULES, rule
from skillwire.errors import SkillwireError, VerificationError
from skillwire.host.approvals import _RULES
from skillwire.host.results import _FOR_MODEL, Refusal, refusal_of
from skillwire.skill import digest_of
from unit.test_errors_cite_rules import Raised, constant

SOURCE = Path(skillwire.__file__).parent
OURS = [
    "host",
    "loader",
    "approvals",
    "origins",
    "context",
    "conversation",
    "results",
    "state",
]
FILES = [
    *(SOURCE / f"host/{name}.py" for name in OURS),
    *(SOURCE / f"skill/{name}.py" for name in ("approval", "verify")),
]
ERRORS = {name for name in vars(skillwire.errors) if name.endswith("Error")}
# A caller's mistake, not something that was kept from them: no rule of the protocol is about it.
MISTAKES = {
    "policy-invalid",
    "rule-invalid",
    "tool-unknown",
    "argument-invalid",
    "host-closed",
    "not-text",
    "tool-shape-unknown",
}


def errors_in(path: Path) -> list[Raised]:
    found: list[Raised] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS:
            words = {keyword.arg: keyword.value for keyword in node.keywords}
            place = f"{path.name}:{node.lineno}"
            rule = constant(words.get("rule")) or ("given" if "rule" in words else None)
            found.append(Raised(node.func.id, place, constant(node.args[0]), rule, len(node.args) > 2))
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "_skill_changed"
            and path.stem == "loader"
        ):
            found += [Raised("ApprovalError", path.name, "skill-changed", constant(node.args[-1]), True)]
    return [each for each in found if each.rule != "given"]


RAISED = [raised for path in FILES for raised in errors_in(path)]
RAISED += [Raised("ApprovalError", "approvals.py", "not-approved", rule, True) for rule in _RULES.values()]
REFERENCES = sorted({raised.reference for raised in RAISED if raised.reference is not None} | _FOR_MODEL.keys())


@rule("A1", "O3")
def test_the_refusals_of_the_host_are_found_in_its_source() -> None:
    """This check would pass on nothing."""
    assert len(RAISED) > 20
    assert {"not-approved", "skill-changed", "name-ambiguous", "machine-file", "origin-unknown"} <= set(REFERENCES)


@rule("V6", "O2")
def test_every_refusal_has_a_name_that_can_be_searched_for() -> None:
    """Stable and kebab-case; programs match on it."""
    assert [each for each in RAISED if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", each.reference or "")] == []


@rule("V1", "A1", "O3", "N1")
def test_every_refusal_says_which_rule_it_keeps() -> None:
    """And the rule exists."""
    unruled = [each for each in RAISED if each.rule not in RULES and each.reference not in MISTAKES]
    assert unruled == []


@rule("V3", "A1")
def test_every_refusal_says_what_to_do_next() -> None:
    """Nobody is left standing."""
    assert [each for each in RAISED if not each.has_hint] == []


@rule("V1", "V2", "V3", "V4", "V7", "W2", "W3", "A1", "A2", "A4", "A5", "O1", "O3", "N1", "B1")
def test_the_hosts_rules_are_each_named_by_a_refusal() -> None:
    """What somebody can break has its refusal."""
    named = {each.rule for each in RAISED}
    assert {"V1", "V2", "V3", "V4", "V7", "W2", "W3", "A1", "A2", "A4", "A5", "O1", "O3", "N1", "B1"} <= named


@rule("V1")
def test_a_refusal_carries_all_that_the_error_says() -> None:
    """For people and programs."""
    error = VerificationError("digest-mismatch", "it differs", "get it again", rule="V1")
    assert refusal_of(error) == Refusal("digest-mismatch", "V1", "it differs", "get it again")


@rule("O2")
def test_the_model_is_told_in_few_words_what_was_refused() -> None:
    """Each refusal by its reference, or in words of its own."""
    for reference in REFERENCES:
        said = Refusal(reference, "V1", "m", "h").for_model
        assert 20 < len(said) < 150, reference
        assert reference in said or reference in _FOR_MODEL, reference


@rule("O2", "V6")
@given(st.sampled_from(REFERENCES), st.text(), st.text())
def test_nothing_of_the_details_reaches_the_model(reference: str, message: str, hint: str) -> None:
    """No address, digest, place on the machine or word of a server."""
    bare = Refusal(reference, "V1", "", "").for_model
    assert Refusal(reference, "V1", message, hint).for_model == bare


@rule("O2")
def test_what_the_model_is_told_has_no_path_digest_or_stack() -> None:
    message = f"/home/ada/x {digest_of(b'')} Traceback (most recent call last): File"
    for reference in REFERENCES:
        said = Refusal(reference, "V1", message, message).for_model
        assert not re.search(r"/|\\|sha256|[0-9a-f]{16}|Traceback|File", said), reference


@rule("A1")
def test_every_kind_of_error_becomes_a_refusal() -> None:
    """Whatever of ours is raised."""
    kinds = [
        kind
        for kind in vars(skillwire.errors).values()
        if isinstance(kind, type) and issubclass(kind, SkillwireError)
    ]
    assert len(kinds) > 8
    for kind in kinds:
        assert refusal_of(kind("some-thing", "m", "h", rule="V1")) == Refusal("some-thing", "V1", "m", "h")
