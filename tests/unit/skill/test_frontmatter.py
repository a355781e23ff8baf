"""F1, F2, F3, F5, F6, F7 and U3: what a ``SKILL.md`` says, what breaks a rule, and where."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire.errors import FormatError
from skillwire.limits import Limits
from skillwire.skill.frontmatter import SkillDocument, check_frontmatter, parse_skill_md

if TYPE_CHECKING:
    from skillwire.skill.diagnostics import Diagnostic

GOOD = b"---\nname: refunds\ndescription: Refund an order.\n---\n"


def refusal(data: bytes, limits: Limits | None = None) -> FormatError:
    with pytest.raises(FormatError) as caught:
        parse_skill_md(data, limits or Limits())
    return caught.value


def problems(fields: str, directory: str = "refunds") -> list[Diagnostic]:
    document = parse_skill_md(f"---\n{fields}\n---\n\nDo it.\n".encode())
    return list(check_frontmatter(document, directory, f"{directory}/SKILL.md"))


def references(fields: str, directory: str = "refunds") -> list[str]:
    return [problem.reference for problem in problems(fields, directory)]


# ── reading (F1, F5, F6) ──────────────────────────────────────────────────────────────────────────────────


@rule("F1")
def test_a_skill_md_is_fields_between_two_lines_and_a_body() -> None:
    document = parse_skill_md(GOOD + b"\n# Refunds\n")
    assert document.frontmatter == {"name": "refunds", "description": "Refund an order."}
    assert document.body == "\n# Refunds\n"
    assert document.body_line == 5
    assert document.frontmatter["name"] == "refunds"
    assert tuple(document.positions["description"]) == (3, 14)


@rule("F3")
def test_fields_the_format_does_not_know_pass_through() -> None:
    document = parse_skill_md(b"---\nname: a\nx-team: {tier: 2, tags: [b, null]}\nversion: 012\n---\n")
    assert document.frontmatter == {"name": "a", "x-team": {"tier": 2, "tags": ["b", None]}, "version": 12}


@rule("F2")
def test_a_document_without_a_name_has_none() -> None:
    assert "name" not in parse_skill_md(b"---\ndescription: x\n---\n").frontmatter


@rule("F5")
@pytest.mark.parametrize(
    ("header", "value"), [("|", "one\ntwo\n"), (">", "one two\n"), ("|-", "one\ntwo"), ("|+", "one\ntwo\n")]
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_last_line_break_belongs_to_the_last_block(header: str, value: str, newline: str) -> None:
    """Dropping it changes a block scalar that ends the frontmatter."""
    text = f"---\nname: a\ndescription: {header}\n  one\n  two\n---\nbody\n".replace("\n", newline)
    assert parse_skill_md(text.encode()).frontmatter["description"] == value


@rule("F5")
def test_blank_lines_before_the_closing_line_belong_to_a_block_that_keeps_them() -> None:
    assert parse_skill_md(b"---\na: |+\n  x\n\n\n---\n").frontmatter == {"a": "x\n\n\n"}


@rule("F6")
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("blanks", [b"", b" ", b" \t "])
def test_byte_order_marks_line_ends_and_trailing_blanks_change_nothing(
    bom: bytes, newline: bytes, blanks: bytes
) -> None:
    lines = [b"---" + blanks, b"name: caf\xc3\xa9", b"description: >", b"  a", b"  b", b"---" + blanks, b"Body."]
    document = parse_skill_md(bom + newline.join(lines))
    assert document.frontmatter == {"name": "café", "description": "a b\n"}
    assert document.body == "Body."
    assert document.body_line == 7
    assert tuple(document.positions["name"]) == (2, 7)


@rule("F6")
@pytest.mark.parametrize("end", [b"---", b"---\n", b"---\r\n", b"---\r", b"--- \t"])
def test_the_file_may_end_with_the_closing_line(end: bytes) -> None:
    document = parse_skill_md(b"---\nname: a\n" + end)
    assert (document.frontmatter, document.body) == ({"name": "a"}, "")


@rule("F6")
def test_the_body_is_kept_as_it_is() -> None:
    """Line ends, marks, separators and further lines of hyphens are the author's."""
    body = "a\r\nb\rc\u2028d\ufeff\n---\nname: other\n---\n\n\t"
    assert parse_skill_md(GOOD + body.encode()).body == body


@rule("F1")
def test_hyphens_that_are_not_a_line_of_their_own_do_not_close_the_frontmatter() -> None:
    document = parse_skill_md(b"---\na: |\n  x\n  ---\nb: ---c\nd: '\n ----'\n---\nbody")
    assert document.frontmatter == {"a": "x\n---\n", "b": "---c", "d": " ----"}
    assert document.body == "body"


