"""What a model may say to the fallback's tools, and what it is told (X1)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rules import rule
from skillwire.errors import FormatError, NotFoundError
from skillwire.skill.entry import build_entry
from skillwire.wire.fallback import (
    LIST,
    LOAD,
    READ,
    SEARCH,
    TOOLS,
    loaded_text,
    read_arguments,
    refusal_text,
    tool_definition,
)


@rule("X1")
def test_the_smallest_and_the_largest_call_of_each_tool_is_taken() -> None:
    """What the schema allows is allowed."""
    for tool in TOOLS:
        schema = tool_definition(tool)["inputSchema"]
        everything = {name: 1 if part["type"] == "integer" else "x" for name, part in schema["properties"].items()}
        assert read_arguments(tool, everything) == everything
        needed = {name: everything[name] for name in schema.get("required", ())}
        assert read_arguments(tool, needed) == needed


@rule("X1", "B1")
@pytest.mark.parametrize(
    "limit",
    [0, 51, 1.5, math.inf, math.nan, False, "1"],
    ids=["zero", "too-many", "fraction", "infinity", "nan", "boolean", "text"],
)
def test_a_limit_that_is_no_small_whole_number_is_refused(limit: Any) -> None:
    with pytest.raises(FormatError) as caught:
        read_arguments(SEARCH, {"query": "x", "limit": limit})
    assert caught.value.reference == "arguments-invalid"
    assert "'limit'" in caught.value.message


@rule("X1")
def test_a_limit_is_a_whole_number_up_to_fifty_however_it_is_written() -> None:
    for limit in (1, 1.0, 50):
        assert read_arguments(SEARCH, {"query": "x", "limit": limit})["limit"] == limit


@rule("X1")
def test_half_a_character_is_refused() -> None:
    """It could not be sent on."""
    for tool, given in ((SEARCH, {"query": "\ud800"}), (LOAD, {"skill": "a\udfff"}), (LIST, {"cursor": "\ud800"})):
        with pytest.raises(FormatError) as caught:
            read_arguments(tool, given)
        assert caught.value.reference == "arguments-invalid"


@rule("X1")
def test_everything_that_is_wrong_is_said_at_once_and_briefly() -> None:
    """With what the tool takes."""
    with pytest.raises(FormatError) as caught:
        read_arguments(READ, {"file": 1, "skill": 2, **{f"more-{number}": 0 for number in range(1000)}})
    text = refusal_text(caught.value)
    assert "'file'" in text
    assert "'more-1'" in text
    assert "skill" in caught.value.hint
    assert "path" in caught.value.hint
    assert len(text) < 400


def test_a_refusal_is_whole_sentences_and_names_of_tools_stay_as_they_are() -> None:
    error = NotFoundError("file-unknown", "there is none", "read_skill_file lists them")
    assert refusal_text(error) == "There is none. read_skill_file lists them. [file-unknown]"


@rule("X2")
def test_a_loaded_skill_shows_at_most_a_hundred_of_its_files() -> None:
    """The rest can be listed."""
    files = [
        ("SKILL.md", "sha256:" + "0" * 64, 5),
        *((f"refs/{n:03}.md", "sha256:" + "0" * 64, 1) for n in range(150)),
    ]
    text = loaded_text("own", "many", build_entry("many", {"name": "many"}, files))
    assert "refs/099.md" in text
    assert "refs/100.md" not in text
    assert "50" in text
    assert "refs/" not in loaded_text("own", "one", build_entry("one", {"name": "one"}, files[:1]))
