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
def test_the_last_line_break_belongs_to_the_last_block(header: str, value: str) -> None:
    """Dropping it changes a block scalar that ends the frontmatter."""
    text = f"---\nname: a\ndescription: {header}\n  one\n  two\n---\nbody\n"
    for written in (text, text.replace("\n", "\r\n")):
        assert parse_skill_md(written.encode()).frontmatter["description"] == value


@rule("F5")
def test_blank_lines_before_the_closing_line_belong_to_a_block_that_keeps_them() -> None:
    assert parse_skill_md(b"---\na: |+\n  x\n\n\n---\n").frontmatter == {"a": "x\n\n\n"}


@rule("F6")
@pytest.mark.parametrize(
    ("bom", "newline", "blanks"),
    [
        pytest.param(b"", b"\n", b"", id="plain"),
        pytest.param(b"\xef\xbb\xbf", b"\n", b"", id="byte-order-mark"),
        pytest.param(b"", b"\r\n", b"", id="crlf"),
        pytest.param(b"", b"\n", b" \t ", id="trailing-blanks"),
        pytest.param(b"\xef\xbb\xbf", b"\r\n", b" ", id="all"),
    ],
)
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
def test_the_file_may_end_with_the_closing_line() -> None:
    for end in (b"---", b"---\n", b"---\r\n", b"---\r", b"--- \t"):
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
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"# Title\n", id="text"),
        pytest.param(b"\n---\nname: a\n---\n", id="blank-line-before"),
        pytest.param(b" ---\nname: a\n---\n", id="space-before"),
        pytest.param(b"----\nname: a\n----\n", id="four-hyphens"),
        pytest.param(b"---", id="no-line-end"),
        pytest.param(b"--- name: a\n---\n", id="text-behind"),
        pytest.param(b"---\rname: a\r---\r", id="carriage-returns"),
        pytest.param(b"\xef\xbb\xbf\xef\xbb\xbf---\nname: a\n---\n", id="two-byte-order-marks"),
    ],
)
def test_a_file_that_does_not_begin_with_a_line_of_three_hyphens_has_no_frontmatter(data: bytes) -> None:
    error = refusal(data)
    assert (error.reference, error.line) == ("frontmatter-missing", 1)
    assert "---" in error.hint


@rule("F1")
@pytest.mark.parametrize(
    "rest",
    [b"", b"name: a\n ---\n", b"name: a\n--- x\n", b"a: 1\n----\n"],
    ids=["nothing", "space-before", "text-behind", "four-hyphens"],
)
def test_frontmatter_needs_a_closing_line(rest: bytes) -> None:
    error = refusal(b"---\n" + rest)
    assert (error.reference, error.line) == ("frontmatter-unclosed", 1)
    assert "---" in error.hint


@rule("F1", "F7")
@pytest.mark.parametrize(
    ("data", "reference", "line"),
    [
        (b"---\n# nothing\n---\n", "frontmatter-empty", 1),
        (b"---\n\n\ntext\n---\n", "frontmatter-not-mapping", 4),
        (b"---\nname: a\ndescription: Use: it\n---\n", "yaml-invalid", 3),
        (b"---\r\nname: a\r\nname: b\r\n---\r\n", "yaml-duplicate-key", 3),
    ],
    ids=["empty", "not-mapping", "syntax", "crlf"],
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
        (b"---\nname: a\n---\nend \xe2\x82", (4, 5)),
    ],
    ids=["in-a-field", "in-the-body", "cut-at-the-end"],
)
def test_bytes_that_are_not_utf_8_are_refused_at_their_place(data: bytes, place: tuple[int, int]) -> None:
    """The column counts characters, as an editor does."""
    error = refusal(data)
    assert (error.reference, (error.line, error.column)) == ("encoding-invalid", place)


