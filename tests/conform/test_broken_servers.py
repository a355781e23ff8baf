"""A server with one fault breaks the rule about it, and no other."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from conform.changing import drop, entry_of, error, frontmatter, instead, result_of, set_field, unknown
from conform.faults import FAULTS
from conform.spoiling import report_of, rules
from rules import rule
from skillwire.conform.report import Verdict
from skillwire.conform.rules import SERVER_RULES

if TYPE_CHECKING:
    from conform.spoiling import Spoil

pytestmark = pytest.mark.anyio

EMPTY = {"uri": "skill://traps/empty", "name": "empty", "mimeType": "inode/directory"}
HIDDEN = {"uri": "skill://traps/empty/hidden.md", "name": "hidden.md", "mimeType": "text/markdown"}

# Rules whose faults are shown elsewhere (warnings, other dialects, whole servers), or that nobody can break here.
ELSEWHERE = {"E6", "F1", "F2", "F3", "S1", "P1", "P2", "P3", "P4", "M1", "M2"}


def test_every_rule_has_a_fault() -> None:
    assert {rule for _, rule, _ in FAULTS} == set(SERVER_RULES) - ELSEWHERE


@pytest.mark.parametrize(
    ("rule", "spoil"), [pytest.param(rule, spoil, id=f"{rule}: {name}") for name, rule, spoil in FAULTS]
)
async def test_a_fault_breaks_its_rule_alone(rule: str, spoil: Spoil) -> None:
    report = await report_of(spoil)
    assert rules(report) == {rule}
    [result] = [result for result in report.sections[0].results if result.rule.id == rule]
    assert result.findings[0].message
    assert report.has_failed()


async def test_cache_fields_in_the_handshake_era_break_the_base_protocol() -> None:
    report = await report_of(result_of("skills/get", set_field(ttlMs=0)), eras=("legacy",))
    assert rules(report) == {"BASE"}


async def test_the_older_code_for_an_unknown_resource_is_right_in_the_older_era_alone() -> None:
    """The specification of 2025-11-25 says -32002."""
    spoil = instead(unknown("resources/read"), error(-32002))
    assert rules(await report_of(spoil, eras=("legacy",))) == set()
    assert rules(await report_of(spoil, eras=("modern",))) == {"BASE"}


@rule("E2", "F3", "R3")
@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        pytest.param("E2", entry_of(set_field(resources="dynamic")), id="E2-dynamic-and-stable"),
        pytest.param("F3", entry_of(frontmatter(license=7)), id="F3-license"),
        pytest.param(
            "R3",
            result_of(
                "resources/list",
                lambda result: [drop("annotations")(item) for item in result["resources"]] and None,
            ),
            id="R3-annotations",
        ),
    ],
)
async def test_what_is_allowed_and_not_nice_is_a_warning(rule: str, spoil: Spoil) -> None:
    """And a failure only for those who want it so."""
    report = await report_of(spoil, rules=(rule,))
    assert rules(report, Verdict.WARNING) == {rule}
    assert not report.has_failed()
    assert report.has_failed(strict=True)


@rule("E2")
@pytest.mark.parametrize(
    "changing",
    ["skill://traps/SKILL.md", "skill://traps/crlf.txt", "skill://traps"],
    ids=["main", "other", "folder"],
)
async def test_a_dynamic_skill_of_which_something_changes_is_no_warning(changing: str) -> None:
    """Every file that its directories show is compared, and which there are."""
    make_dynamic, times = entry_of(set_field(resources="dynamic")), count()

    def spoil(asked: str, params: dict[str, Any], message: dict[str, Any]) -> Any:
        result = message.get("result", {})
        if params.get("uri") == changing and asked == "resources/read":
            result["contents"][0]["text"] += f"\n{next(times)}\n"
        elif params.get("uri") == changing and asked == "resources/directory/read":
            uri = f"skill://traps/{next(times)}.md"
            result["resources"].append({"uri": uri, "name": uri[14:], "mimeType": "text/markdown"})
        return make_dynamic(asked, params, message)

    assert rules(await report_of(spoil, rules=("E2",)), Verdict.WARNING) == set()


@rule("D1")
@pytest.mark.parametrize(
    ("inside", "warned"), [pytest.param([], set(), id="empty"), pytest.param([HIDDEN], {"D1"}, id="with a file")]
)
async def test_an_empty_directory_is_fine_and_one_with_unlisted_files_is_a_warning(
    inside: list[dict[str, str]], warned: set[str]
) -> None:
    def spoil(asked: str, params: dict[str, Any], message: dict[str, Any]) -> Any:
        result = message.get("result", {})
        is_last = "resources" in result and "nextCursor" not in result
        if asked == "resources/directory/read" and params["uri"] == "skill://traps" and is_last:
            result["resources"].append(EMPTY)
        if asked == "resources/directory/read" and params["uri"] == EMPTY["uri"]:
            return instead(lambda *_: True, {"result": {"resources": inside}})(asked, params, message)
        return message

    report = await report_of(spoil, rules=("D1",))
    assert rules(report) == set()
    assert rules(report, Verdict.WARNING) == warned
