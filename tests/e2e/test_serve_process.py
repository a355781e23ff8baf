"""``skillwire serve`` as a process: what it says, how it ends, what operators ask it."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import select
import shlex
import socket
import threading
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from e2e.talking import PATIENCE, Talking
from rules import rule
from skillwire.cli.main import run
from trees import skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    """A running ``skillwire serve``. Use it as a context manager."""

    def __init__(self, *words: str) -> None:
        super().__init__("serve", *words)

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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", small_tree())


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server over HTTP for tests that leave it unchanged."""
    folder = write_tree(tmp_path_factory.mktemp("served") / "skills", small_tree())
    with Process(str(folder), "--http", "0", "--verbose") as process:
        yield process


def test_a_closed_stdin_ends_it(root: Path) -> None:
    with Process(str(root)) as process:
        process.wait_for_talk("serving MCP")
        assert process.wait() == (0, "")


def test_stdio_carries_nothing_but_protocol(root: Path) -> None:
    with Process(str(root)) as process:
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
    with Process(str(root), "--http", "0", "--name", "acme", "--verbose") as process:
        for _ in range(3):
            process.rpc("skills/list")
        port = process.port
        assert process.end() == 0
        for path in ("bad/SKILL.md", "flat/.DS_Store", "flat/.env", "skill://acme/billing/refunds/SKILL.md"):
            assert process.talk.count(path) == 1
        entry = json.loads(process.talk[process.talk.index("{\n") : process.talk.index("\n}") + 2])
        assert entry == {"mcpServers": {"acme": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}}}


@rule("P3")
@pytest.mark.parametrize("words", [("--http", "0"), ("--dialect", "sep-2076")], ids=["http", "stdio"])
def test_it_says_at_its_start_what_skills_depend_on_and_is_not_there(root: Path, words: tuple[str, ...]) -> None:
    """Before anybody has asked."""
    write_tree(root, {"needs/SKILL.md": skill_md("needs", extra="dependencies: {tools: [pay]}\n")})
    with Process(str(root), *words) as process:
        process.wait_for_talk(r"skill://needs/SKILL.md.*'pay'.*\[dependency-missing\]")


def test_the_request_it_suggests_works_as_printed(running: Process) -> None:
    words = shlex.split(running.wait_for_talk(r": (curl .*)\n")[1])  # curl itself may not be installed
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    with closing(http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE)) as connection:
        connection.request("POST", "/mcp", words[words.index("-d") + 1], headers)
        assert len(json.loads(connection.getresponse().read())["result"]["skills"]) == 6


def test_the_stdio_entry_starts_the_same_server(root: Path) -> None:
    with Process(str(root), "--verbose") as process:
        process.wait_for_talk(r"\n}")
        entry = json.loads(process.talk[process.talk.index("{\n") : process.talk.index("\n}") + 2])
        server = entry["mcpServers"]["skillwire"]
        assert server["args"] == ["serve", str(root)]


