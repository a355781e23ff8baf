"""V1, V2, V4: exactly the bytes and the fields of the entry are accepted; any other byte, size or field is not."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from property.budget import FEWER
from rules import rule
from skillwire.errors import FormatError, VerificationError
from skillwire.skill.entry import Resource, SkillEntry, digest_of
from skillwire.skill.verify import differing_fields, verify_file, verify_frontmatter

ROOT = "skill://acme/refunds"
FILE = f"{ROOT}/a.bin"
TEXT = st.text(st.characters(codec="utf-8", categories=("L", "N", "Zs", "P")), min_size=1, max_size=12)
SCALAR = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | TEXT
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=5
)
FIELDS = st.dictionaries(
    st.from_regex(r"[a-z]{1,8}", fullmatch=True).filter(lambda key: key not in ("name", "description")),
    VALUE,
    max_size=4,
).map(lambda fields: {"name": "refunds", "description": "Refund.", **fields})


def entry_for(data: bytes, uri: str = FILE, *, sized: bool = True) -> SkillEntry:
    resource = Resource(uri, digest_of(data), len(data) if sized else None)
    return SkillEntry(f"{ROOT}/SKILL.md", {"name": "refunds", "description": "Refund."}, (resource,))


def written(fields: dict[str, Any]) -> bytes:
    """A ``SKILL.md`` with these fields, each written as JSON, which is YAML too."""
    lines = "".join(
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in fields.items()
    )
    return f"---\n{lines}---\n".encode()


@rule("V1", "E2b")
@given(st.binary(max_size=200), st.booleans())
def test_the_bytes_of_the_entry_are_accepted(data: bytes, sized: bool) -> None:
    assert verify_file(entry_for(data, sized=sized), FILE, data).data == data


@rule("V1")
@given(st.binary(max_size=60), st.binary(max_size=60), st.booleans())
def test_no_other_bytes_are_accepted(data: bytes, other: bytes, sized: bool) -> None:
    assume(data != other)
    with pytest.raises(VerificationError) as caught:
        verify_file(entry_for(data, sized=sized), FILE, other)
    expected = "size-mismatch" if sized and len(data) != len(other) else "digest-mismatch"
    assert (caught.value.reference, caught.value.rule) == (expected, "V1")


@rule("V1")
@given(st.binary(min_size=1, max_size=200), st.data(), st.booleans())
def test_one_changed_byte_is_refused(data: bytes, draw: st.DataObject, sized: bool) -> None:
    place = draw.draw(st.integers(0, len(data) - 1))
    flip = draw.draw(st.integers(1, 255))
    changed = data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :]
    with pytest.raises(VerificationError) as caught:
        verify_file(entry_for(data, sized=sized), FILE, changed)
    assert caught.value.reference == "digest-mismatch"


@rule("V1")
@given(st.binary(max_size=200), st.integers(0, 400))
def test_another_size_in_the_entry_is_refused(data: bytes, size: int) -> None:
    """Even if the digest is right."""
    assume(size != len(data))
    entry = entry_for(data)
    lying = replace(entry, resources=(entry.files[0]._replace(size=size),))
    with pytest.raises(VerificationError) as caught:
        verify_file(lying, FILE, data)
    assert caught.value.reference == "size-mismatch"


@rule("V2", "U7")
@given(st.binary(max_size=40), st.text(max_size=30))
def test_a_file_that_is_not_in_the_entry_is_refused_whatever_its_name(data: bytes, name: str) -> None:
    """With one of ours, never with anything else."""
    assume(name != "a.bin")
    with pytest.raises((VerificationError, FormatError)) as caught:
        verify_file(entry_for(data), f"{ROOT}/{name}", data)
    assert caught.value.reference in ("file-unlisted", "uri-invalid")


@rule("V4")
@FEWER
@given(FIELDS)
def test_the_fields_of_the_entry_are_accepted(fields: dict[str, Any]) -> None:
    data = written(fields)
    entry = replace(entry_for(data, f"{ROOT}/SKILL.md"), frontmatter=fields)
    assert verify_frontmatter(entry, data).frontmatter.keys() == fields.keys()


@rule("V4")
@FEWER
@given(FIELDS, st.data())
def test_one_changed_missing_or_added_field_is_refused(fields: dict[str, Any], draw: st.DataObject) -> None:
    """And it is the one that is named."""
    data = written(fields)
    key = draw.draw(st.sampled_from([*fields, "added"]))
    value = draw.draw(VALUE)
    claimed = {name: item for name, item in fields.items() if name != key}
    if key not in fields or draw.draw(st.booleans()):
        assume(key not in fields or spelled(fields[key]) != spelled(value))
        claimed[key] = value
    entry = replace(entry_for(data, f"{ROOT}/SKILL.md"), frontmatter=claimed)
    with pytest.raises(VerificationError) as caught:
        verify_frontmatter(entry, data)
    assert (caught.value.reference, caught.value.rule) == ("frontmatter-mismatch", "V4")
    assert re.search(rf"\b{key}\b", caught.value.message)


def spelled(value: Any) -> str:
    """JSON as a reader of doubles would write it again, so that equal text means equal value."""
    match value:
        case bool() | None | str():
            return repr(value)
        case int() | float():
            return repr(float(value) + 0.0)
        case list():
            return f"[{','.join(map(spelled, value))}]"
        case _:
            return f"{{{','.join(f'{key!r}:{spelled(value[key])}' for key in sorted(value))}}}"


@rule("V4", "F4")
@given(VALUE, VALUE)
def test_values_are_the_same_exactly_when_json_writes_them_alike(one: Any, other: Any) -> None:
    assert (differing_fields({"x": one}, {"x": other}, "x") == []) is (spelled(one) == spelled(other))
    assert differing_fields({"x": one}, {"x": one}, "x") == []
