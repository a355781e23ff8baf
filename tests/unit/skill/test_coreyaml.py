"""F4: frontmatter means what the YAML 1.2 core schema says, and becomes JSON. B1: depth and numbers are bounded.

The expected values were checked against the npm package ``yaml`` (a YAML 1.2 reader that TypeScript peers use).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from rules import rule
from skillwire.errors import FormatError
from skillwire.skill.coreyaml import Position, YamlDocument, format_text, parse_yaml_mapping

if TYPE_CHECKING:
    from skillwire.skill import Json


def read(text: str, max_depth: int = 32) -> dict[str, Json]:
    return parse_yaml_mapping(text, max_depth=max_depth).values


def refusal(text: str, max_depth: int = 32) -> FormatError:
    with pytest.raises(FormatError) as caught:
        parse_yaml_mapping(text, max_depth=max_depth)
    return caught.value


def read_or_reference(text: str) -> dict[str, Json] | str:
    """The values, or the name of the refusal."""
    try:
        return read(text)
    except FormatError as error:
        return error.reference


# F4: what YAML 1.1 readers turn into booleans, octals, sexagesimals, dates or thousands.
STAYS_TEXT = [
    "yes", "off", "n", "1_000", "1:30", "2026-01-01", "0b1", "+0x1F", "-0o14", "0O7", "0X1F", "0o8", "0o", "0xG",
    "nUll", "tRUE", "=", "<<", "1e", "1.2.3", "12a", "+", "+-1", "..", "-.nan", ".iNF", ".nAn", "inf",
    "\u0661\u0662", "1\u0662",
]  # fmt: skip


@rule("F4")
@pytest.mark.parametrize("written", STAYS_TEXT)
def test_a_plain_scalar_without_core_meaning_stays_text(written: str) -> None:
    assert read(f"a: {written}\n") == {"a": written}


@rule("F4")
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0", 0), ("+1", 1), ("-17", -17), ("012", 12), ("089", 89), ("0o14", 12), ("0xdeadBEEF", 0xDEADBEEF),
        ("9007199254740993", 9007199254740993),
    ],
)  # fmt: skip
def test_integers_are_decimal_octal_or_hexadecimal_as_yaml_1_2_spells_them(written: str, value: int) -> None:
    """A leading zero does not make an octal; ``0o`` does."""
    got = read(f"a: {written}\n")["a"]
    assert got == value
    assert type(got) is int


@rule("F4")
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1.", 1.0), (".5", 0.5), ("-.5", -0.5), ("1E+3", 1000.0), ("12e-1", 1.2), ("012.5", 12.5),
        ("1.e2", 100.0), ("1e-999", 0.0),
    ],
)  # fmt: skip
def test_floats_need_no_digit_on_both_sides_of_the_point(written: str, value: float) -> None:
    got = read(f"a: {written}\n")["a"]
    assert got == value
    assert type(got) in (int, float)


@rule("F4")
def test_null_is_one_of_four_words_or_nothing() -> None:
    text = "a:\nb: ~\nc: null\nd: Null\ne: NULL\nf: # a comment\n"
    assert read(text) == dict.fromkeys("abcdef")


@rule("F4")
def test_booleans_are_true_and_false_in_three_cases() -> None:
    values = read("a: true\nb: True\nc: TRUE\nd: false\ne: False\nf: FALSE\n")
    assert [value is True for value in values.values()] == [True] * 3 + [False] * 3
    assert [value is False for value in values.values()] == [False] * 3 + [True] * 3


@rule("F4")
@pytest.mark.parametrize(
    "quoted",
    ["'{}'", '"{}"', "|-\n  {}", ">-\n  {}"],
    ids=["single-quotes", "double-quotes", "literal-block", "folded-block"],
)
def test_what_is_quoted_or_a_block_is_text(quoted: str) -> None:
    """Only plain scalars have a type."""
    for text in ("true", "12", "~", "", ".inf", "1e999", "- a", "a: b", "&a", "!t"):
        assert read("a: " + quoted.format(text) + "\n") == {"a": text}


@rule("F4")
@pytest.mark.parametrize(
    "text",
    [
        "Read Bash(git:*)",
        "Use it: now",
        "a #b",
        "no",
        "Off",
        "2026-01-01",
        "1_000",
        "-",
        "",
        " a",
        "a:",
        "é",
        "a\x85b",
    ],
)
def test_a_text_that_is_written_is_read_as_the_same_text(text: str) -> None:
    """By readers of YAML 1.1 too, which have more words and numbers."""
    assert read(f"a: {format_text(text)}\n") == yaml.safe_load(f"a: {format_text(text)}\n") == {"a": text}


@rule("F4")
def test_a_merge_key_is_an_ordinary_key() -> None:
    """Merging is YAML 1.1."""
    assert read("<<: {a: 1}\nb: 2\n") == {"<<": {"a": 1}, "b": 2}


@rule("F4")
def test_nested_values_keep_their_shape_and_order() -> None:
    text = "z: [1, {y: [], x: {}}, null]\na:\n  - - one\n    - two\n  - k: v\n"
    values = read(text)
    assert values == {"z": [1, {"y": [], "x": {}}, None], "a": [["one", "two"], {"k": "v"}]}
    assert list(values) == ["z", "a"]


@rule("F4")
@pytest.mark.parametrize(
    "form",
    ["a: x{}y\n", "a: 'x{}y'\n", 'a: "x{}y"\n', "a: |-\n  x{}y\n", "{{a: x{}y}}\n"],
    ids=["plain", "single-quotes", "double-quotes", "block", "flow"],
)
def test_unicode_line_separators_do_not_break_lines(form: str) -> None:
    """YAML 1.1 breaks lines at U+0085, U+2028 and U+2029; YAML 1.2 does not."""
    separators = "\x85|\u2028|\u2029"
    assert read(form.format(separators)) == {"a": f"x{separators}y"}


@rule("F4")
def test_a_unicode_line_separator_survives_in_a_key_and_does_not_move_what_follows() -> None:
    document = parse_yaml_mapping("a\u2028b: 1\nc: 2\n", max_depth=4)
    assert document == YamlDocument({"a\u2028b": 1, "c": 2}, {"a\u2028b": Position(1, 6), "c": Position(2, 4)})


@rule("F4")
def test_a_number_next_to_a_unicode_line_separator_is_text() -> None:
    assert read("a: 1\u2028\nb: .\x85\n") == {"a": "1\u2028", "b": ".\x85"}


@rule("F4")
def test_private_use_characters_are_kept() -> None:
    assert read("a: \uf8f0\uf8f1\uf8f2\ue000\n") == {"a": "\uf8f0\uf8f1\uf8f2\ue000"}


@rule("F4")
def test_an_escaped_private_use_character_beside_a_line_separator_keeps_its_meaning() -> None:
    """Refusing is fine, reading another character is not."""
    assert read_or_reference('a: "x\u2028\\uf8f0"\n') in ({"a": "x\u2028\uf8f0"}, "yaml-invalid")


@rule("F4")
def test_escapes_in_double_quotes_are_decoded() -> None:
    text = r'a: "\t\n\x41\u00e9\U0001F600\N\L\P\/\"\\"'
    assert read(text) == {"a": '\t\nAé\U0001f600\x85\u2028\u2029/"\\'}


REFUSED: dict[str, tuple[str, str, tuple[int, int]]] = {
    "anchor": ("a: &x 1\n", "yaml-alias", (1, 4)),
    "alias": ("b: 1\na: *x\n", "yaml-alias", (2, 4)),
    "alias-as-key": ("*x : 1\n", "yaml-alias", (1, 1)),
    "anchor-on-key": ("&x a: 1\n", "yaml-alias", (1, 1)),
    "tag-of-python": ("a: !!python/object/apply:os.system [id]\n", "yaml-tag", (1, 4)),
    "tag-without-name": ("a: ! 1\n", "yaml-tag", (1, 4)),
    "tag-on-key": ("!!str a: 1\n", "yaml-tag", (1, 1)),
    "number-as-key": ("1: a\n", "yaml-key", (1, 1)),
    "boolean-as-key": ("true: a\n", "yaml-key", (1, 1)),
    "null-as-key": ("~: a\n", "yaml-key", (1, 1)),
    "nothing-as-key": ("? \n: a\n", "yaml-key", (1, 2)),
    "number-as-nested-key": ("b:\n  1.5: a\n", "yaml-key", (2, 3)),
    "list-as-key": ("[a]: b\n", "yaml-key", (1, 1)),
    "mapping-as-key": ("{a: b}: c\n", "yaml-key", (1, 1)),
    "block-as-key": ("? - a\n: b\n", "yaml-key", (1, 3)),
    "key-twice": ("a: 1\nb: 2\na: 1\n", "yaml-duplicate-key", (3, 1)),
    "nested-key-twice": ("a: {b: 1, b: 2}\n", "yaml-duplicate-key", (1, 11)),
    "key-twice-once-escaped": ('a: 1\n"\\x61": 2\n', "yaml-duplicate-key", (2, 1)),
    "infinity": ("a: .inf\n", "yaml-number", (1, 4)),
    "negative-infinity": ("a: -.Inf\n", "yaml-number", (1, 4)),
    "positive-infinity": ("a: +.INF\n", "yaml-number", (1, 4)),
    "nan": ("a: .nan\n", "yaml-number", (1, 4)),
    "nan-in-a-list": ("a: [1, .NaN]\n", "yaml-number", (1, 8)),
    "nan-in-capitals": ("a: .NAN\n", "yaml-number", (1, 4)),
    "float-too-large": ("a: 1e999\n", "yaml-number", (1, 4)),
    "integer-too-large": (f"a: {'9' * 400}\n", "yaml-number", (1, 4)),
    "hexadecimal-too-large": (f"a: 0x{'f' * 5000}\n", "yaml-number", (1, 4)),
    "text-only": ("just text\n", "frontmatter-not-mapping", (1, 1)),
    "list-only": ("\n  [a, b]\n", "frontmatter-not-mapping", (2, 3)),
}


@rule("F4")
@pytest.mark.parametrize("case", REFUSED)
def test_what_json_cannot_carry_is_refused_at_its_place(case: str) -> None:
    text, reference, place = REFUSED[case]
    error = refusal(text)
    assert (error.reference, (error.line, error.column)) == (reference, place)
    assert error.message
    assert error.hint


@rule("F4")
def test_keys_that_only_look_unlike_text_in_yaml_1_1_are_text() -> None:
    assert list(read("yes: 1\n2026-01-01: 2\n1:30: 3\n'1': 4\n\"true\": 5\n")) == [
        "yes",
        "2026-01-01",
        "1:30",
        "1",
        "true",
    ]


@rule("F4", "B1")
def test_the_laughs_of_a_yaml_bomb_are_not_expanded() -> None:
    """The first anchor already refuses it."""
    lines = ["a0: &a0 [lol, lol]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    error = refusal("\n".join(lines))
    assert (error.reference, error.line) == ("yaml-alias", 1)


@rule("B1")
def test_depth_is_allowed_up_to_the_limit_and_refused_beyond() -> None:
    """The mapping itself is the first level."""
    lists: Json = []
    mappings: Json = {}
    for _ in range(30):
        lists, mappings = [lists], {"b": mappings}
    assert read("a: " + "[" * 31 + "]" * 31) == {"a": lists}
    assert read("a: " + "{b: " * 30 + "{}" + "}" * 30) == {"a": mappings}
    for text in ("a: " + "[" * 32 + "]" * 32, "a: " + "{b: " * 31 + "{}" + "}" * 31):
        assert refusal(text).reference == "yaml-too-deep"


@rule("B1")
def test_depth_of_blocks_counts_like_depth_of_flows() -> None:
    blocks = "".join("  " * level + "k:\n" for level in range(5))
    assert read(blocks, max_depth=5) == {"k": {"k": {"k": {"k": {"k": None}}}}}
    error = refusal(blocks, max_depth=4)
    assert (error.reference, error.line) == ("yaml-too-deep", 5)
    assert "4" in error.message


@rule("B1")
@pytest.mark.parametrize(
    "text", ["[" * 20_000, "a:\n" + "- " * 20_000, "{" * 20_000], ids=["lists", "blocks", "mappings"]
)
def test_very_deep_text_is_refused_not_recursed_into(text: str) -> None:
    assert refusal(text).reference in {"yaml-too-deep", "frontmatter-not-mapping", "yaml-invalid", "yaml-key"}


@rule("F4")
def test_three_hundred_digits_are_kept_exactly() -> None:
    """An integer that a double can hold the size of is a JSON number; its digits stay as written."""
    digits = "7" * 300
    assert json.dumps(read(f"a: {digits}\n")) == f'{{"a": {digits}}}'


@rule("F4", "B1")
@pytest.mark.parametrize(
    "written",
    ["0" * 5000 + "1", "-" + "0" * 9000, "0" * 5000 + ".5"],
    ids=["leading-zeros", "negative-zero", "fraction"],
)
def test_a_number_written_with_thousands_of_digits_reads_or_is_refused(written: str) -> None:
    """Python's own limit on digits must not show through as another exception."""
    assert read_or_reference(f"a: {written}\n") in ({"a": float(written)}, "yaml-number")


