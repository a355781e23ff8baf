"""docs/conform.md is correct: its commands work, and it has every rule and option."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from docs.options import check_options
from skillwire.conform.honeypot import LABELS
from skillwire.conform.rules import EXTENSION, HOST_RULES, INDEX, NATIVE, SEP_2076, SERVER_RULES
from starting import folder_for_path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/conform.md").read_text()
COMMANDS = [
    line
    for code in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for line in code.splitlines()
    if line.startswith("skillwire ")
]


@pytest.mark.parametrize(
    "command", [pytest.param(command, id=command.removeprefix("skillwire ")) for command in COMMANDS]
)
def test_a_command_runs_and_breaks_nothing(command: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{folder_for_path()}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
    }
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run(
        ["sh", "-ec", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
    for name in re.findall(r"[a-z]+\.(?:xml|json)", command):
        assert (tmp_path / name).stat().st_size > 1000


def test_every_rule_and_duty_is_described_as_it_is() -> None:
    rows = [
        f"| `{rule.id}` | {rule.title} | {rule.how} |" for rule in (*SERVER_RULES.values(), *HOST_RULES.values())
    ]
    assert [line for line in PAGE.splitlines() if re.match(r"\| `[A-Z]+\d?b?` \|", line)] == rows


def test_every_rule_belongs_to_a_dialect_or_to_all() -> None:
    assert [*SERVER_RULES] == [
        "BASE",
        "K1",
        *(rule for rule in SERVER_RULES if rule in (*EXTENSION, "R4")),
        *INDEX,
        *SEP_2076,
        *NATIVE,
    ]


def test_every_server_that_watches_is_described() -> None:
    assert re.findall(r"^\| `(watched[a-z-]*)` \|", PAGE, re.MULTILINE) == list(LABELS)


@pytest.mark.parametrize("kind", ["server", "host"])
def test_every_option_is_documented(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    check_options(["conform", kind], PAGE, capsys)
