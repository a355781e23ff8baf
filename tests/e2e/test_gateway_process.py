"""``skillwire gateway`` as a process: what it says, what it serves, how it ends."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from e2e.installing import serving
from e2e.talking import PATIENCE, gateway
from rules import rule
from skillwire import connect
from skillwire.cli.main import run
from skillwire.errors import NotFoundError
from starting import python_command, skillwire_command
from trees import SMALL_TREE_SKILLS, skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from skillwire.types import SkillsClient


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of skills, and a file with a server of it and one that is nowhere."""
    write_tree(tmp_path / "tree", small_tree())
    command, *words = serving(Path("tree"))
    entry = {"command": command, "args": words, "cwd": str(tmp_path)}
    servers = {"acme": entry, "gone": {"url": "http://127.0.0.1:1/mcp"}}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    return tmp_path


@rule("O1", "L2")
@pytest.mark.anyio
async def test_over_http_it_serves_every_upstream_and_says_who_is_away(folder: Path) -> None:
    with gateway(folder, "--config", "servers.json", "tree", "--http", "0") as process:
        url = process.wait_for_talk(r"listening at (\S+) ")[1]
        for label, count in (("acme", 6), ("gone", 0), ("tree", 6)):
            process.wait_for_talk(rf"{label}: {count} ")
        async with connect(url) as client:
            found = [entry.path async for entry in client.list_skills()]
            assert found == [f"{label}/{path}" for label in ("acme", "tree") for path in SMALL_TREE_SKILLS]
            file = await client.read_skill_uri("skill://acme/acme/release/notes.md")
            assert file.data == b"notes\n"
        assert process.end() == 0


def test_on_stdio_a_signal_ends_it_with_its_upstreams(folder: Path) -> None:
    """No process of an upstream stays, not even one that ignores the end of its input."""
    (folder / "upstream.sh").write_text('echo $$ > pid; "$@"; while :; do sleep 600; done\n')
    entry = {"command": "sh", "args": ["upstream.sh", *serving(Path("tree"))], "cwd": str(folder)}
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"acme": entry}}))
    with gateway(folder, "--config", "servers.json") as process:
        process.wait_for_talk("acme: 6 ")
        assert str(folder / "servers.json") in process.talk
        child = int((folder / "pid").read_text())
        try:
            os.kill(child, 0)
            process.popen.send_signal(signal.SIGTERM)
            assert process.popen.wait(PATIENCE) == 0  # its stdin stays open
            deadline = time.monotonic() + PATIENCE
            while is_alive(child):
                assert time.monotonic() < deadline
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)


async def read_for_ever(client: SkillsClient, uri: str) -> None:
    while True:
        await client.read_skill(await client.get_skill(uri))


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_on_stdio_it_ends_when_its_host_does(folder: Path) -> None:
    with gateway(folder, "--config", "servers.json") as process:
        process.wait_for_talk("acme: 6 ")
        assert process.wait()[0] == 0


