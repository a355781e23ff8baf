"""The official client scenarios: a server that lies about a skill watches our client, and then our host."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

from interop.cells import SCENARIOS
from interop.running import CONFORMANCE, CONFORMANCE_ERAS, HERE
from rules import rule
from starting import python_command

if TYPE_CHECKING:
    from pathlib import Path

    from interop.cells import Record, Role
    from interop.running import Era, Node

# What our program says when it ends: why it stopped, or nothing.
REASONS = {
    "no-prefetch": "",
    "verify-digest": "digest-mismatch",
    "verify-size": "size-mismatch",
    "verify-frontmatter": "frontmatter-mismatch",
}

# The client and the host in turn: what was verified does not depend on the era.
ROLES: tuple[Role, ...] = ("client", "host")
ERAS: tuple[Era, ...] = ("modern", "legacy")
WATCHED = [
    (role, ERAS[(at + turn) % 2], scenario)
    for turn, role in enumerate(ROLES)
    for at, scenario in enumerate(SCENARIOS)
]


@rule("V1", "V4", "V5")
@pytest.mark.parametrize(("role", "era", "scenario"), WATCHED)
def test_a_lying_server_is_not_believed(
    cell: Record, node: Node, tmp_path: Path, role: Role, era: Era, scenario: str
) -> None:
    """The suite's check succeeds, and we stopped for the reason that it is about."""
    cell(role, "conformance", "http", era, scenario)
    program = shlex.join([*python_command(), str(HERE / "scenario_client.py"), role, era])
    words = ["--command", program, "--scenario", f"sep-2640-client-{scenario}", *CONFORMANCE_ERAS[era]]
    done = node.run(CONFORMANCE, "client", *words, "--output-dir", str(tmp_path))
    [report] = tmp_path.rglob("checks.json")
    assert [check["status"] for check in json.loads(report.read_text())] == ["SUCCESS"], done.stdout
    [said] = tmp_path.rglob("stderr.txt")
    assert said.read_text().strip() == REASONS[scenario]
