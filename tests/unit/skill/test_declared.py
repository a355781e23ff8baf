"""P1, P3, P6: what a frontmatter declares for dialects that know skills by name, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from rules import rule
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.declared import Argument, Dependencies, check_declared, read_declared
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
    assert not declared.dependencies
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
