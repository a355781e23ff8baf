"""``skillwire conform`` as people and pipelines use it: words, files, exit codes, and what is never shown."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from e2e.installing import serving
from e2e.talking import Talking
from rules import rule
from skillwire.cli.main import run
from starting import python_command, skillwire_command
from trees import small_tree, write_tree

HERE = Path(__file__).parent


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", small_tree())


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the person who runs the tests, and our test modules for the servers we start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_a_good_server_passes_and_leaves_a_report(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conform", "server", "--json", "--junit", "report.xml", "--", *serving(root)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["counts"]["fail"] == 0
    assert document["counts"]["pass"] > 40
    [proof] = [one["proof"] for one in document["sections"][0]["results"] if one["rule"] == "R2"]
    assert proof["request"]["method"] == "resources/read"
    assert proof["answer"]["result"]["contents"]
    suites = ElementTree.fromstring(Path("report.xml").read_text())
    assert [suite.get("name") for suite in suites] == ["server modern", "server legacy"]
    assert {suite.get("failures") for suite in suites} == {"0"}


def lying_config(tmp_path: Path) -> Path:
    command, *words = [*python_command(), str(HERE / "lying_server.py")]
    entry = {
        "command": command,
        "args": words,
        "env": {"PYTHONPATH": str(HERE.parent), "TOKEN": "s3cret-token"},
    }
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"lying": entry}}))
    return path


@rule("R2")
def test_a_lying_server_fails_with_the_evidence_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = lying_config(tmp_path)
    words = ["--config", str(config), "--era", "modern", "--junit", "report.xml"]
    assert run(["conform", "server", "lying", *words]) == 1
    table, _, failures = capsys.readouterr().out.partition("\n\n")
    assert "R2\tFAILED\t" in table
    assert failures.startswith("R2 ")
    assert '"method": "resources/read"' in failures
    [failure] = ElementTree.fromstring(Path("report.xml").read_text()).iter("failure")
    assert failure.get("type") == "R2"


def test_json_on_stdout_is_alone_there(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conform", "server", "--json", "--rule", "K1", "--", *serving(root)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [[one["rule"] for one in section["results"]] for section in document["sections"]] == [["K1"], ["K1"]]


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        pytest.param([], "target-missing", id="nothing"),
        pytest.param(["one", "two"], "target-several", id="two"),
        pytest.param(["http://127.0.0.1:9/mcp"], "not-mcp", id="no-server"),
        pytest.param(["nowhere"], "server-unknown", id="no-label"),
        pytest.param(["--timeout", "0", "http://127.0.0.1:9/mcp"], "not-mcp", id="no-time"),
        pytest.param(["--rule", "Q1", "http://127.0.0.1:9/mcp"], "rule-unknown", id="no-rule"),
        pytest.param(["--"], "command-missing", id="no-command"),
    ],
)
def test_what_cannot_be_looked_at_is_an_error(
    words: list[str], reference: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["conform", "server", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"[{reference}" in err


@pytest.mark.parametrize(("kind", "first"), [("server", "BASE"), ("host", "K2")])
def test_the_rules_are_listed(kind: str, first: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conform", kind, "--list-rules"]) == 0
    assert capsys.readouterr().out.startswith(f"{first} ")
    assert run(["conform", kind, "--list-rules", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["rule"] == first


def conform(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*skillwire_command(), "conform", *words], capture_output=True, encoding="utf-8", timeout=110
    )


@rule("V5")
def test_a_host_is_watched_and_its_own_words_do_not_mix_with_the_report() -> None:
    host = [*skillwire_command(), "list", "{url}"]
    done = conform("host", "--json", "--", *host)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["counts"]["pass"] == 4
    assert "guide" in done.stderr


def test_a_broken_duty_ends_with_one_and_says_how_to_see_the_others() -> None:
    host = [*skillwire_command(), "read", "{url}", "skill://spare/SKILL.md"]
    done = conform("host", "--", *host)
    assert done.returncode == 1, done.stderr
    assert "V5\tBROKEN\t" in done.stdout
    assert "V2 " in done.stderr
    assert "guide" in done.stderr


def test_a_host_may_have_dashes_of_its_own() -> None:
    code = "import sys; print(sys.argv[1:])"
    done = conform("host", "--", sys.executable, "-c", code, "a", "--", "b", "--", "{config}")
    assert done.returncode == 2
    assert "['a', '--', 'b', '--', '/" in done.stderr
    assert "[host-silent]" in done.stderr


def test_without_a_command_every_client_is_watched_until_an_interrupt() -> None:
    with Talking("conform", "host", "--json", "--timeout", "100") as watching:
        url = watching.wait_for_talk(r"SKILLWIRE_URL=(\S+)\n")[1]
        subprocess.run([*skillwire_command(), "list", url], check=True, capture_output=True, timeout=60)
        watching.popen.send_signal(signal.SIGINT)
        code, out = watching.wait()
    assert code == 0, watching.talk
    assert json.loads(out)["counts"]["pass"] > 0
