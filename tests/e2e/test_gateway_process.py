"""``skillwire gateway`` as a process: what it says, what it serves, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from e2e.gateways import PATIENCE, SKILLWIRE, running
from rules import rule
from skillwire import connect
from trees import SMALL_TREE_SKILLS, skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of skills, and a file with a server of it and one that is nowhere."""
    write_tree(tmp_path / "tree", small_tree())
    (tmp_path / "upstream.py").write_text(
        "import os, sys\n"
        "open('pid', 'w').write(str(os.getpid()))\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'skillwire', 'serve', 'tree'])\n"
    )
    entry = {"command": sys.executable, "args": ["upstream.py"], "cwd": str(tmp_path)}
    servers = {"acme": entry, "gone": {"url": "http://127.0.0.1:1/mcp"}}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SKILLWIRE, *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)


@rule("O1", "L2")
@pytest.mark.anyio
async def test_over_http_it_serves_every_upstream_and_says_who_is_away(folder: Path) -> None:
    with running(folder, "--config", "servers.json", "tree", "--http", "0") as process:
        url = process.wait_for_talk(r"listening at (\S+) ")[1]
        process.wait_for_talk("serving 12 skills of 3 upstreams")
        assert "acme: 6 skills, speaks extension" in process.talk
        assert "gone: 0 skills, away, and never listed" in process.talk
        assert "tree: 6 skills, a folder" in process.talk
        async with connect(url) as client:
            found = [entry.path async for entry in client.list_skills()]
            assert found == [f"{label}/{path}" for label in ("acme", "tree") for path in SMALL_TREE_SKILLS]
            file = await client.read_skill_uri("skill://acme/acme/release/notes.md")
            assert file.data == b"notes\n"
        assert process.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_on_stdio_a_signal_ends_it_with_its_upstreams(folder: Path, number: int) -> None:
    """No process of an upstream is left behind, not even one that stays when nobody speaks to it any more."""
    (folder / "upstream.py").write_text(
        "import os, subprocess, sys, time\n"
        "open('pid', 'w').write(str(os.getpid()))\n"
        "subprocess.run([sys.executable, '-m', 'skillwire', 'serve', 'tree'])\n"
        "time.sleep(600)\n"
    )
    with running(folder, "--config", "servers.json") as process:
        process.wait_for_talk("acme: 6 skills")
        assert "a host starts it with this entry" in process.talk
        assert str(folder / "servers.json") in process.talk
        child = int((folder / "pid").read_text())
        os.kill(child, 0)
        process.popen.send_signal(number)
        assert process.popen.wait(PATIENCE) == 0  # its stdin stays open
        deadline = time.monotonic() + 10
        while is_alive(child):
            assert time.monotonic() < deadline


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_on_stdio_it_ends_when_its_host_does(folder: Path) -> None:
    with running(folder, "--config", "servers.json") as process:
        process.wait_for_talk("acme: 6 skills")
        process.popen.communicate(timeout=PATIENCE)
        assert process.popen.returncode == 0


@rule("A1", "A2")
@pytest.mark.anyio
async def test_what_waits_is_approved_with_the_command_it_names(folder: Path) -> None:
    """From refused to served to refused, while the gateway runs."""
    (folder / "gateway.toml").write_text(
        'mode = "admit"\nservers = "servers.json"\n[upstream.acme]\nskills = ["flat"]\n'
    )
    with running(folder, "--policy", "gateway.toml", "--http", "0") as process:
        url = process.wait_for_talk(r"listening at (\S+) ")[1]
        command = process.wait_for_talk(r"'flat' of 'acme' waits for a person's yes: skillwire (approve .*)\n")[
            1
        ].split()
        async with connect(url) as client:
            assert [entry async for entry in client.list_skills()] == []
            approved = run(folder, *command)
            assert approved.returncode == 0, approved.stderr
            entry = await client.get_skill("skill://acme/flat/SKILL.md")
            assert (await client.read_skill(entry)).text.encode() == small_tree()["flat/SKILL.md"]
            write_tree(folder / "tree", {"flat/SKILL.md": skill_md("flat", "Changed.")})
            with client_errors():
                while True:
                    await client.read_skill(await client.get_skill(entry.uri))
            process.wait_for_talk(r"(?s)'flat' of 'acme' waits.*'flat' of 'acme' waits")
        log = run(folder, "log", "--state", "state", "--json")
        assert '"revoked"' in log.stdout


@contextmanager
def client_errors() -> Iterator[None]:
    from skillwire import NotFoundError

    with pytest.raises(NotFoundError):
        yield


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "nothing-to-serve"),
        (["--config", "nowhere.json"], "config-unreadable"),
        (["--policy", "nowhere.toml"], "policy-unreadable"),
        (["--policy", "bad.toml"], "policy-invalid"),
        (["--config", "servers.json", "nowhere"], "folder-unknown"),
        (["--config", "servers.json", "--http", "x"], "address-invalid"),
        (["--config", "servers.json", "--access", "x"], "option-needs-http"),
        (["--config", "servers.json", "--instructions", "nowhere.md"], "instructions-unreadable"),
        (["--config", "servers.json", "--state", "/proc/nowhere"], "store-unusable"),
        (["--config", "twice.json"], "label-duplicate"),
    ],
)
def test_a_mistake_is_said_and_ends_it(folder: Path, words: list[str], says: str) -> None:
    (folder / "bad.toml").write_text("mode = 1")
    (folder / "twice.json").write_text('{"mcpServers": {"a": {"url": "http://x/1"}, "a": {"url": "http://x/2"}}}')
    done = run(folder, "gateway", "--state", "state", *words)
    assert done.returncode == 2
    assert f"[{says}" in done.stderr
    assert "Traceback" not in done.stderr
    assert ("--state DIR" in done.stderr) is (says == "store-unusable")


@rule("C2")
def test_a_state_in_a_served_folder_is_refused_before_anything_is_made_there(folder: Path) -> None:
    before = sorted((folder / "tree").rglob("*"))
    done = run(folder, "gateway", "tree", "--state", "tree/state")
    assert done.returncode == 2
    assert "[cache-misplaced" in done.stderr
    assert "--state DIR" in done.stderr
    assert "written" not in done.stderr
    assert sorted((folder / "tree").rglob("*")) == before


@rule("O1")
@pytest.mark.parametrize("verb", ["gateway", "list"])
@pytest.mark.parametrize("end", ["\r", "\n"])
def test_a_token_with_a_line_end_is_refused_and_not_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, verb: str, end: str
) -> None:
    """HTTP's own refusal repeats the value."""
    monkeypatch.setenv("ACME_TOKEN", f"s3cr3t{end}")
    headers = {"Authorization": "Bearer ${ACME_TOKEN}"}
    entry = {"url": "http://127.0.0.1:1/mcp", "headers": headers}
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"acme": entry}}))
    words = ["gateway", "--state", "state"] if verb == "gateway" else ["list", "acme"]
    done = run(folder, *words, "--config", "servers.json")
    assert done.returncode == 2
    assert "'headers.Authorization' holds a line end" in done.stderr
    assert "s3cr3t" not in done.stdout + done.stderr
