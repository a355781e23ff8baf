"""P6: filling in arguments, for every text and every value."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rules import rule
from skillwire.skill.declarations import fill_in

NAMES = st.sampled_from(["a", "b", "order", "x.y", "x-y", "_"])
VALUES = st.dictionaries(
    NAMES, st.text() | st.sampled_from(["{{a}}", "{{", "}}", "\\1", "{{ b }}", ""]), min_size=1
)
PIECES = st.lists(
    st.text(alphabet="{} ab\\")
    | st.text(st.characters(exclude_categories=["Cs"]))
    | NAMES.map("{{{{{}}}}}".format)
    | NAMES.map("{{{{ {} }}}}".format)
).map("".join)


@rule("P6")
@given(PIECES)
def test_nothing_declared_changes_nothing(text: str) -> None:
    assert fill_in(text, {}) == text


@rule("P6")
@given(PIECES, VALUES)
def test_the_text_between_placeholders_stays_and_each_is_its_value(text: str, values: dict[str, str]) -> None:
    """One pass over the text; values are not looked into."""
    pattern = re.compile(r"\{\{[ \t]*([A-Za-z0-9_][A-Za-z0-9_.-]{0,63})[ \t]*\}\}")
    expected, place = "", 0
    for match in pattern.finditer(text):
        expected += text[place : match.start()] + values.get(match[1], match[0])
        place = match.end()
    assert fill_in(text, values) == expected + text[place:]


@rule("P6")
@given(
    st.lists(st.tuples(st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"])), NAMES)), VALUES
)
def test_texts_without_braces_come_back_whole(parts: list[tuple[str, str]], values: dict[str, str]) -> None:
    """Whatever the values are, and however many there are."""
    text = "".join(f"{before}{{{{{name}}}}}" for before, name in parts)
    filled = "".join(before + values.get(name, f"{{{{{name}}}}}") for before, name in parts)
    assert fill_in(text, values) == filled
