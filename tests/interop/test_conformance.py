"""The official conformance suite, with every check counted: it skips what it does not find and still succeeds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import pytest

from interop.cells import NASTY
from interop.running import (
    CONFORMANCE,
    CONFORMANCE_ERAS,
    CONFORMANCE_SERVER,
    EXAMPLES,
    FASTMCP_SERVER,
    Listening,
    fastmcp_command,
)
from rules import rule
from starting import python_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from interop.cells import Record
    from interop.running import Era, Node, Serve, Served

    Conform = Callable[[str, str, Era], "Outcome"]

CHECKS = {"enumeration": 32, "manifest": 6, "directory": 7}

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
        name = f"sep-2640-skills-{scenario}" if scenario in CHECKS else scenario
        words = ["server", "--url", url, "--scenario", name, *CONFORMANCE_ERAS[era]]
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


@rule("K1", "L1", "L3", "G1", "R1", "D1", "E1", "E2", "E3", "E4", "E6", "U3")
@pytest.mark.parametrize(
    ("scenario", "era"),
    [("enumeration", "modern"), ("enumeration", "legacy"), ("manifest", "modern"), ("directory", "legacy")],
)
def test_every_check_passes_on_the_examples(
    cell: Record, conform: Conform, serve: Serve, scenario: str, era: Era
) -> None:
    cell("server", "conformance", "http", era, "directories" if scenario == "directory" else "skills")
    assert conform(serve("examples").url, scenario, era) == success(scenario, era)


@rule("K1", "L1", "L3", "G1", "R1", "D1", "E2", "E3")
@pytest.mark.parametrize(
    ("scenario", "era"), [("enumeration", "legacy"), ("manifest", "modern"), ("directory", "legacy")]
)
def test_every_check_passes_on_skills_attached_to_a_fastmcp_server(
    conform: Conform, attached: Served, scenario: str, era: Era
) -> None:
    assert conform(attached.url, scenario, era) == success(scenario, era)


@rule("F4", "F5", "F6", "E4", "U4", "U7")
@pytest.mark.parametrize("scenario", CHECKS)
def test_whatever_honest_authors_write_passes(cell: Record, conform: Conform, serve: Serve, scenario: str) -> None:
    """E5: three skills share a name, which the suite warns of and the protocol allows."""
    cell("server", "conformance", "http", "modern", *NASTY)
    warnings = {"WARNING": {"sep-2640-names-should-be-unique"}} if scenario == "enumeration" else {}
    assert conform(serve("nasty").url, scenario, "modern") == success(scenario, "modern", **warnings)


@rule("L1", "L3", "F6", "E6")
@pytest.mark.parametrize(
    ("name", "feature", "scenario"),
    [
        ("wide", "pages", "enumeration"),
        ("bom", "bom", "enumeration"),
        ("limits", "limits", "manifest"),
    ],
)
def test_three_pages_a_mark_and_large_skills_pass(
    cell: Record, conform: Conform, serve: Serve, scenario: str, name: str, feature: str
) -> None:
    cell("server", "conformance", "http", "modern", feature)
    assert conform(serve(name).url, scenario, "modern") == success(scenario, "modern")


@rule("D1")
def test_a_first_skill_without_folders_fails_the_directory_scenario(
    cell: Record, conform: Conform, serve: Serve
) -> None:
    """The peer's way: it looks into the first listed skill only and wants to see a folder there."""
    notes = {"directories": "conformance-first-skill"}
    cell("server", "conformance", "http", "modern", "directories", notes=notes)
    expected = Outcome(1, 7, 6, {"FAILURE": {"sep-2640-directory-read-subdir-mimetype"}})
    assert conform(serve("kept").url, "directory", "modern") == expected


@rule("F5")
def test_conformance_loses_the_last_line_break_of_a_kept_block(
    cell: Record, conform: Conform, serve: Serve
) -> None:
    """The peer's fault: it cuts the frontmatter before its last line break, as the Inspector does."""
    cell("server", "conformance", "http", "modern", "kept", notes={"kept": "conformance-kept"})
    expected = Outcome(1, 32, 31, {"FAILURE": {"sep-2640-entry-frontmatter-identical"}})
    assert conform(serve("kept").url, "enumeration", "modern") == expected


@rule("K2")
def test_a_server_without_skills_succeeds_too_which_is_why_checks_are_counted(conform: Conform) -> None:
    """Nothing is asked of a server that declares nothing."""
    server = Listening(fastmcp_command(FASTMCP_SERVER, "", "http"))
    try:
        outcome = conform(server.url, "manifest", "modern")
    finally:
        server.end()
    assert outcome.code == 0
    assert outcome.succeeded <= 1  # that what it did say was well-formed
    assert {status: len(checks) for status, checks in outcome.others.items()} == {"SKIPPED": 5}


# What else of the suite applies to a server of skills, and how many checks each has.
BASE: dict[Era, dict[str, int]] = {
    "modern": {
        "resources-list": 2,
        "sep-2164-resource-not-found": 4,
        "dns-rebinding-protection": 2,
        "caching": 8,
        "http-header-validation": 14,
    },
    "legacy": {
        "server-initialize": 3,
        "server-session-lifecycle": 3,
        "ping": 2,
        "resources-list": 2,
        "dns-rebinding-protection": 2,
    },
}


@rule("R1", "K1")
@pytest.mark.parametrize(("era", "scenario"), [(era, name) for era, names in BASE.items() for name in names])
def test_the_base_protocol_passes(cell: Record, conform: Conform, serve: Serve, era: Era, scenario: str) -> None:
    """Resources, discovery, cache attributes, headers."""
    cell("server", "conformance", "http", era, "skills")
    total = BASE[era][scenario]
    assert conform(serve("examples").url, scenario, era) == Outcome(0, total, total, {})


# These call tools that only a server made for the suite has, or want a list to change while they look.
UNTESTABLE = {
    "FAILURE": {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
    },
    "WARNING": {"sep-2575-server-sends-prompts-list-changed-on-subscription"},
    "SKIPPED": {"sep-2575-server-sends-tools-list-changed-on-subscription"},
}


@rule("K1")
def test_discovery_passes_as_far_as_it_applies(cell: Record, conform: Conform, serve: Serve) -> None:
    """24 checks of the stateless era, and six that need tools of the suite's own."""
    cell("server", "conformance", "http", "modern", "skills")
    assert conform(serve("examples").url, "server-stateless", "modern") == Outcome(1, 30, 24, UNTESTABLE)


FIXTURES: dict[str, Era] = {
    "completion-complete": "legacy",
    "resources-read-text": "modern",
    "resources-read-binary": "legacy",
    "resources-templates-read": "modern",
}


@pytest.fixture(scope="session")
def furnished(listen: Callable[..., str]) -> str:
    """A server of the Python SDK with all that these scenarios ask for, to which skills are attached."""
    return listen(*python_command(), CONFORMANCE_SERVER, str(EXAMPLES))


@rule("R1", "T1")
@pytest.mark.parametrize(("scenario", "era"), FIXTURES.items())
def test_what_a_server_had_still_passes_with_skills_attached(
    cell: Record, conform: Conform, furnished: str, era: Era, scenario: str
) -> None:
    """Resources, templates and completion of its own."""
    cell("server", "conformance", "http", era, "skills")
    assert conform(furnished, scenario, era) == Outcome(0, 2, 2, {})
