"""F1, F4, F5, F6, B1: reading any ``SKILL.md`` ends in JSON values or in a ``FormatError`` with a place."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from property.budget import FEWER
from rules import rule
from skillwire.errors import FormatError
from skillwire.skill.diagnostics import KINDS
from skillwire.skill.frontmatter import SkillDocument, parse_skill_md

# Characters whose meaning is the same to every YAML reader: no controls, no surrogates, no non-characters, no
# private use (where the reader keeps its stand-ins), no byte order mark.
SEPARATORS = "\x85\u2028\u2029"
CERTAIN = st.characters(
    codec="utf-8", exclude_categories=("Cc", "Cs", "Co", "Cn"), exclude_characters="\ufeff" + SEPARATORS
)

# Pieces of YAML that meet where grammars have their corners.
PIECES = st.sampled_from(
    ["a", "b: ", "- ", "? ", ": ", "\n", "\n  ", "\n    ", "\t", " ", '"', "'", "[", "]", "{", "}", ", ", "|",
     ">-", "|+2", "#", " # ", "~", "null", "true", "1", "012", "0o7", "0x1F", "1.", ".5", "1e3", "1e999", ".inf",
     ".nan", "-", "%YAML", "@", "`", "!", "!!str ", "!<%41>", "&a ", "*a", "é", "😀", "\u2028", "\x85", "\uf8f0",
     "\\", "\\n", '"\\ud83d"', "\x00", "\x01", "\ufffe", "\ufeff", "<<: ", "=", "...", "---", "\r\n", "\r",
     "k: v\n", "k: |\n  t\n", "name: x\n"],
)  # fmt: skip


def read(data: bytes) -> SkillDocument | FormatError:
    try:
        return parse_skill_md(data)
    except FormatError as error:
        return error


def assert_place_is_in_the_file(error: FormatError, data: bytes) -> None:
    text = data.decode(errors="surrogateescape")
    # A carriage return alone ends a line to YAML and not to most editors: then only the outer bounds are sure.
    if re.search(r"\r(?!\n)", text):
        lines, longest = re.split(r"\r\n|\r|\n", text), len(text)
    else:
        lines, longest = text.split("\n"), None
    assert error.line is not None
    assert 1 <= error.line <= len(lines)
    if error.column is not None:
        width = len(lines[error.line - 1]) if longest is None else longest
        assert 1 <= error.column <= width + 1


def assert_outcome_is_right(data: bytes) -> None:
    outcome = read(data)
    if isinstance(outcome, FormatError):
        assert outcome.reference in KINDS
        assert outcome.hint
        assert_place_is_in_the_file(outcome, data)
    else:
        text = json.dumps(outcome.frontmatter, allow_nan=False)
        assert json.loads(text) == outcome.frontmatter
        assert data.decode().endswith(outcome.body)
        assert 3 <= outcome.body_line <= data.count(b"\n") + 1
        assert set(outcome.positions) == set(outcome.frontmatter)


@rule("F1", "F6", "F7")
@given(st.binary(max_size=400))
@example(b"")
@example(b"---\n\xff\n---\n")
def test_any_bytes_read_or_are_refused(data: bytes) -> None:
    assert_outcome_is_right(data)
    assert_outcome_is_right(b"---\n" + data + b"\n---\nbody\n")


@rule("F1", "F4", "F7")
@given(
    st.lists(PIECES, max_size=14),
    st.sampled_from(["", "k: ", "k:\n  ", "k: [", "k: {", 'k: "', "k: |\n  ", "\ufeff"]),
)
def test_any_mix_of_yaml_reads_or_is_refused(pieces: list[str], start: str) -> None:
    assert_outcome_is_right(f"---\n{start}{''.join(pieces)}\n---\nbody\n".encode())


@rule("F1", "B1")
@given(st.text(alphabet="[]{}-?:,& \n'\"ab|>", max_size=200))
def test_any_mix_of_yaml_indicators_reads_or_is_refused(text: str) -> None:
    assert_outcome_is_right(f"---\nk: {text}\n---\n".encode())


def json_values(text: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    numbers = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    keys = text.filter(
        lambda key: not re.match(r"[-+.0-9]", key)
    )  # PyYAML leaves 0E0 plain: text in 1.1, not in 1.2
    leaves = st.none() | st.booleans() | numbers | text
    values = st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
    )
    return st.dictionaries(keys, values, min_size=1, max_size=5)


def same(one: object, other: object) -> bool:
    """Equal as JSON: a boolean is not a number, and the sign of a zero does not count."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


