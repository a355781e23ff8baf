"""Each example runs as it stands, without a network: it discovers, asks, loads, reads, and finishes its task."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

AGENTS = Path(__file__).parents[2] / "examples/agents"
NO_NETWORK = """\
import socket
def refuse(*arguments):
    raise AssertionError(f"an example went to the network: {arguments[1:]}")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
"""


@pytest.mark.parametrize("example", sorted(path.name for path in AGENTS.glob("*.py") if path.name != "offline.py"))
def test_an_example_runs_offline_and_finishes_its_task(example: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK)
    words = {key: value for key, value in os.environ.items() if "API_KEY" not in key}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(AGENTS / example)],
        cwd=tmp_path,
        env={**words, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    happened, _, letter = done.stdout.partition("\n\n")
    lines = happened.splitlines()
    assert [line.split(":")[0] for line in lines] == ["model", "person", "model", "model"]
    assert "'refunds' fits the task" in lines[0]
    assert "may 'refunds' of 'acme' be loaded" in lines[1]
    assert "templates/customer-reply.md" in lines[2]
    assert "We have refunded 20.00 EUR" in letter
    assert "{{" not in letter


def test_there_is_an_example_for_every_adapter() -> None:
    adapters = Path(__file__).parents[2] / "src/skillwire/adapters"
    wanted = {f"with_{path.name}" for path in adapters.glob("*.py") if path.name != "__init__.py"}
    assert {path.name for path in AGENTS.glob("*.py")} == {*wanted, "plain_loop.py", "offline.py"}
