"""P1, P2, P3, P6: fields for dialects that know skills by name, and the arguments that a caller gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rules import rule
from skillwire.errors import ProtocolError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.declarations import (
    Argument,
    Dependencies,
    check_declared,
    fill_in,
    parse_arguments,
    read_declared,
)
from skillwire.skill.frontmatter import parse_skill_md


@rule("P6")
def test_every_field_is_read_from_the_top() -> None:
    declared = read_declared(
        {
            "title": "Refunds",
            "version": "2.1",
            "tags": ["money", "support", "money"],
            "arguments": ["order", {"name": "reason", "title": "R", "description": "Why?", "required": True}],
            "dependencies": {"tools": ["pay"], "prompts": ["sorry"], "resources": ["rules://all"]},
            "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"], "x": 1}],
        }
    )
    assert (declared.title, declared.version, declared.tags) == ("Refunds", "2.1", ("money", "support"))
    assert declared.arguments == (Argument("order"), Argument("reason", "R", "Why?", True))
    assert declared.dependencies == Dependencies(("pay",), ("sorry",), ("rules://all",))
    assert declared.icons == ({"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]},)
    assert declared.problems == ()


@rule("P6", "F3")
def test_metadata_is_text_and_is_read_where_the_top_says_nothing() -> None:
    for tags in ("money support", " money,  support, ", "money\nsupport"):
        declared = read_declared({"metadata": {"version": "1.0", "title": "T", "tags": tags}})
        assert (declared.version, declared.title, declared.tags) == ("1.0", "T", ("money", "support"))
        assert declared.problems == ()
    assert read_declared({"version": "2", "metadata": {"version": "1"}}).version == "2"


@rule("P3")
def test_references_are_what_they_refer_to() -> None:
    declared = read_declared(
        {
            "dependencies": {
                "prompts": [{"type": "ref/prompt", "name": "sorry"}, "thanks"],
                "resources": [{"type": "ref/resource", "uri": "a://b"}],
            }
        }
    )
    assert declared.dependencies == Dependencies((), ("sorry", "thanks"), ("a://b",))
    assert not declared.problems


@rule("P6")
def test_nothing_declared_is_nothing_at_all() -> None:
    declared = read_declared({"name": "x", "description": "d"})
    assert declared.dependencies == Dependencies()
    assert not any((declared.title, declared.version, declared.tags, declared.arguments, declared.icons))
    assert declared.problems == ()


WRONG: dict[str, list[Any]] = {
    "title": [7, " ", ["a"]],
    "version": [1.1, None],
    "tags": [7, {"a": "b"}, ["ok", 7], [None]],
    "arguments": [
        "order", [7], [{"title": "x"}], ["with space"], [""], ["a" * 65], ["a", "a"],
        [{"name": "a", "required": "yes"}], [{"name": "a", "description": 7}],
        [f"a{number}" for number in range(DEFAULT_LIMITS.max_arguments + 1)],
    ],
    "dependencies": [
        "python>=3.8", {"python": ["pandas"]}, {"tools": "pay"}, {"tools": [7]},
        {"prompts": [{"type": "ref/resource", "name": "x"}]}, {"resources": [{"type": "ref/resource"}]},
    ],
    "icons": [
        "a.png", ["a.png"], [{"src": "javascript:alert(1)"}], [{}], [{"src": "https://x/y", "sizes": "48x48"}],
        [{"src": "https://x/y", "theme": "blue"}], [{"src": "https://x/y", "mimeType": 7}],
    ],
}  # fmt: skip


@rule("P6")
@pytest.mark.parametrize("field", WRONG)
def test_what_has_another_shape_is_left_out_and_reported(field: str) -> None:
    """With a word on how to write it; nothing is refused."""
    for value in WRONG[field]:
        [problem] = read_declared({field: value}).problems
        assert problem.field == field
        assert problem.message
        assert problem.hint


@rule("P6", "B1")
def test_arguments_up_to_the_limits_are_declared() -> None:
    names = ["a" * 64, *(f"a{number}" for number in range(DEFAULT_LIMITS.max_arguments - 1))]
    declared = read_declared({"arguments": names})
    assert [argument.name for argument in declared.arguments] == names
    assert declared.problems == ()


@rule("P6")
def test_what_is_right_beside_it_stays() -> None:
    declared = read_declared({"tags": ["ok", 7], "arguments": [7, "order"], "dependencies": {"tools": [7, "pay"]}})
    assert declared.tags == ("ok",)
    assert [argument.name for argument in declared.arguments] == ["order"]
    assert declared.dependencies.tools == ("pay",)


@rule("B1")
def test_reports_are_bounded() -> None:
    """A frontmatter can hold very many wrong things."""
    assert len(read_declared({"tags": list(range(10_000))}).problems) == 20


@rule("P6", "F7")
def test_a_report_has_the_place_of_its_field() -> None:
    data = b"---\nname: x\ndescription: d\nversion: 1.10\n---\nDo it.\n"
    [problem] = check_declared(parse_skill_md(data), "x/SKILL.md")
    assert (problem.reference, problem.rule, problem.severity) == ("declared-invalid", "P6", "warning")
    assert (problem.file, problem.line) == ("x/SKILL.md", 4)
    assert not problem.refuses


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


WRONG_VALUES: dict[str, tuple[Any, str, str]] = {
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
@pytest.mark.parametrize("what", WRONG_VALUES)
def test_what_is_wrong_is_named_with_what_is_expected(what: str) -> None:
    given, reference, words = WRONG_VALUES[what]
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
