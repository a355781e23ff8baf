"""P2: arguments that a caller gives, and where they go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rules import rule
from skillwire.errors import ProtocolError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.arguments import fill_in, parse_arguments
from skillwire.skill.declared import Argument

ORDER = Argument("order", description="The number", required=True)
REASON = Argument("reason")


@rule("P2")
def test_values_are_taken_and_what_is_optional_is_empty() -> None:
    assert parse_arguments((ORDER, REASON), {"order": "7"}) == {"order": "7", "reason": ""}
    assert parse_arguments((ORDER,), {"order": ""}) == {"order": ""}
    assert parse_arguments((), None) == {}
    assert parse_arguments((REASON,), {}) == {"reason": ""}
    longest = "é" * (DEFAULT_LIMITS.max_argument_bytes // 2)
    assert parse_arguments((REASON,), {"reason": longest}) == {"reason": longest}


WRONG: dict[str, tuple[Any, str, str]] = {
    "missing": ({}, "argument-missing", "'order'"),
    "none-at-all": (None, "argument-missing", "'order'"),
    "unknown": ({"order": "7", "ordr": "8"}, "argument-unknown", "'ordr'"),
    "a-number": ({"order": 7}, "argument-invalid", "'order'"),
    "null": ({"order": None}, "argument-invalid", "'order'"),
    "half-a-character": ({"order": "\ud800"}, "argument-invalid", "'order'"),
    "too-long": ({"order": "x" * 16385}, "argument-too-long", "16385"),
    "too-many": ({str(number): "" for number in range(65)}, "arguments-too-many", "64"),
    "a-list": (["7"], "arguments-invalid", "'arguments'"),
}


@rule("P2", "B1")
@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named_with_what_is_expected(what: str) -> None:
    given, reference, words = WRONG[what]
    with pytest.raises(ProtocolError) as caught:
        parse_arguments((ORDER, REASON), given)
    assert caught.value.reference == reference
    assert words in caught.value.message
    assert caught.value.hint


@rule("P2")
def test_a_hint_says_which_there_are() -> None:
    with pytest.raises(ProtocolError) as caught:
        parse_arguments((ORDER, REASON), {"x": "y"})
    assert "order" in caught.value.hint
    assert "reason" in caught.value.hint
    with pytest.raises(ProtocolError) as caught:
        parse_arguments((), {"x": "y"})
    assert caught.value.hint
    with pytest.raises(ProtocolError) as caught:
        parse_arguments((ORDER,), {})
    assert "The number" in caught.value.hint


@rule("P6")
def test_placeholders_are_replaced_and_other_braces_stay() -> None:
    filled = {
        "{{order}}{{order}}": "77",
        "a {{ order }} b {{\torder}}": "a 7 b 7",
        "{{{order}}}": "{7}",
    }
    assert {text: fill_in(text, {"order": "7"}) for text in filled} == filled
    for text in ("{{other}}", "{order}", "{{or der}}", "{{}}", "{{ }}", "{{order} }", "{{\norder}}"):
        assert fill_in(text, {"order": "7"}) == text


@rule("P6")
def test_a_value_is_never_expanded_again() -> None:
    """What a caller says is not a template."""
    assert fill_in("{{a}} {{b}}", {"a": "{{b}}", "b": "{{a}}"}) == "{{b}} {{a}}"
    assert fill_in("{{a}}b}}", {"a": "{{", "b": "x"}) == "{{b}}"


@rule("P6")
def test_a_skill_without_arguments_keeps_every_byte() -> None:
    text = "{{ order }} {{ jinja }}\r\n"
    assert fill_in(text, {}) is text


@rule("B1")
def test_what_would_grow_without_measure_is_refused_before_it_does() -> None:
    limits = replace(DEFAULT_LIMITS, max_file_bytes=1000)
    with pytest.raises(ProtocolError) as caught:
        fill_in("{{a}}" * 20, {"a": "x" * 100}, limits)
    assert caught.value.reference == "arguments-too-long"
    assert len(fill_in("{{a}}" * 9, {"a": "x" * 100}, limits)) == 900
