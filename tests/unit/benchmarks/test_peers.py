"""What the benchmark beside other servers may not get wrong: a whole answer, a wrong one, a ratio that halved."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.peers.gate import halved
from benchmarks.peers.goals import speed_ratio
from benchmarks.peers.load import Load, Plan, walk
from benchmarks.peers.messages import Answer, BadAnswerError, Speaking, content, message, next_cursor
from benchmarks.peers.plot import draw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Say = Callable[[dict[str, Any]], dict[str, Any]]

URI = "skill://a/SKILL.md"
BODY = b'{"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"skill://a/SKILL.md","text":"hello"}]}}'
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (
    9,
    BODY[:9],
    len(BODY) - 9,
    BODY[9:],
)


@pytest.mark.parametrize("data", [WHOLE, CHUNKED], ids=["whole", "chunked"])
def test_an_answer_is_whole_with_its_last_byte_wherever_it_was_cut(data: bytes):
    for cut in range(1, len(data)):
        answer = Answer()
        assert not answer.add(data[:cut])
        assert answer.add(data[cut:])
        assert answer.body() == BODY


def test_an_event_stream_has_the_same_message():
    assert content(message(b"event: message\r\ndata: " + BODY + b"\r\n\r\n")) == b"hello"


def test_the_cursor_of_a_page_is_found_without_decoding_it():
    assert next_cursor(b'{"result":{"skills":[],"nextCursor":"a\\u0062"}}') == "ab"
    assert next_cursor(b'{"result":{"skills":[]}}') is None


@pytest.mark.parametrize(
    "data",
    [
        WHOLE.replace(b"200 OK", b"404 No"),
        WHOLE.replace(b'"result"', b'"errors"'),
    ],
    ids=["not-found", "no-result"],
)
def test_what_is_not_a_result_is_refused(data: bytes):
    answer = Answer()
    assert answer.add(data)
    with pytest.raises(BadAnswerError, match="not a result"):
        answer.body()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *request: object) -> None:
        """Clients that have measured long enough close their connections; that is no news."""


@pytest.fixture
def serve() -> Iterator[Callable[[Say], int]]:
    """A web server that answers each request with what ``say`` makes of it."""
    started: list[ThreadingHTTPServer] = []

    def start(say: Say) -> int:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                body = json.dumps({"jsonrpc": "2.0", "id": request["id"], **say(request)}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with suppress(BrokenPipeError, ConnectionResetError):  # the client has measured long enough
                    self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                pass

        server = Server(("127.0.0.1", 0), Handler)
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        started.append(server)
        return server.server_address[1]

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def reading(text: str) -> Say:
    return lambda request: {"result": {"contents": [{"uri": request["params"]["uri"], "text": text}]}}


def plan(port: int, **changes: Any) -> Plan:
    digests = {URI: hashlib.sha256(b"hello").hexdigest()}
    return Plan(port, "resources/read", [URI], digests, seconds=0.05, warm_seconds=0.01, **changes)


def test_reads_are_counted_over_all_connections(serve: Callable[[Say], int]):
    port = serve(reading("hello"))
    report = Load(plan(port, connections=4), Speaking(port)).run()
    assert report.asked >= report.count + 4 > 4
    assert 0 < report.p50 <= report.p99 <= report.worst


def test_other_bytes_than_those_on_disk_end_the_measurement(serve: Callable[[Say], int]):
    port = serve(reading("other"))
    with pytest.raises(BadAnswerError, match="not the bytes on disk"):
        Load(plan(port), Speaking(port)).run()


def test_an_answer_to_another_request_ends_the_measurement(serve: Callable[[Say], int]):
    port = serve(lambda request: {**reading("hello")(request), "id": 1})
    with pytest.raises(BadAnswerError, match="another request"):
        Load(plan(port), Speaking(port)).run()


def test_an_error_ends_the_measurement(serve: Callable[[Say], int]):
    port = serve(lambda _: {"error": {"code": -32602, "message": "no"}})
    with pytest.raises(BadAnswerError, match="-32602"):
        Load(plan(port), Speaking(port)).run()


def test_a_listing_is_walked_to_its_end(serve: Callable[[Say], int]):
    pages = {None: {"skills": [1, 2], "nextCursor": "b"}, "b": {"skills": [3]}}
    port = serve(lambda request: {"result": pages[request["params"].get("cursor")]})
    report = walk(Plan(port, "skills/list", seconds=0.01), Speaking(port))
    assert (report.pages, report.skills) == (2, 3)


def test_a_listing_without_an_end_is_left(serve: Callable[[Say], int]):
    port = serve(lambda _: {"result": {"skills": [], "nextCursor": "again"}})
    with pytest.raises(BadAnswerError):  # after the last answer, or while it waits for one
        walk(Plan(port, "skills/list", patience=0.05), Speaking(port))


def test_a_ratio_is_taken_within_a_round():
    ours = [{"round": number, "per_second": rate} for number, rate in ((1, 10), (2, 99), (3, 40))]
    rounds = {"read 1": {"ours": ours, "floor": [{"round": number, "per_second": 20} for number in (1, 3)]}}
    spread = speed_ratio(rounds, "read 1", "floor", "throughput")
    assert spread is not None
    assert (spread.least, spread.median, spread.most) == (0.5, 1.25, 2.0)


def test_what_is_half_as_good_as_expected_is_named():
    assert halved({"read": 0.4, "get": 0.41, "new": 0.1}, {"read": 0.8, "get": 0.8}) == ["read"]


def test_the_plot_has_a_line_for_each_server_that_was_measured():
    row = {"start": 1.0, "list": 0.1, "page": 0.001, "read": 0.001, "memory": 90.0}
    costs = {"ours": [{"skills": 100, **row}, {"skills": 1000, **row}], "floor": [{"skills": 100, **row}]}
    assert (
        draw({**costs, "fastmcp": []}).count("<polyline") == 4 + 2
    )  # the floor has not read the tree: no start, no memory