@rule("F4")
@pytest.mark.parametrize("tag", ["!<%ed%a0%80>", "!%ed%b0%80", "!<%c0%80>"])
def test_a_tag_that_escapes_broken_utf_8_is_refused(tag: str) -> None:
    """The parser hands such bytes through; they end as a ``FormatError`` like all else."""
    assert refusal(f"a: {tag} x\n").reference in {"yaml-invalid", "yaml-tag"}


@rule("F4")
@pytest.mark.parametrize(
    ("text", "meaning"), [("a: [?x]\n", ["?x"]), ("a: {?x: 1}\n", {"?x": 1})], ids=["in-a-list", "in-a-mapping"]
)
def test_a_question_mark_without_a_space_does_not_make_a_key(text: str, meaning: Json) -> None:
    """``?x`` is text in YAML 1.2, also inside brackets. Refusing is fine, dropping the mark is not."""
    assert read_or_reference(text) in ({"a": meaning}, "yaml-invalid", "yaml-key")


@rule("F4")
def test_a_question_mark_elsewhere_is_text_or_marks_a_key_as_yaml_1_2_says() -> None:
    for text, values in (
        ("a: 1\n?x: 2\n", {"a": 1, "?x": 2}),
        ("{a?: 1, b: c?}\n", {"a?": 1, "b": "c?"}),
        ("? a\n: 1\n", {"a": 1}),
        ("a: [? b : 1]\n", {"a": [{"b": 1}]}),
        ("[{? a : 1}]: x\n", "yaml-key"),
    ):
        assert read_or_reference(text) == values