@rule("F1")
@pytest.mark.parametrize(
    "data",
    [b"", b"# Title\n", b"\n---\nname: a\n---\n", b" ---\nname: a\n---\n", b"----\nname: a\n----\n", b"---",
     b"--- name: a\n---\n", b"name: a\n---\n", b"---\rname: a\r---\r", b"\xff\xfe-\x00-\x00-\x00\n\x00",
     b"\xef\xbb\xbf\xef\xbb\xbf---\nname: a\n---\n", b"\xe2\x80\x94\nname: a\n---\n"],
)  # fmt: skip
def test_a_file_that_does_not_begin_with_a_line_of_three_hyphens_has_no_frontmatter(data: bytes) -> None:
    error = refusal(data)
    assert (error.reference, error.line) == ("frontmatter-missing", 1)
    assert "---" in error.hint


@rule("F1")
@pytest.mark.parametrize(
    "rest", [b"", b"name: a\n", b"name: a\n ---\n", b"name: a\n--- x\n", b"a: 1\n----\n", b"--"]
)
def test_frontmatter_needs_a_closing_line(rest: bytes) -> None:
    error = refusal(b"---\n" + rest)
    assert (error.reference, error.line) == ("frontmatter-unclosed", 1)
    assert "---" in error.hint


@rule("F1", "F7")
@pytest.mark.parametrize(
    ("data", "reference", "line"),
    [
        (b"---\n---\nbody\n", "frontmatter-empty", 1),
        (b"---\n# nothing\n---\n", "frontmatter-empty", 1),
        (b"---\n- a\n---\n", "frontmatter-not-mapping", 2),
        (b"---\n\n\ntext\n---\n", "frontmatter-not-mapping", 4),
        (b"---\nname: a\ndescription: Use: it\n---\n", "yaml-invalid", 3),
        (b"---\r\nname: a\r\nname: b\r\n---\r\n", "yaml-duplicate-key", 3),
    ],
)
def test_lines_of_a_refusal_are_lines_of_the_file(data: bytes, reference: str, line: int) -> None:
    error = refusal(data)
    assert (error.reference, error.line) == (reference, line)


@rule("F6")
@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"---\nname: \xff\n---\n", (2, 7)),
        (b"---\nname: a\n---\nok\n\xc3\xa9\xc3\xa9 \xe9t\xe9\n", (5, 4)),
        (b"---\nname: a\n---\n\xed\xa0\x80", (4, 1)),
        (b"---\nname: a\n---\nend \xe2\x82", (4, 5)),
    ],
)
def test_bytes_that_are_not_utf_8_are_refused_at_their_place(data: bytes, place: tuple[int, int]) -> None:
    """The column counts characters, as an editor does."""
    error = refusal(data)
    assert (error.reference, (error.line, error.column)) == ("encoding-invalid", place)


@rule("B1")
def test_frontmatter_larger_than_the_limit_is_refused() -> None:
    error = refusal(b"---\nname: a\n" + b"# filler\n" * 40_000 + b"---\n")
    assert (error.reference, error.line) == ("frontmatter-too-large", 1)
    assert "256 KiB" in error.message


@rule("B1", "F1")
def test_a_file_within_the_limit_that_never_closes_is_unclosed_not_too_large() -> None:
    """The hint an author needs differs."""
    data = b"---\nname: a\n"
    assert refusal(data, Limits(max_frontmatter_bytes=len(data) - 4)).reference == "frontmatter-unclosed"
    assert refusal(data, Limits(max_frontmatter_bytes=len(data) - 5)).reference == "frontmatter-too-large"


@rule("B1")
def test_the_limit_is_on_the_frontmatter_not_on_the_body() -> None:
    assert len(parse_skill_md(GOOD + b"x" * 600_000).body) == 600_000


@rule("B1", "F1")
def test_the_limit_never_changes_what_is_read() -> None:
    """Whatever the limit cuts, a file reads as it is or is refused."""
    data = b"---\na: 1\nb: |\n  x\n---\nbody\n---\n"
    whole = parse_skill_md(data)
    fields = len(b"a: 1\nb: |\n  x\n")
    for size in range(fields):
        assert refusal(data, Limits(max_frontmatter_bytes=size)).reference == "frontmatter-too-large", size
    for size in range(fields, fields + len(b"---\n")):  # whether the closing line counts is not said
        with contextlib.suppress(FormatError):
            assert parse_skill_md(data, Limits(max_frontmatter_bytes=size)) == whole, size
    for size in range(fields + len(b"---\n"), len(data) + 2):
        assert parse_skill_md(data, Limits(max_frontmatter_bytes=size)) == whole, size


