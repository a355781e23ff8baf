"""One entry into a JSON file: everything else stays as it was written, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillwire.errors import FormatError
from skillwire.install import jsonc

ENTRY = {"command": "a", "args": ["b"]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "servers": {\n    "new": 1\n  }\n}\n'),
        ("{}", '{\n  "servers": {\n    "new": 1\n  }\n}'),
        ('{"servers": {}}', '{"servers": {\n  "new": 1\n}}'),
        ('{"a": 1}', '{"a": 1, "servers": {"new": 1}}'),
        ('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"servers": {\n\t\t"new": 1\n\t}\n}\n'),
        (
            '{\n  "servers": {\n    "old": {} // mine\n    /* end */\n  }\n}',
            '{\n  "servers": {\n    "old": {}, // mine\n    /* end */\n    "new": 1\n  }\n}',
        ),
        (
            '{\n  "servers": {\n    "old": {}, // mine\n  },\n}',
            '{\n  "servers": {\n    "old": {}, // mine\n    "new": 1,\n  },\n}',
        ),
        ('{\r\n  "servers": {\r\n  }\r\n}', '{\r\n  "servers": {\r\n    "new": 1\r\n  }\r\n}'),
        ('// top\n{"servers": { // none yet\n}}', '// top\n{"servers": { // none yet\n  "new": 1\n}}'),
        ('\ufeff{"x": "// no comment, {"}', '\ufeff{"x": "// no comment, {", "servers": {"new": 1}}'),
    ],
)  # fmt: skip
def test_the_entry_is_put_in_the_style_of_its_surroundings(before: str, after: str) -> None:
    assert jsonc.insert(before, ["servers"], "new", 1) == after
    assert jsonc.lookup(after, ["servers"], "new") == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"s": {"new": 1}}', '{"s": {}}'),
        ('{"s": {"a": 1, "new": 1}}', '{"s": {"a": 1}}'),
        ('{"s": {"new": 1, "b": 2}}', '{"s": { "b": 2}}'),
        ('{\n"s": {\n  "new": {\n  },\n  // of b\n  "b": 2\n}\n}', '{\n"s": {\n  // of b\n  "b": 2\n}\n}'),
        ('{\n"s": {\n  "a": 1, // of a\n  "new": {\n  }\n}\n}', '{\n"s": {\n  "a": 1 // of a\n}\n}'),
        ('{\n  "s": {\n    "a": 1,\n    "new": {},\n  },\n}', '{\n  "s": {\n    "a": 1,\n  },\n}'),
        ('{"s": {}}', '{"s": {}}'),
        ("{}", "{}"),
    ],
)  # fmt: skip
def test_the_entry_is_taken_out_and_comments_of_others_stay(before: str, after: str) -> None:
    assert jsonc.remove(before, ["s"], "new") == after


@pytest.mark.parametrize(
    "text",
    [
        "{", "[1", '{"a"}', '{"a" 1}', '{"a": }', '{"a": 1 "b": 2}', "{} {}", "{'a': 1}", '{"a": 01}', "nul",
        '{"a": "\n"}', '{"a": "\\x"}', "[" * 1000, "/* never ends {}", '{"s": 1, "s": 2}', '{"s": []}', "[]",
        '{"s": {"new": 2}}',
    ],
)  # fmt: skip
def test_what_is_not_such_a_file_is_refused(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        jsonc.insert(text, ["s"], "new", ENTRY)
    assert caught.value.reference in ("config-invalid", "config-taken")
    assert caught.value.hint


def test_an_error_says_which_line() -> None:
    with pytest.raises(FormatError) as caught:
        jsonc.parse('{\n  "a": 1\n  "b": 2\n}')
    assert caught.value.line == 3


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(
    st.dictionaries(st.text(), VALUES, max_size=4),
    st.dictionaries(st.text(), VALUES, max_size=4) | st.none(),
    st.text(),
    st.sampled_from([None, 2, "\t"]),
)
def test_any_json_gets_exactly_one_entry_more_and_loses_exactly_that(
    outer: dict[str, Any], inner: dict[str, Any] | None, key: str, indent: Any
) -> None:
    outer.pop("s", None)
    if inner is not None:
        inner.pop(key, None)
        outer["s"] = inner
    text = json.dumps(outer, indent=indent, ensure_ascii=False)
    added = jsonc.insert(text, ["s"], key, ENTRY)
    assert json.loads(added) == {**outer, "s": {**(inner or {}), key: ENTRY}}
    assert jsonc.parse(text).value == outer
    removed = json.loads(jsonc.remove(added, ["s"], key))
    assert removed == {**outer, "s": inner or {}}