@rule("B1")
def test_frontmatter_larger_than_the_limit_is_refused() -> None:
    error = refusal(b"---\nname: a\n" + b"# filler\n" * 40_000 + b"---\n")
    assert (error.reference, error.line) == ("frontmatter-too-large", 1)
    assert "256" in error.message


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
@pytest.mark.parametrize("name", ["a", "x-1-y", "0", "a" * 64], ids=["one", "hyphens", "digit", "64"])
def test_a_name_of_lower_case_letters_digits_and_single_hyphens_is_right(name: str) -> None:
    assert references(f"name: '{name}'\n{DESCRIPTION}", name) == []


@rule("F2")
@pytest.mark.parametrize(
    "name",
    [
        "-a",
        "a-",
        "a--b",
        "A",
        "re funds",
        "re_funds",
        "acme/refunds",
        "r\u00ebfunds",
        "\uff11",
        "\u0430",
        "a" * 65,
    ],
    ids=lambda name: ascii(name[:8]),
)
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
    [("My Skill", "my-skill"), ("--a--", "a"), ("\u6280\u80fd", "my-skill"), ("A" * 90, "a" * 64)],
    ids=["words", "hyphens", "no-letters", "too-long"],
)
def test_an_invalid_name_comes_with_a_name_that_is_right(name: str, suggestion: str) -> None:
    """How to fix it. The suggestion itself keeps F2."""
    [problem] = problems(f"name: '{name}'\n{DESCRIPTION}", "x")
    assert f"'{suggestion}'" in problem.hint
    assert references(f"name: {suggestion}\n{DESCRIPTION}", suggestion) == []


@rule("F2")
@pytest.mark.parametrize(
    "written",
    ["name:", "name: ''", "name: 12", "name: [a]"],
    ids=["nothing", "empty", "number", "list"],
)
def test_a_name_that_is_not_text_is_missing(written: str) -> None:
    [problem] = problems(f"{written}\n{DESCRIPTION}")
    assert (problem.reference, problem.line) == ("name-missing", 2)
    assert problem.refuses
    assert "refunds" in problem.hint


@rule("F2", "U3")
@pytest.mark.parametrize("directory", ["refund", "Refunds", ""], ids=["shorter", "case", "none"])
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
        pytest.param("", ["description-missing"], id="absent"),
        pytest.param("description:", ["description-missing"], id="null"),
        pytest.param("description: 5", ["description-missing"], id="number"),
        pytest.param("description: ''", ["description-blank"], id="empty"),
        pytest.param('description: " \\t\\n\\u3000"', ["description-blank"], id="blank"),
        pytest.param("description: " + "\U0001f600" * 1024, [], id="1024"),
        pytest.param("description: " + "\u00e9" * 1025, ["description-too-long"], id="1025"),
        pytest.param("description: |\n  " + "x" * 1023, [], id="block-of-1024"),
        pytest.param("description: |\n  " + "x" * 1024, ["description-too-long"], id="block-of-1025"),
    ],
)
def test_a_description_has_1_to_1024_characters_and_is_not_blank(written: str, expected: list[str]) -> None:
    """Characters, not bytes; the line break of a block counts (F5)."""
    assert references(f"name: refunds\n{written}") == expected


@rule("F3", "F7")
def test_a_description_of_another_type_is_told_from_none_at_all() -> None:
    [absent] = problems("name: refunds")
    [wrong] = problems("name: refunds\ndescription: 5")
    assert absent.message != wrong.message
    assert "5" in wrong.message


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
        ("compatibility", ["x", "é" * 500], ["", "''", "é" * 501, "3"]),
        ("metadata", ["{}", "{a: b, c: ''}"], ["", "x", "[]", "{a: 1}", "{a: b, c: }", "{a: {b: c}}"]),
        ("allowed-tools", ["Read Grep Bash(git:*)", "''"], ["", "[Read, Grep]"]),
    ],
    ids=["license", "compatibility", "metadata", "allowed-tools"],
)
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
def test_the_message_about_a_wrong_type_tells_types_apart() -> None:
    values = ("", "true", "1.5", "[a]", "{a: b}")
    messages = {problems(f"name: refunds\n{DESCRIPTION}\nlicense: {value}")[0].message for value in values}
    assert len(messages) == len(values)


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
