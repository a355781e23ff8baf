"""JSON with comments: strings are respected, and an entry is put in with everything else byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillwire.client import jsonc
from skillwire.errors import FormatError

ENTRY = {"command": "a", "args": ["b"]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", '{\n  "servers": {\n    "new": 1\n  }\n}\n', id="no-file"),
        pytest.param("{}", '{\n  "servers": {\n    "new": 1\n  }\n}', id="empty-object"),
        pytest.param('{"servers": {}}', '{"servers": {\n  "new": 1\n}}', id="empty-table"),
        pytest.param('{"a": 1}', '{"a": 1, "servers": {"new": 1}}', id="one-line"),
        pytest.param('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"servers": {\n\t\t"new": 1\n\t}\n}\n', id="tabs"),
        pytest.param(
            '{\n  "servers": {\n    "old": {} // mine\n    /* end */\n  }\n}',
            '{\n  "servers": {\n    "old": {}, // mine\n    /* end */\n    "new": 1\n  }\n}',
            id="comments",
        ),
        pytest.param(
            '{\n  "servers": {\n    "old": {}, // mine\n  },\n}',
            '{\n  "servers": {\n    "old": {}, // mine\n    "new": 1,\n  },\n}',
            id="trailing-commas",
        ),
        pytest.param(
            '{\r\n  "servers": {\r\n  }\r\n}', '{\r\n  "servers": {\r\n    "new": 1\r\n  }\r\n}', id="crlf"
        ),
        pytest.param(
            '// top\n{"servers": { // none yet\n}}', '// top\n{"servers": { // none yet\n  "new": 1\n}}',
            id="comment-in-an-empty-table",
        ),
        pytest.param(
            '\ufeff{"x": "// no comment, {"}', '\ufeff{"x": "// no comment, {", "servers": {"new": 1}}',
            id="byte-order-mark",
        ),
    ],
)  # fmt: skip
def test_the_entry_is_put_in_the_style_of_its_surroundings(before: str, after: str) -> None:
    assert jsonc.insert(before, ["servers"], "new", 1) == after
    assert jsonc.parse(after)["servers"]["new"] == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param('{"s": {"new": 1}}', '{"s": {}}', id="the-only-one"),
        pytest.param('{"s": {"a": 1, "new": 1}}', '{"s": {"a": 1}}', id="the-last"),
        pytest.param('{"s": {"new": 1, "b": 2}}', '{"s": { "b": 2}}', id="the-first"),
        pytest.param(
            '{\n"s": {\n  "new": {\n  },\n  // of b\n  "b": 2\n}\n}', '{\n"s": {\n  // of b\n  "b": 2\n}\n}',
            id="before-a-comment",
        ),
        pytest.param(
            '{\n"s": {\n  "a": 1, // of a\n  "new": {\n  }\n}\n}', '{\n"s": {\n  "a": 1 // of a\n}\n}',
            id="after-a-comment",
        ),
        pytest.param(
            '{\n  "s": {\n    "a": 1,\n    "new": {},\n  },\n}', '{\n  "s": {\n    "a": 1,\n  },\n}',
            id="trailing-comma",
        ),
        pytest.param('{"s": {}}', '{"s": {}}', id="not-there"),
        pytest.param("{}", "{}", id="no-table"),
    ],
)  # fmt: skip
def test_the_entry_is_taken_out_and_comments_of_others_stay(before: str, after: str) -> None:
    assert jsonc.remove(before, ["s"], "new") == after


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        pytest.param("{", "config-invalid", id="not-closed"),
        pytest.param("[1", "config-invalid", id="list-not-closed"),
        pytest.param('{"a" 1}', "config-invalid", id="no-colon"),
        pytest.param('{"a": }', "config-invalid", id="no-value"),
        pytest.param('{"a": 1 "b": 2}', "config-invalid", id="no-comma"),
        pytest.param("{} {}", "config-invalid", id="two-values"),
        pytest.param("{'a': 1}", "config-invalid", id="single-quotes"),
        pytest.param('{"a": 01}', "config-invalid", id="number"),
        pytest.param('{"a": "\n"}', "config-invalid", id="line-end-in-text"),
        pytest.param('{"a": "\\x"}', "config-invalid", id="escape"),
        pytest.param("[" * 1000, "config-invalid", id="deep"),
        pytest.param("/* never ends {}", "config-invalid", id="comment-not-closed"),
        pytest.param('{"s": 1, "s": 2}', "config-invalid", id="a-key-twice"),
        pytest.param('{"s": []}', "config-invalid", id="table-is-a-list"),
        pytest.param("[]", "config-invalid", id="list"),
        pytest.param('{"s": {"new": 2}}', "config-taken", id="taken"),
    ],
)
def test_an_invalid_file_is_refused(text: str, reference: str) -> None:
    with pytest.raises(FormatError) as caught:
        jsonc.insert(text, ["s"], "new", ENTRY)
    assert caught.value.reference == reference
    assert caught.value.hint


def test_an_error_has_its_line() -> None:
    with pytest.raises(FormatError) as caught:
        jsonc.parse('{\n  "a": 1\n  "b": 2\n}')
    assert caught.value.line == 3


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=settings().max_examples // 2)  # half of the profile's
@given(
    st.dictionaries(st.text(), VALUES, max_size=3),
    st.dictionaries(st.text(), VALUES, max_size=3) | st.none(),
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
    assert jsonc.parse(text) == outer
    removed = json.loads(jsonc.remove(added, ["s"], key))
    assert removed == {**outer, "s": inner or {}}