def test_on_stdio_signals_are_handled_until_the_process_ends(folder: Path) -> None:
    """Hosts close its stdin, and send a signal if that takes long: while it ends, that must not kill it."""
    program = (
        "import os, signal, sys\n"
        "from skillwire.cli.main import run\n"
        "code = run(['gateway', '--config', 'servers.json', '--state', 'state'])\n"
        "for number in (signal.SIGTERM, signal.SIGINT):\n"
        "    os.kill(os.getpid(), number)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [*python_command(), "-c", program],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"Traceback" not in done.stderr


@rule("A1", "A2")
@pytest.mark.anyio
async def test_what_waits_is_approved_with_the_commands_that_are_printed(folder: Path) -> None:
    """From refused to served to refused, while the gateway runs."""
    (folder / "gateway.toml").write_text(
        'mode = "admit"\nservers = "servers.json"\n[upstream.acme]\nskills = ["flat"]\n'
    )
    with gateway(folder, "--policy", "gateway.toml", "--http", "0") as process:
        url = process.wait_for_talk(r"listening at (\S+) ")[1]
        review = process.wait_for_talk(r"skillwire (approvals show .*skill://flat/.*)\n")[1]
        async with connect(url) as client:
            assert [entry async for entry in client.list_skills()] == []
            reviewed = await anyio.run_process([*skillwire_command(), *shlex.split(review)], cwd=folder)
            approve = reviewed.stderr.decode().partition("skillwire approve")[2].splitlines()[0]
            await anyio.run_process([*skillwire_command(), "approve", *shlex.split(approve)], cwd=folder)
            entry = await client.get_skill("skill://acme/flat/SKILL.md")
            assert (await client.read_skill(entry)).text.encode() == small_tree()["flat/SKILL.md"]
            write_tree(folder / "tree", {"flat/SKILL.md": skill_md("flat", "Changed.")})
            with pytest.raises(NotFoundError):
                await read_for_ever(client, entry.uri)
            process.wait_for_talk(r"(?s)(skillwire approvals show .*skill://flat/.*){2}")
        log = await anyio.run_process([*skillwire_command(), "log", "--state", "state", "--json"], cwd=folder)
        assert b'"revoked"' in log.stdout


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        pytest.param([], "nothing-to-serve", id="nothing"),
        pytest.param(["--config", "nowhere.json"], "config-unreadable", id="no-config"),
        pytest.param(["--config", "twice.json"], "label-duplicate", id="label-twice"),
        pytest.param(["--policy", "nowhere.toml"], "policy-unreadable", id="no-policy"),
        pytest.param(["--policy", "bad.toml"], "policy-invalid", id="bad-policy"),
        pytest.param(["--config", "servers.json", "nowhere"], "folder-unknown", id="no-folder"),
        pytest.param(["--config", "servers.json", "--access", "x"], "option-needs-http", id="access-on-stdio"),
        pytest.param(
            ["--config", "servers.json", "--instructions", "nowhere.md"],
            "instructions-unreadable",
            id="no-instructions",
        ),
        pytest.param(["--config", "servers.json", "--state", "/proc/nowhere"], "store-unusable", id="no-state"),
    ],
)
def test_a_mistake_ends_it(
    folder: Path,
    words: list[str],
    reference: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    (folder / "bad.toml").write_text("mode = 1")
    (folder / "twice.json").write_text('{"mcpServers": {"a": {"url": "http://x/1"}, "a": {"url": "http://x/2"}}}')
    assert run(["gateway", "--state", "state", *words]) == 2
    err = capsys.readouterr().err
    assert f"[{reference}" in err
    assert ("--state DIR" in err) is (reference == "store-unusable")


@rule("C2")
def test_a_state_in_a_served_folder_is_refused_before_anything_is_made_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    before = sorted((folder / "tree").rglob("*"))
    assert run(["gateway", "tree", "--state", "tree/state"]) == 2
    err = capsys.readouterr().err
    assert "[cache-misplaced" in err
    assert "--state DIR" in err
    assert sorted((folder / "tree").rglob("*")) == before


@rule("O1")
@pytest.mark.parametrize("words", [["gateway", "--state", "state"], ["list", "acme"]], ids=lambda words: words[0])
def test_a_token_with_a_line_end_is_refused_and_not_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """HTTP's own refusal repeats the value."""
    monkeypatch.chdir(folder)
    headers = {"Authorization": "Bearer ${ACME_TOKEN}"}
    entry = {"url": "http://127.0.0.1:1/mcp", "headers": headers}
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"acme": entry}}))
    for end in ("\r", "\n"):
        monkeypatch.setenv("ACME_TOKEN", f"s3cr3t{end}")
        assert run([*words, "--config", "servers.json"]) == 2
        out, err = capsys.readouterr()
        assert "headers.Authorization" in err
        assert "s3cr3t" not in out + err
