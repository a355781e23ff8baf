"""``skillwire ui`` as a process: the link, the command line beside it, live events, and its end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx2
import pytest

from e2e.installing import serving
from e2e.talking import PATIENCE, Talking
from skillwire.cli.main import run
from skillwire.server.http import listen
from starting import skillwire_command
from trees import replace_file, skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REFUNDS = "skill://acme/refunds/SKILL.md"
WAITING = 'class="questions"'


@dataclass
class Desk:
    """A running desk, and a browser without a window."""

    folder: Path
    process: Talking
    link: str
    browser: httpx2.Client

    @property
    def url(self) -> str:
        return self.link.partition("/enter")[0]

    @property
    def state(self) -> list[str]:
        return ["--state", str(self.folder / "state")]

    def enter(self) -> None:
        assert self.browser.get(self.link).status_code == 303

    def until(self, place: str, pattern: str) -> str:
        """The page, as soon as it says that; the desk says when it is worth looking again."""
        with self.browser.stream("GET", "/events") as events:
            for line in events.iter_lines():
                if line.startswith("data:"):
                    page = self.browser.get(place).text
                    if re.search(pattern, page):
                        return page
        raise AssertionError("the stream ended")

    def send(self, action: str, skill: str, **fields: str) -> httpx2.Response:
        page = self.browser.get(f"/skill/{skill}").text
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
        return self.browser.post(
            f"/{action}/{skill}",
            content=urlencode({**hidden, **fields}),
            headers={"Origin": self.url, "Content-Type": "application/x-www-form-urlencoded"},
        )

    def skillwire(self, *words: str) -> Any:
        command = [*skillwire_command(), *words, *self.state, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else None


@contextmanager
def desk_in(folder: Path, *words: str, opens: bool = False) -> Iterator[Desk]:
    words = words if opens else ("--no-open", *words)
    with Talking("ui", "--state", str(folder / "state"), *words, folder=folder) as process:
        link = process.wait_for_talk(r"http://127\.0\.0\.1:\d+/enter\?key=\S+")[0]
        url = link.partition("/enter")[0]
        with httpx2.Client(base_url=url, timeout=PATIENCE, trust_env=False) as browser:
            yield Desk(folder, process, link, browser)


@pytest.fixture
def config(tmp_path: Path) -> list[str]:
    """Two servers, one of which is not there."""
    root = write_tree(tmp_path / "served", {"acme/refunds/SKILL.md": skill_md("refunds", body="Pay 10.\n")})
    command, *words = serving(root)
    servers = {
        "acme": {"command": command, "args": words},
        "gone": {"type": "http", "url": "http://127.0.0.1:1/mcp"},
    }
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    return ["--config", str(tmp_path / "servers.json")]


def test_what_is_decided_at_the_desk_the_command_line_knows_and_the_reverse(
    tmp_path: Path, config: list[str]
) -> None:
    """Live: the command line's decision appears without being asked for."""
    with desk_in(tmp_path, *config, "--as", "anna") as desk:
        desk.enter()
        desk.until("/", r"/skill/acme/acme/refunds")
        assert desk.send("approve", "acme/acme/refunds", note="fine").status_code == 303
        [approval] = desk.skillwire("approvals")["approvals"]
        assert (approval["uri"], approval["by"]) == (REFUNDS, "anna")
        desk.skillwire("approvals", "revoke", "refunds", "--by", "bob")
        assert ">bob<" in desk.until("/log", r"revoked</span>")
        assert "revoked" in desk.until("/?part=skills", ">revoked<")