@rule("F1")
@pytest.mark.parametrize("text", ["", "# only a comment\n"], ids=["nothing", "a-comment"])
def test_no_content_is_empty_frontmatter(text: str) -> None:
    assert refusal(text).reference == "frontmatter-empty"


@rule("F1")
@pytest.mark.parametrize("text", ["a: 1\n--- {b: 2}\n", "a: 1\n...\nb: 2\n"], ids=["opened", "closed"])
def test_a_second_document_is_refused(text: str) -> None:
    """One mapping, not the first of several."""
    error = refusal(text)
    assert error.reference == "yaml-invalid"
    assert error.line in (2, 3)


SYNTAX_ERRORS = {
    "colon-in-a-value": ("name: x\ndescription: Use when: always\n", (2, 22)),
    "no-value": ("a: 1\nb\nc: 2\n", (3, 1)),
    "tab": ("a: 1\n\tb: 2\n", (2, 1)),
    "open-quote": ("a: 'open\nb: 2\n", (3, 1)),
    "control-character": ("é: é\nb: éé\x07x\n", (2, 6)),
    "special-character": ("a: @b\n", (1, 4)),
}


@rule("F7")
@pytest.mark.parametrize("case", SYNTAX_ERRORS)
def test_a_syntax_error_says_where_it_is(case: str) -> None:
    """Columns count characters, not bytes."""
    text, place = SYNTAX_ERRORS[case]
    error = refusal(text)
    assert (error.reference, (error.line, error.column)) == ("yaml-invalid", place)