@rule("B1", "F1")
def test_a_line_cut_by_the_limit_does_not_close_the_frontmatter() -> None:
    """``---x`` is no closing line, wherever the limit falls."""
    data = b"---\na: 1\n---x: 2\n" + b"b: 3\n" * 20 + b"---\n"
    for size in range(40):
        assert refusal(data, Limits(max_frontmatter_bytes=size)).reference == "frontmatter-too-large", size


@rule("B1")
def test_depth_is_bounded_by_the_limits_given() -> None:
    data = b"---\na: [[1]]\n---\n"
    assert parse_skill_md(data, Limits(max_yaml_depth=3)).frontmatter == {"a": [[1]]}
    assert refusal(data, Limits(max_yaml_depth=2)).reference == "yaml-too-deep"


# ── fields (F2, F3, U3) ───────────────────────────────────────────────────────────────────────────────────

DESCRIPTION = "description: Refund an order."


@rule("F2")
@pytest.mark.parametrize("name", ["a", "refunds", "a1", "x-1-y", "a" * 64, "0", "9to5", "a-b-c-d"])
def test_a_name_of_lower_case_letters_digits_and_single_hyphens_is_right(name: str) -> None:
    assert references(f"name: '{name}'\n{DESCRIPTION}", name) == []


@rule("F2")
@pytest.mark.parametrize(
    "name",
    ["-a", "a-", "a--b", "-", "A", "refundS", "re funds", "re_funds", "re.funds", "acme/refunds", "rëfunds",
     "a" * 65,
     "１２", "ａ", "a\\n", "а", "../a", "a:b", " a", "ß"],
)  # fmt: skip
def test_a_name_with_anything_else_is_invalid(name: str) -> None:
    """Also in a folder of that name."""
    [problem] = problems(f'name: "{name}"\n{DESCRIPTION}', name)
    assert (problem.reference, problem.line, problem.column) == ("name-invalid", 2, 7)
    assert problem.refuses


@rule("F2")
def test_a_final_newline_does_not_slip_into_a_name() -> None:
    assert references(f"name: |\n  refunds\n{DESCRIPTION}") == ["name-invalid"]


@rule("F7")
@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("My Skill", "my-skill"),
        ("re__funds!", "re-funds"),
        ("--a--", "a"),
        ("技能", "my-skill"),
        ("A" * 90, "a" * 64),
    ],
)
def test_an_invalid_name_comes_with_a_name_that_is_right(name: str, suggestion: str) -> None:
    """How to fix it. The suggestion itself keeps F2."""
    [problem] = problems(f"name: '{name}'\n{DESCRIPTION}", "x")
    assert f"'{suggestion}'" in problem.hint
    assert references(f"name: {suggestion}\n{DESCRIPTION}", suggestion) == []


@rule("F2")
@pytest.mark.parametrize(
    ("written", "said"),
    [("name:", "empty"), ("name: ''", "0"), ("name: 12", "12"), ("name: true", "true"),
     ("name: [a]", "list"), ("name: {a: b}", "mapping")],
)  # fmt: skip
def test_a_name_that_is_not_text_is_missing(written: str, said: str) -> None:
    [problem] = problems(f"{written}\n{DESCRIPTION}")
    assert problem.reference == "name-missing"
    assert problem.refuses
    assert said in problem.message
    assert problem.line == 2
    assert "refunds" in problem.hint


@rule("F2", "F4", "F7")
def test_a_name_that_yaml_reads_as_a_number_is_to_be_quoted() -> None:
    """``name: 123`` in the folder ``123`` needs quotes; to write ``name: 123`` is what was done."""
    [problem] = problems(f"name: 123\n{DESCRIPTION}", "123")
    assert problem.reference == "name-missing"
    assert any(words in problem.hint for words in ("'123'", '"123"', "quote"))


@rule("F2", "U3")
@pytest.mark.parametrize("directory", ["refund", "Refunds", "refunds ", "acme", ""])
def test_a_name_equals_the_folder_it_stands_in(directory: str) -> None:
    [problem] = problems(f"name: refunds\n{DESCRIPTION}", directory)
    assert (problem.reference, problem.rule, problem.line, problem.column) == ("name-mismatch", "U3", 2, 7)
    assert problem.refuses
    assert "'refunds'" in problem.message
    assert repr(directory) in problem.message


@rule("F3")
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", ["description-missing"]),
        ("description:", ["description-missing"]),
        ("description: 5", ["description-missing"]),
        ("description: [a]", ["description-missing"]),
        ("description: ''", ["description-blank"]),
        ('description: " \\t\\n\\u3000"', ["description-blank"]),
        ("description: x", []),
        (f"description: {'é' * 1024}", []),
        (f"description: {'😀' * 1024}", []),
        (f"description: {'é' * 1025}", ["description-too-long"]),
        ("description: |\n  " + "x" * 1023, []),
        ("description: |\n  " + "x" * 1024, ["description-too-long"]),
    ],
)
def test_a_description_has_1_to_1024_characters_and_is_not_blank(written: str, expected: list[str]) -> None:
    """Characters, not bytes; the line break of a block counts (F5)."""
    assert references(f"name: refunds\n{written}") == expected


