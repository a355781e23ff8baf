"""The official conformance suite, with every check counted: it skips what it does not find and still succeeds."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from interop.running import FASTMCP_SERVER, Listening

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from interop.running import Era, Node, Serve, Served

    Conform = Callable[[str, str, Era], "Outcome"]

CONFORMANCE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
CHECKS = {"enumeration": 32, "manifest": 6, "directory": 7}
ERA_OPTIONS: dict[Era, list[str]] = {"modern": [], "legacy": ["--spec-version", "2025-11-25", "--force"]}

# In the handshake era results have no cache attributes, so there is nothing to check.
MODERN_ONLY = {"sep-2640-skills-list-cache-attributes", "sep-2640-skills-get-cache-attributes"}


class Outcome(NamedTuple):
    """The exit code and the checks that did not succeed, by status; how many there were, and how many did."""

    code: int
    total: int
    succeeded: int
    others: dict[str, set[str]]


@pytest.fixture
def conform(node: Node, tmp_path: Path) -> Conform:
    def run(url: str, scenario: str, era: Era) -> Outcome:
        words = ["server", "--url", url, "--scenario", f"sep-2640-skills-{scenario}", *ERA_OPTIONS[era]]
        done = node.run(CONFORMANCE, *words, "--output-dir", str(tmp_path))
        [report] = tmp_path.rglob("checks.json")
        checks = json.loads(report.read_text())
        others: dict[str, set[str]] = {}
        for check in checks:
            if check["status"] != "SUCCESS":
                others.setdefault(check["status"], set()).add(check["id"])
        succeeded = sum(check["status"] == "SUCCESS" for check in checks)
        return Outcome(done.returncode, len(checks), succeeded, others)

    return run


def success(scenario: str, era: Era, **others: set[str]) -> Outcome:
    """All checks of a scenario succeed, except for the ``others`` and for what an era does not have."""
    if scenario == "enumeration" and era == "legacy":
        others["SKIPPED"] = MODERN_ONLY
    total = CHECKS[scenario]
    return Outcome(0, total, total - sum(map(len, others.values())), others)


@pytest.mark.parametrize("scenario", CHECKS)
def test_every_check_passes_on_the_examples(conform: Conform, serve: Serve, scenario: str, era: Era) -> None:
    """K1, L1, L3, G1, R1, D1, E1, E2, E3, E4, E6, U3."""
    assert conform(serve("examples").url, scenario, era) == success(scenario, era)


@pytest.mark.parametrize("scenario", CHECKS)
def test_every_check_passes_on_skills_attached_to_a_fastmcp_server(
    conform: Conform, attached: Served, scenario: str, era: Era
) -> None:
    """K1, L1, L3, G1, R1, D1, E2, E3."""
    assert conform(attached.url, scenario, era) == success(scenario, era)


@pytest.mark.parametrize("scenario", CHECKS)
def test_whatever_honest_authors_write_passes(conform: Conform, serve: Serve, scenario: str, era: Era) -> None:
    """F4, F5, F6, E4, U4, U7; E5: three skills share a name, which the suite warns of and the protocol allows."""
    warnings = {"WARNING": {"sep-2640-names-should-be-unique"}} if scenario == "enumeration" else {}
    assert conform(serve("nasty").url, scenario, era) == success(scenario, era, **warnings)


@pytest.mark.parametrize("scenario", ["enumeration", "manifest"])
def test_three_pages_of_skills_pass(conform: Conform, serve: Serve, scenario: str) -> None:
    """L1, L3."""
    assert conform(serve("wide").url, scenario, "modern") == success(scenario, "modern")


def test_a_first_skill_without_folders_fails_the_directory_scenario(conform: Conform, serve: Serve) -> None:
    """D1, the peer's way: it looks into the first listed skill only and wants to see a folder there."""
    expected = Outcome(1, 7, 6, {"FAILURE": {"sep-2640-directory-read-subdir-mimetype"}})
    assert conform(serve("kept").url, "directory", "modern") == expected


def test_conformance_loses_the_last_line_break_of_a_kept_block(conform: Conform, serve: Serve) -> None:
    """F5, the peer's fault: it cuts the frontmatter before its last line break, as the Inspector does."""
    expected = Outcome(1, 32, 31, {"FAILURE": {"sep-2640-entry-frontmatter-identical"}})
    assert conform(serve("kept").url, "enumeration", "modern") == expected


def test_a_server_without_skills_succeeds_too_which_is_why_checks_are_counted(conform: Conform) -> None:
    """K2: nothing is asked of a server that declares nothing."""
    server = Listening([sys.executable, FASTMCP_SERVER, "", "http"])
    try:
        outcome = conform(server.url, "manifest", "modern")
    finally:
        server.end()
    assert outcome.code == 0
    assert outcome.succeeded <= 1  # that what it did say was well-formed
    assert {status: len(checks) for status, checks in outcome.others.items()} == {"SKIPPED": 5}
