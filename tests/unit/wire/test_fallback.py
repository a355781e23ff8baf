"""What a model may say to the fallback's tools, and what it is told (X1)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rules import rule
from skillwire.errors import FormatError, NotFoundError
from skillwire.skill.entry import build_entry
from skillwire.wire.fallback import LIST, LOAD, READ, SEARCH, TOOLS, read_arguments, tool_definition
from skillwire.wire.fallback_text import loaded_text, refusal_text


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
@pytest.mark.parametrize("limit", [math.inf, -math.inf, math.nan, 10**400, -1, False, "1", [1], {}])
def test_a_limit_that_is_no_small_whole_number_is_refused(limit: Any) -> None:
    with pytest.raises(FormatError, match="'limit' is not a whole number from 1 to 50"):
        read_arguments(SEARCH, {"query": "x", "limit": limit})


@rule("X1")
def test_half_a_character_is_refused() -> None:
    """It could not be sent on."""
    for tool, given in ((SEARCH, {"query": "\ud800"}), (LOAD, {"skill": "a\udfff"}), (LIST, {"cursor": "\ud800"})):
        with pytest.raises(FormatError, match="is broken text"):
            read_arguments(tool, given)


@rule("X1")
def test_everything_that_is_wrong_is_said_at_once_and_briefly() -> None:
    """With what the tool takes."""
    with pytest.raises(FormatError) as caught:
        read_arguments(READ, {"file": 1, "skill": 2, **{f"more-{number}": 0 for number in range(1000)}})
    text = refusal_text(caught.value)
    assert "no argument 'file'" in text
    assert "It takes skill (text), path (text)." in text
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
    assert "- refs/099.md (1 byte)" in text
    assert "- refs/100.md" not in text
    assert "- and 50 more" in text
    assert "It has no other files." in loaded_text("own", "one", build_entry("one", {"name": "one"}, files[:1]))
