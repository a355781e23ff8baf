"""A policy, an answer or a list of harmless tools that is written wrongly is refused: it never allows anything."""

from __future__ import annotations

from typing import Any

import pytest

from skillwire.adapters import harmless_names
from skillwire.errors import FormatError
from skillwire.host.approvals import Answer, Approvals, Policy, Rule
from skillwire.store.store import Store

RULES: list[dict[str, Any]] = [{"decision": "decline"}, {"decision": "Allow"}, {"decision": "deny", "kind": "lod"}]


@pytest.mark.parametrize("given", RULES)
def test_a_misspelled_rule_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(FormatError) as raised:
        Rule(**given)
    assert raised.value.reference == "rule-invalid"
    assert "choose from" in raised.value.hint


@pytest.mark.parametrize("defaults", [{"lod": "deny"}, {"load": "no"}])
def test_a_misspelled_default_is_refused(defaults: Any) -> None:
    with pytest.raises(FormatError):
        Policy(defaults=defaults)


def test_other_kinds_keep_their_default() -> None:
    policy = Policy(defaults={"load": "allow"})
    assert (policy.defaults["load"], policy.defaults["execute"], policy.defaults["dynamic"]) == (
        "allow",
        "ask",
        "deny",
    )


@pytest.mark.parametrize("rules", [Rule("deny"), ["deny"], "deny"])
def test_only_a_list_of_rules_makes_a_policy(rules: Any) -> None:
    with pytest.raises(TypeError, match="Policy"):
        Policy(rules)


@pytest.mark.parametrize("policy", [[Rule("deny")], "deny"])
def test_only_a_policy_is_a_policy(policy: Any) -> None:
    with pytest.raises(TypeError, match="Policy"):
        Approvals(Store.memory(), policy)


def test_text_is_no_list_of_names() -> None:
    with pytest.raises(TypeError, match="boil"):
        harmless_names("boil")
    grants: Any = "boil"
    with pytest.raises(TypeError, match="boil"):
        Answer(True, grants=grants)