@rule("F7")
def test_a_common_syntax_error_has_a_hint_of_its_own() -> None:
    hints = {case: refusal(text).hint for case, (text, _) in SYNTAX_ERRORS.items() if case != "special-character"}
    other = refusal("%a\n---\nb: 1\n").hint
    assert len({*hints.values(), other}) == len(hints) + 1


@rule("F7")
def test_positions_are_those_of_the_top_level_values() -> None:
    text = "name: x\ndescription:   y\nmetadata:\n  name: z\nlist:\n- 1\nnothing:\n"
    positions = parse_yaml_mapping(text, max_depth=8).positions
    assert {key: tuple(place) for key, place in positions.items()} == {
        "name": (1, 7),
        "description": (2, 16),
        "metadata": (4, 3),
        "list": (6, 1),
        "nothing": (7, 9),
    }


@rule("F7")
def test_lines_count_from_where_the_text_stands_in_its_file() -> None:
    assert parse_yaml_mapping("a: 1\nb: 2\n", max_depth=2, first_line=2).positions["b"] == Position(3, 4)
    for text in ("a: 1\na: 2\n", "a: 1\nb: \x01\n", "a: 1\nb: c: d\n"):
        with pytest.raises(FormatError) as caught:
            parse_yaml_mapping(text, max_depth=2, first_line=2)
        assert caught.value.line == 3


@rule("B1")
def test_a_long_key_or_number_is_cut_in_messages() -> None:
    """A message is for a person, whatever the size of the text."""
    for text in (f"{'k' * 900}: 1\n{'k' * 900}: 2\n", f"a: {'9' * 90_000}\n", f"a: !{'t' * 90_000} x\n"):
        assert len(refusal(text).message) < 200
