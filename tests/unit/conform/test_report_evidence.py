"""Evidence is short, and does not contain the secrets of a server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rules import rule
from skillwire.conform.report import Exchange, Redactor, shorten


def test_what_is_short_stays_as_it_is() -> None:
    value = {"a": [1, 2.5, None, True], "b": {"c": "text"}}
    assert shorten(value) == value


def test_long_text_and_long_lists_are_begun() -> None:
    value = shorten({"text": "x" * 1000, "list": list(range(100))})
    assert len(value["text"]) < 1000
    assert "1,000" in value["text"]
    assert value["list"][:4] == [0, 1, 2, 3]
    assert "96" in value["list"][4]
    assert len(value["list"]) == 5


@rule("B1")
def test_a_large_answer_becomes_small_evidence() -> None:
    """A hostile server's answer is not what fills a report."""
    deep: Any = "end"
    for _ in range(500):
        deep = {f"key-{number}": [deep] * 3 for number in range(2)}
    wide = {f"{'k' * 5000}{number}": "v" * 5000 for number in range(200)}
    shown = Redactor().evidence(
        Exchange({"method": "skills/list"}, {"result": {"wide": wide, "list": [wide] * 10}})
    )
    assert len(json.dumps(shown)) < 100_000
    assert shorten(deep) != deep


def test_secrets_are_taken_out_wherever_they_are() -> None:
    redact = Redactor(["Bearer s3cret-token", "abc"])
    value = redact({"Bearer s3cret-token": ["you sent s3cret-token", {"x": "Bearer s3cret-token"}], "y": "abc"})
    assert "s3cret" not in json.dumps(value)
    assert value["y"] == "abc", "so short a word would take half of a report with it"


@pytest.mark.parametrize(
    ("answer", "result", "code"),
    [
        pytest.param({"result": {"a": 1}}, {"a": 1}, None, id="result"),
        pytest.param({"error": {"code": -32602, "message": "no"}}, None, -32602, id="error"),
        pytest.param({"error": {"code": True}}, None, None, id="error-without-a-code"),
        pytest.param({"result": []}, None, None, id="result-is-a-list"),
        pytest.param("text", None, None, id="text"),
    ],
)
def test_an_answer_of_any_shape_can_be_asked(answer: Any, result: Any, code: int | None) -> None:
    exchange = Exchange({"method": "skills/list"}, answer)
    assert (exchange.result, exchange.code) == (result, code)
    assert exchange.summary
    assert code is None or str(code) in exchange.summary