def test_a_waiting_agent_goes_on_when_the_desk_says_yes(tmp_path: Path, config: list[str]) -> None:
    """See the change, read the difference, approve, and whoever waits has its skill."""
    with desk_in(tmp_path, *config) as desk:
        desk.enter()
        desk.until("/", r"/skill/acme/acme/refunds")
        desk.send("approve", "acme/acme/refunds")
        skill = tmp_path / "served/acme/refunds/SKILL.md"
        replace_file(skill, skill_md("refunds", body="Pay 1000.\n"))
        desk.until("/?part=skills", ">changed<")
        with Talking("load", "refunds", "--ask", "desk", *desk.state, *config) as agent:
            desk.until("/?part=questions", WAITING)
            assert "Pay 10<ins>00</ins>." in desk.browser.get("/skill/acme/acme/refunds").text
            assert desk.send("approve", "acme/acme/refunds").status_code == 303
            code, out = agent.wait()
        assert code == 0, agent.talk
        assert "Pay 1000." in out
        desk.until("/?part=questions", f"(?s)^(?!.*{WAITING})")


def test_an_origin_that_is_not_there_is_shown_and_holds_nothing_up(tmp_path: Path, config: list[str]) -> None:
    with desk_in(tmp_path, *config) as desk:
        desk.enter()
        assert "connection-lost" in desk.until("/origins", "unreachable")


def test_a_signal_ends_it_while_pages_are_open(tmp_path: Path) -> None:
    with desk_in(tmp_path) as desk:
        desk.enter()
        with desk.browser.stream("GET", "/events") as events:
            lines = events.iter_lines()
            assert next(lines).startswith("retry: ")
            desk.process.popen.send_signal(signal.SIGTERM)
            list(lines)  # to its end
        assert desk.process.wait()[0] == 0
        assert "Traceback" not in desk.process.talk


def test_the_link_is_for_one_browser_and_its_key_is_never_logged(tmp_path: Path) -> None:
    with desk_in(tmp_path) as desk:
        desk.enter()
        with httpx2.Client(trust_env=False) as thief:
            assert thief.get(desk.link).status_code >= 400
            assert thief.get(desk.url).status_code == 401
            assert thief.get(desk.url, headers={"Host": "evil.example"}).status_code == 421
        assert desk.process.end(signal.SIGINT) == 0
        assert desk.process.talk.count(desk.link.rpartition("=")[2]) == 1


def browser_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A browser of the person's own, and none beside it."""
    browser = folder / "browser"
    browser.write_text(f"#!/bin/sh\n{script}\n")
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TERM"):
        monkeypatch.delenv(name, raising=False)
    return browser


def test_a_browser_that_stays_in_front_does_not_hold_the_desk_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is opened with the link; the desk serves meanwhile, and ends before it does."""
    os.mkfifo(tmp_path / "opened")
    os.mkfifo(tmp_path / "closing")
    script = f"echo \"$1\" > '{tmp_path}/opened'; exec > /dev/null 2>&1; read word < '{tmp_path}/closing'"
    browser_in(tmp_path, script, monkeypatch)
    with desk_in(tmp_path, opens=True) as desk:
        assert (tmp_path / "opened").read_text().strip() == desk.link
        try:
            desk.enter()
            assert desk.browser.get("/").status_code == 200
            assert desk.process.end(signal.SIGINT) == 0
        finally:
            (tmp_path / "closing").write_text("now\n")


def test_a_browser_that_does_not_open_is_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser_in(tmp_path, "exit 1", monkeypatch)
    with desk_in(tmp_path, opens=True) as desk:
        desk.process.wait_for_talk("browser")
        desk.enter()
        assert "Traceback" not in desk.process.talk


@pytest.mark.parametrize("port", ["x", "70000"], ids=["no-number", "too-large"])
def test_a_wrong_port_is_refused(port: str, tmp_path: Path) -> None:
    assert run(["ui", "--no-open", "--state", str(tmp_path), "--port", port]) == 2


@pytest.mark.parametrize("name", ["", "policy"], ids=["empty", "reserved"])
def test_a_wrong_name_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ui", "--no-open", "--state", str(tmp_path), "--as", name]) == 2
    assert "[argument-invalid]" in capsys.readouterr().err


def test_a_taken_port_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(listen("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["ui", "--no-open", "--state", str(tmp_path), "--port", port]) == 2
    assert "[address-unavailable]" in capsys.readouterr().err
