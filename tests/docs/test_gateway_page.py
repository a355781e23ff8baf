"""docs/gateway.md is true: its files parse, its commands start a gateway, every option stands in it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from docs.options import check_options
from e2e.talking import Talking
from rules import rule
from skillwire.gateway import upstream as provenance
from skillwire.gateway.config import UpstreamPolicy, parse_policy
from starting import folder_for_path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/gateway.md").read_text()
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = FENCE.findall(PAGE)
COMMANDS = [line for language, code in BLOCKS if language == "sh" for line in code.splitlines()]


def block(language: str) -> str:
    [code] = [code for tongue, code in BLOCKS if tongue == language]
    return code


@pytest.mark.parametrize(
    "command", [pytest.param(command, id=command.removeprefix("skillwire ")) for command in COMMANDS]
)
def test_a_command_starts_a_gateway(command: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/skills", tmp_path / "skills")
    nowhere = re.sub(r"https://\w+\.example\.com", "http://127.0.0.1:1", block("json"))
    (tmp_path / "servers.json").write_text(nowhere)
    (tmp_path / "gateway.toml").write_text(block("toml"))
    name, *words = command.replace("--http 8000", "--http 0").split()
    assert name == "skillwire"
    environment = {
        **os.environ,
        "PATH": f"{folder_for_path()}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "ACME_TOKEN": "sk-123",
    }
    with Talking(*words, folder=tmp_path, env=environment) as process:
        process.wait_for_talk("acme: 0 ")
        if "./skills" not in words and "--policy" not in words:
            process.wait_for_talk(r"serving 7 ")
        assert process.end() == 0
        assert "sk-123" not in process.talk


def test_every_option_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    check_options(["gateway"], PAGE, capsys)


def test_the_policy_shows_every_key() -> None:
    parse_policy(block("toml"))
    for name in UpstreamPolicy.__dataclass_fields__:
        assert re.search(rf"^{name.replace('_', '-')} = ", block("toml"), re.MULTILINE), name


@rule("R4")
def test_everything_that_is_said_about_a_skill_is_named() -> None:
    names = ("ORIGIN", "UPSTREAM_URI", "DIALECT", "STALE_SINCE", "NOT_PROMISED", "SNAPSHOT")
    keys = [getattr(provenance, name) for name in names]

    for key in keys:
        prefix, _, name = key.partition("/")
        assert f"`{prefix}/`" in PAGE
        assert f"`{name}`" in PAGE, name
