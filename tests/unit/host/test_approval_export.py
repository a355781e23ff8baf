"""Exports of approvals: read as they were written, and refused if anything in them is invalid (A1)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rules import rule
from skillwire.errors import FormatError
from skillwire.host.approval_export import approvals_as_document, parse_approvals
from skillwire.skill.approval import Approval, make_contents

ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64
REFUNDS = "skill://acme/refunds/SKILL.md"
CONTENTS = make_contents(REFUNDS, {REFUNDS: ONE}, TWO)
APPROVAL = Approval("acme", REFUNDS, CONTENTS, "ada", 1_000_000.25, frozenset({"Read"}))


def refusal(data: bytes) -> FormatError:
    with pytest.raises(FormatError) as caught:
        parse_approvals(data)
    return caught.value


@rule("A1")
def test_an_export_is_read_as_it_was_written() -> None:
    assert list(parse_approvals(json.dumps(approvals_as_document([APPROVAL])).encode())) == [APPROVAL]


@rule("A1")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"fingerprint": TWO}, id="fingerprint"),
        pytest.param({"uri": "skill://other/SKILL.md"}, id="other-skill"),
        pytest.param({"uri": "skill://"}, id="invalid-uri"),
        pytest.param({"contents": []}, id="no-contents"),
        pytest.param({"contents": "all"}, id="contents-are-text"),
        pytest.param({"contents": [{"uri": REFUNDS, "digest": "md5:1"}]}, id="digest"),
        pytest.param(
            {"contents": [{"uri": REFUNDS, "digest": ONE}, {"uri": "skill://else/x", "digest": ONE}]},
            id="file-outside",
        ),
        pytest.param(
            {"contents": [{"uri": REFUNDS, "digest": ONE}, {"uri": REFUNDS, "digest": TWO}]}, id="file-twice"
        ),
        pytest.param({"frontmatter": ONE}, id="other-frontmatter"),
        pytest.param({"frontmatter": None}, id="no-frontmatter"),
        pytest.param({"grants": "execute"}, id="grants-are-text"),
        pytest.param({"grants": [["execute"]]}, id="grant-is-a-list"),
        pytest.param({"origin": ""}, id="no-origin"),
        pytest.param({"by": "a\x1b[2J"}, id="by"),
        pytest.param({"at": 1e300}, id="time"),
    ],
)
def test_an_invalid_approval_is_refused(change: dict[str, Any]) -> None:
    document = approvals_as_document([APPROVAL])
    document["approvals"][0] |= change
    error = refusal(json.dumps(document).encode())
    assert (error.reference, error.rule) == ("export-invalid", "A1")


@pytest.mark.parametrize(
    "data",
    [b"[", b"[]", b'{"version": 1, "approvals": []}', b'{"version": 2}'],
    ids=["not-json", "list", "version", "no-approvals"],
)
def test_a_file_that_is_not_an_export_is_refused(data: bytes) -> None:
    assert refusal(data).reference == "export-invalid"