@rule("F4")
@FEWER
@given(json_values(st.text(CERTAIN | st.sampled_from("\t\n\r\x00\x1f" + SEPARATORS), max_size=12)))
def test_json_reads_as_itself(values: dict[str, Any]) -> None:
    """JSON is YAML 1.2. Line separators inside strings break no lines."""
    data = f"---\n{json.dumps(values, ensure_ascii=False)}\n---\n".encode()
    document = parse_skill_md(data)
    assert same(document.frontmatter, values)


class QuotingDumper(yaml.SafeDumper):
    """Writes every string in one style, so that what it means is certain in YAML 1.1 and 1.2 alike."""

    text_style = '"'  # not "style": PyYAML's emitter has an attribute of that name

    def ignore_aliases(self, data: object) -> bool:
        return True


QuotingDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style=dumper.text_style)
)


def dump(values: dict[str, Any], style: str, flow: bool) -> str:
    dumper = type("Dumper", (QuotingDumper,), {"text_style": style})
    return yaml.dump(
        values, Dumper=dumper, allow_unicode=True, default_flow_style=flow, sort_keys=False, width=math.inf
    )


PROSE = st.text(CERTAIN | st.just("\n"), max_size=20)


@rule("F4", "F5")
@FEWER
@given(values=json_values(PROSE), flow=st.booleans())
def test_what_another_writer_wrote_reads_as_it_meant(flow: bool, values: dict[str, Any]) -> None:
    """Quoted, literal and folded text, in blocks and in flows, the last block included."""
    for style in ('"', "'", "|", ">"):
        written = dump(values, style, flow)
        assert same(parse_skill_md(f"---\n{written}---\nbody".encode()).frontmatter, values), style


@rule("F5", "F6")
@FEWER
@given(json_values(PROSE), st.sampled_from(["'", "|", ">"]), st.text(max_size=40))
def test_line_ends_marks_and_trailing_blanks_do_not_change_the_fields(
    values: dict[str, Any], style: str, body: str
) -> None:
    written = dump(values, style, flow=False)
    plain = parse_skill_md(f"---\n{written}---\n{body}".encode())
    windows = "\ufeff" + f"--- \n{written}---\t\n".replace("\n", "\r\n") + body
    document = parse_skill_md(windows.encode())
    assert document == plain
    assert document.body == body


@rule("F1", "F6")
@given(st.text(max_size=200))
def test_the_body_is_whatever_follows_the_closing_line(body: str) -> None:
    document = parse_skill_md(b"---\nname: a\n---\n" + body.encode())
    assert (document.body, document.body_line) == (body, 4)


@rule("F4")
@given(st.integers(-(10**40), 10**40), st.integers(0, 30), st.sampled_from(["", "+"]))
def test_leading_zeros_and_a_plus_leave_a_number_decimal(number: int, zeros: int, plus: str) -> None:
    """Never octal."""
    sign = "-" if number < 0 else plus
    written = f"{sign}{'0' * zeros}{abs(number)}"
    value = parse_skill_md(f"---\na: {written}\n---\n".encode()).frontmatter["a"]
    assert value == number
    assert type(value) is int


@rule("F4")
@given(st.integers(0, 2**64))
def test_octal_and_hexadecimal_need_their_prefix(number: int) -> None:
    data = f"---\na: 0o{number:o}\nb: 0x{number:x}\nc: 0x{number:X}\nd: 0b{number:b}\n---\n"
    frontmatter = parse_skill_md(data.encode()).frontmatter
    assert [frontmatter[key] for key in "abcd"] == [number, number, number, f"0b{number:b}"]


@rule("F4")
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_the_double_nearest_to_what_is_written(number: float) -> None:
    assert parse_skill_md(f"---\na: {number!r}\n---\n".encode()).frontmatter["a"] == number


@rule("F4")
@given(st.dates() | st.times() | st.timedeltas() | st.datetimes())
def test_dates_and_times_stay_text(moment: object) -> None:
    assert parse_skill_md(f"---\na: {moment}\n---\n".encode()).frontmatter == {"a": str(moment)}
