"""``skillwire ui`` as a process: the link, the command line beside it, live events, and its end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx2
import pytest

from e2e.talking import PATIENCE, Talking
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SKILLWIRE = [sys.executable, "-m", "skillwire"]
REFUNDS = "skill://acme/refunds/SKILL.md"


class Desk:
    """A running desk, and a browser without a window."""

    def __init__(self, folder: Path, *words: str, opens: bool = False) -> None:
        self.folder = folder
        words = words if opens else ("--no-open", *words)
        self.process = Talking("ui", *self.state, *words, folder=folder, new=opens)
        self.link = self.process.wait_for_talk(r"open the desk, once: (http://127\.0\.0\.1:\d+/enter\?key=\S+)")[1]
        self.url = self.link.partition("/enter")[0]
        self.browser = httpx2.Client(base_url=self.url, timeout=PATIENCE, trust_env=False)

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
        done = subprocess.run(
            [*SKILLWIRE, *words, *self.state, "--json"], capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else None


@contextmanager
def desk_in(folder: Path, *words: str, opens: bool = False) -> Iterator[Desk]:
    desk = Desk(folder, *words, opens=opens)
    try:
        yield desk
    finally:
        desk.browser.close()
        desk.process.popen.kill()
        desk.process.popen.communicate()


@pytest.fixture
def config(tmp_path: Path) -> list[str]:
    """Two servers, one of which is not there."""
    root = write_tree(tmp_path / "served", {"acme/refunds/SKILL.md": skill_md("refunds", body="Pay 10.\n")})
    servers = {
        "acme": {"command": sys.executable, "args": ["-m", "skillwire", "serve", str(root)]},
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
        desk.skillwire("revoke", "refunds", "--by", "bob")
        assert ">bob<" in desk.until("/log", r"revoked</span>")
        assert "revoked" in desk.until("/?part=skills", ">revoked<")


def test_a_waiting_agent_goes_on_when_the_desk_says_yes(tmp_path: Path, config: list[str]) -> None:
    """See the change, read the difference, approve, and whoever waits has its skill."""
    with desk_in(tmp_path, *config) as desk:
        desk.enter()
        desk.until("/", r"/skill/acme/acme/refunds")
        desk.send("approve", "acme/acme/refunds")
        skill = tmp_path / "served/acme/refunds/SKILL.md"
        skill.write_bytes(skill_md("refunds", body="Pay 1000.\n"))
        desk.until("/?part=skills", ">changed<")
        words = [*SKILLWIRE, "load", "refunds", "--ask", "desk", *desk.state, *config]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as agent:
            try:
                desk.until("/?part=questions", "May the model read")
                assert "Pay 10<ins>00</ins>." in desk.browser.get("/skill/acme/acme/refunds").text
                assert desk.send("approve", "acme/acme/refunds").status_code == 303
                out, err = agent.communicate(timeout=PATIENCE)
            finally:
                agent.kill()
        assert agent.returncode == 0, err
        assert b"Pay 1000." in out
        desk.until("/?part=questions", "Nobody waits")


def test_an_origin_that_is_not_there_is_shown_and_holds_nothing_up(tmp_path: Path, config: list[str]) -> None:
    with desk_in(tmp_path, *config) as desk:
        desk.enter()
        assert "connection-lost" in desk.until("/origins", "unreachable")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_told_to_with_pages_open(number: int, tmp_path: Path) -> None:
    with desk_in(tmp_path) as desk:
        desk.enter()
        with desk.browser.stream("GET", "/events") as events:
            lines = events.iter_lines()
            assert next(lines) == "retry: 2000"
            desk.process.popen.send_signal(number)
            list(lines)  # to its end
        _, err = desk.process.popen.communicate(timeout=PATIENCE)
        assert desk.process.popen.returncode == 0
        assert err.decode().splitlines()[-1] == "stopped"
        assert "Traceback" not in desk.process.talk + err.decode()


def test_the_link_is_for_one_browser_and_its_key_is_never_logged(tmp_path: Path) -> None:
    with desk_in(tmp_path) as desk:
        desk.enter()
        with httpx2.Client(trust_env=False) as thief:
            assert "used already" in thief.get(desk.link).text
            assert thief.get(desk.url).status_code == 401
            assert thief.get(desk.url, headers={"Host": "evil.example"}).status_code == 421
        desk.process.wait_for_talk("the link was used a second time")
        desk.process.popen.send_signal(signal.SIGINT)
        out, err = desk.process.popen.communicate(timeout=PATIENCE)
        assert (desk.process.talk + err.decode() + out.decode()).count(desk.link.rpartition("=")[2]) == 1


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
            desk.process.popen.send_signal(signal.SIGINT)
            _, err = desk.process.popen.communicate(timeout=PATIENCE)
        finally:
            (tmp_path / "closing").write_text("now\n")
        assert desk.process.popen.returncode == 0
        assert err.decode().splitlines()[-1] == "stopped"


def test_a_browser_that_does_not_open_is_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser_in(tmp_path, "exit 1", monkeypatch)
    with desk_in(tmp_path, opens=True) as desk:
        desk.process.wait_for_talk("no browser could be opened: open the link above yourself")
        desk.enter()
        assert "Traceback" not in desk.process.talk


@pytest.mark.parametrize("words", [["--port", "x"], ["--port", "0.0.0.0:80"], ["--port", "70000"], ["--as", ""]])
def test_words_that_are_none_are_refused(words: list[str], tmp_path: Path) -> None:
    command = [*SKILLWIRE, "ui", "--no-open", "--state", str(tmp_path), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with desk_in(tmp_path) as desk:
        port = desk.url.rpartition(":")[2]
        command = [*SKILLWIRE, "ui", "--no-open", "--state", str(tmp_path / "other"), "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 2
        assert "address-unavailable" in done.stderr
