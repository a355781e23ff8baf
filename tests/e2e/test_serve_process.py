"""``skillwire serve`` as a process: what it says, how it ends, what operators ask it."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from e2e.talking import Talking
from rules import rule
from trees import skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 30
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def result(self) -> Any:
        return json.loads(self.body)


class Process(Talking):
    """A running ``skillwire serve``."""

    def __init__(self, *words: str) -> None:
        super().__init__("serve", *words, new=True)

    @property
    def port(self) -> int:
        return int(self.wait_for_talk(r"listening at http://127\.0\.0\.1:(\d+)/mcp").group(1))

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET" if body is None else "POST", path, body, names)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return Answer(response.status, {key.lower(): value for key, value in response.getheaders()}, data)

    def rpc(self, method: str, *, version: str = "2026-07-28", raw: bytes | None = None, **params: Any) -> Answer:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}
        return self.ask(
            "/mcp",
            json.dumps(message).encode() if raw is None else raw,
            content_type="application/json",
            accept="application/json, text/event-stream",
            mcp_protocol_version=version,
            mcp_method=method,
            **({"mcp_name": params["uri"]} if method == "resources/read" else {}),
        )

    def close(self) -> None:
        self.popen.kill()
        self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            assert stream is not None
            stream.close()


@contextmanager
def serving(*words: str) -> Iterator[Process]:
    process = Process(*words)
    try:
        yield process
    finally:
        process.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", small_tree())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("mode", ["stdio", "http"])
def test_a_signal_ends_it_cleanly(root: Path, mode: str, number: signal.Signals) -> None:
    with serving(str(root), *(["--http", "0"] if mode == "http" else [])) as process:
        process.wait_for_talk("claude mcp add.*\n")
        if mode == "http":
            process.rpc("skills/list")
        process.popen.send_signal(number)
        assert process.popen.wait(PATIENCE) == 0
        assert process.popen.stdout is not None
        assert process.popen.stdout.read() == b""


def test_a_closed_stdin_ends_it(root: Path) -> None:
    with serving(str(root)) as process:
        process.wait_for_talk("claude mcp add")
        assert process.popen.stdin is not None
        process.popen.stdin.close()
        assert process.popen.wait(PATIENCE) == 0


def test_stdio_carries_nothing_but_protocol(root: Path) -> None:
    with serving(str(root)) as process:
        request = {"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": {"_meta": META}}
        assert process.popen.stdin is not None
        assert process.popen.stdout is not None
        process.popen.stdin.write(b"not json\n" + json.dumps(request).encode() + b"\n")
        process.popen.stdin.flush()
        ready, _, _ = select.select([process.popen.stdout], [], [], PATIENCE)
        assert ready
        answer = json.loads(process.popen.stdout.readline())
        assert len(answer["result"]["skills"]) == 6


@rule("F7")
def test_it_says_what_it_serves_and_left_out_once(root: Path) -> None:
    write_tree(root, {"bad/SKILL.md": b"none", "flat/.DS_Store": b"", "flat/.env": b"SECRET=1"})
    with serving(str(root), "--http", "0", "--name", "acme") as process:
        for _ in range(3):
            process.rpc("skills/list")
        process.popen.terminate()
        process.wait_for_talk("stopped")
        assert process.talk.count("left out bad/SKILL.md") == 1
        assert process.talk.count("left out by name: flat/.DS_Store, flat/.env\n") == 1
        assert "serving 6 skills:\n  skill://acme/billing/refunds/SKILL.md\n" in process.talk
        entry = json.loads(process.talk[process.talk.index("{\n") : process.talk.index("\n}") + 2])
        assert entry == {"mcpServers": {"acme": {"type": "http", "url": f"http://127.0.0.1:{process.port}/mcp"}}}


@rule("P3")
@pytest.mark.parametrize("words", [("--http", "0"), ("--dialect", "sep-2076")])
def test_it_says_at_its_start_what_skills_depend_on_and_is_not_there(root: Path, words: tuple[str, ...]) -> None:
    """Before anybody has asked."""
    write_tree(root, {"needs/SKILL.md": skill_md("needs", extra="dependencies: {tools: [pay]}\n")})
    with serving(str(root), *words) as process:
        process.wait_for_talk(
            r"skill://needs/SKILL.md: the skill depends on the tool 'pay', .*\[dependency-missing\]"
        )


def test_the_command_it_suggests_works_as_printed(root: Path) -> None:
    with serving(str(root), "--http", "0") as process:
        process.wait_for_talk("listening at")
        command = next(line for line in process.talk.splitlines() if line.startswith("  curl "))
        words = shlex.split(command)  # sent as curl would send it, which may not be installed
        headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
        connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=PATIENCE)
        connection.request("POST", "/mcp", words[words.index("-d") + 1], headers)
        assert len(json.loads(connection.getresponse().read())["result"]["skills"]) == 6
        connection.close()


def test_the_stdio_entry_starts_the_same_server(root: Path) -> None:
    with serving(str(root)) as process:
        process.wait_for_talk("claude mcp add.*\n")
        entry = json.loads(process.talk[process.talk.index("{\n") : process.talk.index("\n}") + 2])
        server = entry["mcpServers"]["skillwire"]
        assert server["args"][-1] == str(root)


@rule("L2", "G1", "U5")
def test_options_shape_what_is_served(root: Path, tmp_path: Path) -> None:
    (tmp_path / "about.txt").write_text("Use these skills.")
    more = write_tree(tmp_path / "more", {"extra/SKILL.md": skill_md("extra")})
    words = [
        "--http",
        "0",
        "--prefix",
        "team",
        "--unlisted",
        "team/acme/*",
        "--scheme",
        "repo",
        "--page-size",
        "2",
    ]
    words += [
        "--ttl",
        "60",
        "--cache-scope",
        "public",
        "--instructions",
        str(tmp_path / "about.txt"),
        "--name",
        "x",
    ]
    with serving(str(root), str(more), *words) as process:
        first = process.rpc("skills/list").result["result"]
        assert [entry["uri"] for entry in first["skills"]] == [
            "repo://team/flat/SKILL.md",
            "repo://team/odd-names/SKILL.md",
        ]
        assert (first["ttlMs"], first["cacheScope"]) == (60_000, "public")
        second = process.rpc("skills/list", cursor=first["nextCursor"]).result["result"]
        assert [entry["uri"] for entry in second["skills"]] == [
            "repo://team/windows/SKILL.md",
            "repo://team/extra/SKILL.md",
        ]
        hidden = process.rpc("skills/get", uri="repo://team/acme/billing/refunds/SKILL.md").result
        assert hidden["result"]["skill"]["frontmatter"]["name"] == "refunds"
        about = process.rpc("server/discover").result["result"]
        assert about["instructions"] == "Use these skills."


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        (["--http", "nonsense"], "address-invalid"),
        (["--http", "99999"], "address-invalid"),
        (["--scheme", "no scheme"], "scheme-invalid"),
        (["--access", "x.toml"], "option-needs-http"),
        (["--http", "0", "--access", "no-such.toml"], "access-file-unknown"),
        (["--instructions", "no-such.txt"], "instructions-unreadable"),
        (["--prefix", "../up"], "path-invalid"),
        (["--http", "9" * 5000], "address-invalid"),
        (["--http", "0", "--public-url", "nonsense"], "url-invalid"),
        (["--http", "0", "--access", "x.toml", "--cache-scope", "public"], "cache-not-public"),
    ],
)
def test_wrong_options_are_refused_with_a_hint(root: Path, words: list[str], reference: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "skillwire", "serve", str(root), *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert re.search(rf"\[{reference}(, rule \w+)?\]", done.stderr)
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_port_is_refused(root: Path) -> None:
    with serving(str(root), "--http", "0") as first:
        done = subprocess.run(
            [sys.executable, "-m", "skillwire", "serve", str(root), "--http", str(first.port)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 2
        assert "[address-unavailable]" in done.stderr


def test_operators_get_health_readiness_metrics_and_access_logs(root: Path) -> None:
    with serving(str(root), "--http", "0", "--access-log") as process:
        assert process.ask("/healthz")[::2] == (200, b"ok\n")
        assert process.ask("/readyz")[::2] == (200, b"ready\n")
        process.rpc("skills/list")
        process.rpc("skills/get", uri="skill://nothing/SKILL.md")
        process.rpc("invented/method")
        metrics = process.ask("/metrics").body.decode()
        assert 'skillwire_requests_total{method="skills/list",outcome="ok"} 1.0' in metrics
        assert 'skillwire_requests_total{method="skills/get",outcome="-32602"} 1.0' in metrics
        assert 'skillwire_requests_total{method="other",outcome="-32601"} 1.0' in metrics
        line = json.loads(process.wait_for_talk(r'\{"time".*"method": "skills/list".*\}').group())
        assert (line["http"], line["path"], line["status"]) == ("POST", "/mcp", 200)
        assert line["bytes"] > 0


def test_large_listings_are_compressed(root: Path) -> None:
    write_tree(root, {f"s{n}/SKILL.md": skill_md(f"s{n}", "x" * 500) for n in range(20)})
    with serving(str(root), "--http", "0") as process:
        message = {"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": {"_meta": META}}
        answer = process.ask(
            "/mcp",
            json.dumps(message).encode(),
            content_type="application/json",
            accept="application/json, text/event-stream",
            mcp_protocol_version="2026-07-28",
            mcp_method="skills/list",
            accept_encoding="gzip",
        )
        assert answer.headers["content-encoding"] == "gzip"
        assert len(json.loads(gzip.decompress(answer.body))["result"]["skills"]) == 26


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"content_type": "text/html"}, 400),
    ],
)
def test_other_hosts_and_origins_are_turned_away(root: Path, headers: dict[str, str], status: int) -> None:
    with serving(str(root), "--http", "0") as process:
        wanted = {"content_type": "application/json", **headers}
        assert process.ask("/mcp", b"{}", **wanted).status == status


@rule("B1")
def test_bad_bodies_are_answered_and_the_server_lives(root: Path) -> None:
    """Oversized, broken, deep and empty bodies, unknown methods, wrong types, no version; then a good one."""
    with serving(str(root), "--http", "0") as process:
        assert process.rpc("x", raw=b"0" * (2 << 20)).status == 413
        for raw in (b"", b"{", b"[]", b"null", b'"x"', b"[" * 100_000, b'{"jsonrpc":"2.0"}', b"\xff\xfe"):
            assert 400 <= process.rpc("skills/list", raw=raw).status < 500
        assert process.rpc("skills/list", version="1999-01-01").status == 400
        for method, params in (
            ("skills/list", {"cursor": 7}),
            ("skills/get", {"uri": ["x"]}),
            ("skills/get", {"uri": None}),
            ("resources/directory/read", {}),
        ):
            answer = process.rpc(method, **params).result
            assert answer["error"]["code"] == -32602
            assert str(root) not in json.dumps(answer)
        assert process.rpc("no/such/method").result["error"]["code"] == -32601
        assert len(process.rpc("skills/list").result["result"]["skills"]) == 6


@rule("B4")
def test_a_flood_is_bounded_and_the_server_lives(root: Path) -> None:
    """Many clients at once, each answered or turned away."""
    with serving(str(root), "--http", "0") as process:
        port, statuses = process.port, list[int]()

        def flood() -> None:
            for _ in range(20):
                statuses.append(process.rpc("skills/list").status)

        threads = [threading.Thread(target=flood) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(statuses) == 320
        assert set(statuses) <= {200, 503}
        assert statuses.count(200) > 0
        assert process.port == port
        assert process.rpc("skills/list").status == 200


@rule("S1")
def test_a_stop_finishes_open_streams(root: Path) -> None:
    """A client that listens does not keep the server from ending."""
    with serving(str(root), "--http", "0") as process:
        connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=PATIENCE)
        params = {"_meta": META, "notifications": {"resourcesListChanged": True}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "subscriptions/listen",
        }
        connection.request("POST", "/mcp", json.dumps(message), headers)
        response = connection.getresponse()
        assert b"acknowledged" in response.readline() + response.readline() + response.readline()
        begun = time.monotonic()
        process.popen.terminate()
        assert process.popen.wait(PATIENCE) == 0
        assert time.monotonic() - begun < PATIENCE / 2
        response.read()
        connection.close()
