"""Every rule has a test."""

from __future__ import annotations

import pytest

import rules


@pytest.mark.slow  # it collects all tests once more
def test_every_rule_has_a_test() -> None:
    assert rules.RULES.keys() - rules.tests_by_rule().keys() == set()
