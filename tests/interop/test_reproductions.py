"""Every defect that docs/explanation/interop.md says a peer has is shown by lines that a shell runs."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from interop.defects import SHOWN
from interop.explained import EXPLANATIONS
from interop.running import PEERS

if TYPE_CHECKING:
    from pathlib import Path

    from interop.running import Node


def test_every_defect_names_a_rule_and_is_shown() -> None:
    defects = {name for name, explained in EXPLANATIONS.items() if explained.kind == "defect"}
    assert defects == SHOWN.keys()
    assert all(EXPLANATIONS[name].rule for name in defects)


# Some lines show two defects: each is run once.
DISTINCT = {shown: name for name, shown in SHOWN.items()}


@pytest.mark.parametrize("name", list(DISTINCT.values()))
def test_a_defect_is_there(request: pytest.FixtureRequest, node: Node, tmp_path: Path, name: str) -> None:
    """If this fails, the peer may have fixed it: change the matrix."""
    if name.startswith("fast-agent"):
        request.getfixturevalue("fast_agent")
    path = f"{node.program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", SHOWN[name].code],
        cwd=PEERS,
        env={**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PATH": path, "NO_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
    )
    assert done.stdout.strip() == SHOWN[name].prints.strip(), done.stderr