@rule("F3", "F7")
def test_a_description_of_another_type_is_told_from_none_at_all() -> None:
    [absent] = problems("name: refunds")
    [wrong] = problems("name: refunds\ndescription: 5")
    assert "no 'description'" in absent.message
    assert "number 5" in wrong.message


@rule("F7")
def test_a_description_that_is_too_long_is_reported_but_served() -> None:
    """Lenient about what the extension does not forbid."""
    [problem] = problems("name: refunds\ndescription: " + "x" * 2000)
    assert not problem.refuses
    assert "2000" in problem.message
    assert (problem.line, problem.column) == (3, 14)


@rule("F3", "F7")
@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        ("license", ["Apache-2.0", "''", "|\n  MIT"], ["", "1", "true", "[MIT]", "{name: MIT}"]),
        ("compatibility", ["x", "é" * 500], ["", "''", "é" * 501, "3", "[a, b]"]),
        ("metadata", ["{}", "{a: b, c: ''}", "{version: '1'}"],
         ["", "x", "[]", "{a: 1}", "{a: true}", "{a: }", "{a: {b: c}}", "{a: [b]}", "{a: b, c: 1.5}"]),
        ("allowed-tools", ["Read", "Read Grep Bash(git:*)", "''"], ["", "[Read, Grep]", "{Read: x}", "false",
        "7"]),
    ],
)  # fmt: skip
def test_optional_fields_have_the_types_of_the_format(field: str, right: list[str], wrong: list[str]) -> None:
    """A wrong one is an error with its place; the skill is served all the same."""
    base = f"name: refunds\n{DESCRIPTION}\n"
    for written in right:
        assert references(f"{base}{field}: {written}") == [], written
    for written in wrong:
        [problem] = problems(f"{base}{field}: {written}")
        assert problem.reference == f"{field}-invalid"
        assert (problem.severity, problem.refuses, problem.line) == ("error", False, 4)


@rule("F7")
@pytest.mark.parametrize(
    ("written", "said"),
    [("", "empty"), ("true", "boolean true"), ("1.5", "number 1.5"), ("[a]", "a list"), ("{a: b}", "a mapping")],
)
def test_a_wrong_type_is_named(written: str, said: str) -> None:
    [problem] = problems(f"name: refunds\n{DESCRIPTION}\nlicense: {written}")
    assert said in problem.message


@rule("F7")
def test_a_mapping_of_text_is_not_said_to_hold_other_values() -> None:
    """What is wrong with ``license: {name: MIT}`` is that it is a mapping."""
    [problem] = problems(f"name: refunds\n{DESCRIPTION}\nlicense: {{name: MIT}}")
    assert problem.message == "'license' is a mapping, not text"


@rule("F7")
def test_every_broken_rule_is_reported_at_once() -> None:
    """One run shows all there is to mend."""
    fields = (
        "name: Refunds\ndescription: ''\nlicense: 1\ncompatibility: []\nmetadata: {a: 1}\nallowed-tools: [Read]"
    )
    found = problems(fields)
    assert [(problem.reference, problem.line) for problem in found] == [
        ("name-invalid", 2),
        ("description-blank", 3),
        ("license-invalid", 4),
        ("compatibility-invalid", 5),
        ("metadata-invalid", 6),
        ("allowed-tools-invalid", 7),
    ]
    assert {problem.file for problem in found} == {"refunds/SKILL.md"}


@rule("F7")
def test_a_field_that_is_absent_is_reported_at_the_top_of_the_file() -> None:
    assert [(problem.reference, problem.line, problem.column) for problem in problems("license: MIT")] == [
        ("name-missing", 1, 1),
        ("description-missing", 1, 1),
    ]


@rule("B1")
def test_a_huge_name_is_cut_in_messages() -> None:
    [problem] = problems(f"name: {'A-' * 50_000}\n{DESCRIPTION}")
    assert len(problem.message) + len(problem.hint) < 400


@rule("F6")
def test_documents_are_equal_by_what_they_say() -> None:
    """CRLF in the frontmatter is the same document; in the body it is not."""
    one = parse_skill_md(GOOD + b"a\n")
    assert parse_skill_md(GOOD.replace(b"\n", b"\r\n") + b"a\n") == one
    assert parse_skill_md(GOOD + b"a\r\n") != one
    assert isinstance(one, SkillDocument)