def test_it_starts_with_a_few_lines_whose_commands_work(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Process(str(root), "--http", "0") as process:
        process.wait_for_talk(r"listening at .*\n")
        assert len(process.talk.splitlines()) <= 8
        page = urlsplit(process.wait_for_talk(r"open in a browser: (\S+)")[1])
        assert b"<html" in process.ask(page.path).body
        words = shlex.split(process.wait_for_talk(r"skillwire (list \S+)")[1])
        assert run(words) == 0
        assert "acme/billing/refunds" in capsys.readouterr().out


def test_another_port_is_used_if_the_usual_one_is_taken(root: Path) -> None:
    with ExitStack() as stack:
        with suppress(OSError):  # another program uses it already
            stack.enter_context(socket.create_server(("127.0.0.1", 8000)))
        process = stack.enter_context(Process(str(root), "--http", "auto"))
        assert process.port != 8000


def test_the_addresses_can_be_read_by_a_program(root: Path) -> None:
    with Process(str(root), "--http", "0", "--json") as process:
        port = process.port
        assert process.popen.stdout is not None
        shown = b"".join(process.popen.stdout.readline() for _ in range(4))
        assert json.loads(shown) == {"url": f"http://127.0.0.1:{port}/mcp", "page": f"http://127.0.0.1:{port}/"}


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
    with Process(str(root), str(more), *words) as process:
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
        pytest.param(["--http", "nonsense"], "address-invalid", id="address"),
        pytest.param(["--http", "65536"], "address-invalid", id="port-too-large"),
        pytest.param(["--http", "9" * 5000], "address-invalid", id="port-too-long"),
        pytest.param(["--scheme", "no scheme"], "scheme-invalid", id="scheme"),
        pytest.param(["--access", "x.toml"], "option-needs-http", id="access-on-stdio"),
        pytest.param(["--http", "0", "--access", "no-such.toml"], "access-file-unknown", id="access-file"),
        pytest.param(["--instructions", "no-such.txt"], "instructions-unreadable", id="instructions"),
        pytest.param(["--prefix", "../up"], "path-invalid", id="prefix"),
        pytest.param(["--http", "0", "--public-url", "nonsense"], "url-invalid", id="public-url"),
        pytest.param(
            ["--http", "0", "--access", "x.toml", "--cache-scope", "public"], "cache-not-public", id="cache-scope"
        ),
    ],
)
def test_a_wrong_option_is_refused(
    root: Path, words: list[str], reference: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", str(root), *words]) == 2
    assert re.search(rf"\[{reference}\]", capsys.readouterr().err)


def test_a_taken_port_is_refused(running: Process, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", str(root), "--http", str(running.port)]) == 2
    assert "[address-unavailable]" in capsys.readouterr().err


def test_operators_get_health_readiness_metrics_and_access_logs(root: Path) -> None:
    with Process(str(root), "--http", "0", "--access-log") as process:
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
    with Process(str(root), "--http", "0") as process:
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
        pytest.param({"host": "evil.example"}, 421, id="host"),
        pytest.param({"origin": "http://evil.example"}, 403, id="origin"),
        pytest.param({"content_type": "text/html"}, 400, id="type"),
    ],
)
def test_a_request_from_another_site_is_refused(running: Process, headers: dict[str, str], status: int) -> None:
    wanted = {"content_type": "application/json", **headers}
    assert running.ask("/mcp", b"{}", **wanted).status == status


@rule("B1")
def test_bad_bodies_are_answered_and_the_server_lives(running: Process) -> None:
    """Oversized, broken, deep and empty bodies, unknown methods, wrong types, no version; then a good one."""
    assert running.rpc("x", raw=b"0" * (2 << 20)).status == 413
    for raw in (b"", b"{", b"[]", b"[" * 100_000, b'{"jsonrpc":"2.0"}', b"\xff\xfe"):
        assert 400 <= running.rpc("skills/list", raw=raw).status < 500
    assert running.rpc("skills/list", version="1999-01-01").status == 400
    for method, params in (
        ("skills/list", {"cursor": 7}),
        ("skills/get", {"uri": ["x"]}),
        ("resources/directory/read", {}),
    ):
        answer = running.rpc(method, **params).result
        assert answer["error"]["code"] == -32602
        assert "/skills" not in json.dumps(answer).replace(method, "")  # no path of the server
    assert running.rpc("no/such/method").result["error"]["code"] == -32601
    assert len(running.rpc("skills/list").result["result"]["skills"]) == 6


@rule("B4")
def test_a_flood_is_bounded_and_the_server_lives(running: Process) -> None:
    """Many clients at once, each answered or turned away."""
    statuses: list[int] = []

    def flood() -> None:
        statuses.extend(running.rpc("skills/list").status for _ in range(5))

    threads = [threading.Thread(target=flood) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(statuses) == 80
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) > 0
    assert running.rpc("skills/list").status == 200


@rule("S1")
def test_a_stop_finishes_open_streams(root: Path) -> None:
    """A client that listens does not keep the server from ending."""
    with Process(str(root), "--http", "0") as process:
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
        assert process.end() == 0
        response.read()  # fails if the stream was cut off
        connection.close()
