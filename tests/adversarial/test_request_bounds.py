"""Clients that send too much, too slowly, or nothing, to the web servers of `serve`, `gateway` and `ui`."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest

from http_server import serving_config
from rules import rule
from skillwire.host.host import SkillHost
from skillwire.limits import DEFAULT_LIMITS, KIB, MIB, Limits
from skillwire.server.http import HttpOptions, HttpServer, WebApp, listen
from skillwire.server.http_protocol import ChunkedTransport, Connections
from skillwire.server.skills import Skills, build_server
from skillwire.store.store import Store
from skillwire.web.desk.app import DeskServer
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from anyio.abc import SocketStream

pytestmark = pytest.mark.anyio

HASTY = replace(DEFAULT_LIMITS, max_request_seconds=0.2, max_unread_seconds=0.2)  # reaching it is the subject
FEW = 8
LONG = b"a" * 16 * MIB  # more than the system buffers
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


class Served:
    """One web server and raw connections to it."""

    def __init__(self, port: int, connections: set[Any]) -> None:
        self.port = port
        self.connections = connections

    async def connect(self, address: str = "127.0.0.1") -> SocketStream:
        return await anyio.connect_tcp("127.0.0.1", self.port, local_host=address)

    async def status(self, *pieces: bytes) -> int:
        """The status of the response to what is sent; 0 if the connection just ends."""
        async with await self.connect() as stream:
            return await status_after(stream, *pieces)

    async def wait_until_empty(self) -> None:
        """Wait for the end of all connections, which tells nobody."""
        with anyio.fail_after(20):
            while self.connections:  # noqa: ASYNC110
                await anyio.sleep(0.01)


async def status_after(stream: SocketStream, *pieces: bytes) -> int:
    with anyio.fail_after(20):
        try:
            for piece in pieces:
                await stream.send(piece)
            answer = await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return 0
    return int(answer.split(b" ", 2)[1])


async def send_for_ever(stream: SocketStream, first: bytes, more: bytes) -> None:
    await stream.send(first)
    while True:
        await stream.send(more)


async def wait_for_the_end(stream: SocketStream) -> bytes:
    """What comes until the connection is closed."""
    received = bytearray()
    with anyio.fail_after(20):
        try:
            while True:
                received += await stream.receive(MIB)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return bytes(received)


@asynccontextmanager
async def serving(
    kind: str, folder: Path, limits: Limits = DEFAULT_LIMITS, max_connections: int = 1024
) -> AsyncIterator[Served]:
    listener = listen("127.0.0.1", 0)
    if kind == "ui":
        config = DeskServer(SkillHost(Store.memory()), listener).config(limits)
    else:
        skills = Skills(write_tree(folder / "skills", small_tree()), watch=False)
        replay = 0 if kind == "serve without replay" else MIB
        options = HttpOptions(replay_bytes=replay, limits=limits, max_connections=max_connections)
        app = WebApp(build_server(skills), options, skills=skills)
        config = HttpServer(app, listener).config()
    async with serving_config(config, listener) as server:
        yield Served(listener.getsockname()[1], server.server_state.connections)


@asynccontextmanager
async def serving_app(
    app: Any, folder: Path, limits: Limits = DEFAULT_LIMITS, max_connections: int = 1024
) -> AsyncIterator[Served]:
    """The web server of ``serve`` around another application."""
    listener = listen("127.0.0.1", 0)
    options = HttpOptions(limits=limits, replay_bytes=0, max_connections=max_connections)
    config = HttpServer(WebApp(build_server(Skills(folder, watch=False)), options), listener).config()
    config.app, config.lifespan = app, "off"
    async with serving_config(config, listener) as server:
        yield Served(listener.getsockname()[1], server.server_state.connections)


@pytest.fixture(params=["serve", "serve without replay", "ui"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def answers(kind: str) -> int:
    """The status of a request that is within bounds. The desk knows its own address only."""
    return 421 if kind == "ui" else 200


def padded(size: int) -> bytes:
    """A request whose head has ``size`` bytes."""
    before, after = GET + b"X-Padding: ", b"\r\n\r\n"
    return before + b"a" * (size - len(before) - len(after)) + after


@rule("Z6")
async def test_a_head_above_32_kib_is_refused(kind: str, tmp_path: Path) -> None:
    async with serving(kind, tmp_path) as served:
        assert await served.status(padded(32 * KIB)) == answers(kind)
        assert await served.status(padded(32 * KIB + 1)) == 431


@rule("Z6")
async def test_more_than_100_headers_are_refused(kind: str, tmp_path: Path) -> None:
    async with serving(kind, tmp_path) as served:
        assert await served.status(GET + b"X: a\r\n" * 99 + b"\r\n") == answers(kind)
        assert await served.status(GET + b"X: a\r\n" * 100 + b"\r\n") == 431
        assert await served.status(POST + b"X: a\r\n" * 99 + b"Content-Length: 2\r\n\r\n{}") == 431


@pytest.mark.slow  # a server looks for it once a second
@rule("Z6")
async def test_an_endless_head_is_read_no_further(kind: str, tmp_path: Path) -> None:
    """Without a bound this takes 25 times its size of memory."""
    async with serving(kind, tmp_path) as served, await served.connect() as stream:
        with anyio.fail_after(20), pytest.raises(anyio.BrokenResourceError):
            await send_for_ever(stream, GET, b"X-Padding: " + b"a" * 64 * KIB + b"\r\n")


@rule("Z6")
async def test_trailers_are_bounded_like_headers(tmp_path: Path) -> None:
    async with serving("serve", tmp_path) as served, await served.connect() as stream:
        with anyio.fail_after(20), pytest.raises(anyio.BrokenResourceError):
            await send_for_ever(stream, CHUNKED + b"0\r\n", b"X: a\r\n" * 1000)


@rule("Z6")
async def test_a_body_that_never_ends_is_read_no_further(tmp_path: Path) -> None:
    async with serving("serve", tmp_path) as served, await served.connect() as stream:
        with anyio.fail_after(20), pytest.raises(anyio.BrokenResourceError):
            await send_for_ever(stream, CHUNKED, b"10000\r\n" + b"a" * 64 * KIB + b"\r\n")


@rule("Z6")
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(GET, id="half a head"),
        pytest.param(POST + b"Content-Length: 9\r\n\r\n{", id="half a body"),
        pytest.param(CHUNKED + b"1\r\n{\r\n", id="half a chunked body"),
        pytest.param(GET + b"\r\n" + GET, id="half a second head", marks=pytest.mark.slow),  # five seconds
    ],
)
async def test_a_request_that_does_not_arrive_in_time_ends_its_connection(sent: bytes, tmp_path: Path) -> None:
    async with serving("serve", tmp_path, HASTY) as served, await served.connect() as stream:
        await stream.send(sent)
        await wait_for_the_end(stream)


@rule("Z6")
async def test_a_slow_request_is_answered_with_408(kind: str, tmp_path: Path) -> None:
    async with serving(kind, tmp_path, HASTY) as served:
        assert await served.status(GET) == 408


@rule("Z6")
async def test_a_silent_connection_is_closed(kind: str, tmp_path: Path) -> None:
    async with serving(kind, tmp_path, HASTY) as served, await served.connect() as stream:
        await wait_for_the_end(stream)


@rule("Z6")
async def test_blank_lines_do_not_keep_a_connection_open(tmp_path: Path) -> None:
    async with serving("serve", tmp_path, HASTY) as served, await served.connect() as stream:
        assert await status_after(stream, GET + b"\r\n") == 200
        with anyio.fail_after(20), pytest.raises(anyio.BrokenResourceError):
            await send_for_ever(stream, b"", b"\r\n")


@rule("Z6")
async def test_silent_connections_make_room_for_a_request(kind: str, tmp_path: Path) -> None:
    most = 256 if kind == "ui" else FEW
    async with serving(kind, tmp_path, max_connections=most) as served, AsyncExitStack() as stack:
        for _ in range(most + 16):
            await stack.enter_async_context(await served.connect())
        assert await served.status(GET + b"\r\n") == answers(kind)


class Line:
    """A connection as the bounds see it."""

    def __init__(self, address: str, since: float | None = None, unsent_since: float = 0.0) -> None:
        self.client = (address, 1)
        self.since = since
        self.unsent_since = unsent_since
        self.was_closed = False
        self.transport = self.loop = self

    def is_waiting(self) -> bool:
        return self.since is not None

    def waiting_since(self) -> float:
        return self.since or 0.0

    def time(self) -> float:
        return 0.0

    def unsent(self, now: float) -> int:
        return 1

    def abort(self) -> None:
        self.was_closed = True


@rule("Z6")
@pytest.mark.parametrize(
    ("mine", "other"),
    [
        pytest.param("192.0.2.1", "192.0.2.2", id="IPv4"),
        pytest.param("2001:db8::1", "2001:db8:0:1::1", id="IPv6"),
        pytest.param("::ffff:192.0.2.1", "::ffff:192.0.2.2", id="IPv4 in IPv6"),
    ],
)
def test_one_address_cannot_take_all_connections(mine: str, other: str) -> None:
    connections: Any = Connections(FEW)
    assert [connections.add(Line(mine)) for _ in range(FEW)] == [True] * 4 + [False] * 4
    assert connections.add(Line(other))


@rule("Z6")
def test_a_new_address_always_gets_in() -> None:
    connections: Any = Connections(FEW)
    most, fewer = [Line("192.0.2.1") for _ in range(4)], [Line("192.0.2.2") for _ in range(3)]
    assert all(connections.add(line) for line in [*fewer, *most])
    new = Line("192.0.2.3")
    assert connections.add(new)
    assert [line.was_closed for line in [*most, *fewer]] == [True] + [False] * 6
    assert not connections.add(Line("192.0.2.1")), "one that has most takes nothing from others"
    assert connections.add(Line("192.0.2.3"))
    assert [line.was_closed for line in [*most, *fewer, new]] == [True] + [False] * 3 + [True] + [False] * 3


@rule("Z6")
@pytest.mark.skipif(sys.platform != "linux", reason="needs several loopback addresses")
async def test_streams_make_room_for_a_new_address(tmp_path: Path) -> None:
    """Streams of two addresses took all connections."""
    ended: list[int] = []

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["client"][0] != "127.0.0.3":
            await send({"type": "http.response.body", "body": b"a", "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
            ended.append(scope["client"][1])
        await send({"type": "http.response.body"})

    async with serving_app(endless, tmp_path, max_connections=FEW) as served, AsyncExitStack() as stack:
        streams: list[SocketStream] = []
        for n in range(FEW):
            stream = await stack.enter_async_context(await served.connect(f"127.0.0.{1 + n % 2}"))
            streams.append(stream)
            assert await status_after(stream, GET + b"\r\n") == (200 if n < FEW - 1 else 503)
        for _ in range(2 * FEW):  # those that are refused take no room from others
            await stack.enter_async_context(await served.connect("127.0.0.1"))
        async with await served.connect("127.0.0.3") as stream:
            assert await status_after(stream, GET + b"\r\n") == 200
        await wait_for_the_end(streams[0])
        assert len(ended) == 1


@rule("Z6")
def test_addresses_of_one_ipv6_network_share_their_connections() -> None:
    connections: Any = Connections(FEW)
    assert [connections.add(Line(f"2001:db8::{n}")) for n in range(1, 6)] == [True] * 4 + [False]


@rule("Z6")
def test_the_connection_that_waits_longest_makes_room() -> None:
    connections: Any = Connections(FEW)
    lines = [Line("192.0.2.1"), Line("192.0.2.1", 3.0), Line("192.0.2.1", 2.0), Line("192.0.2.1")]
    for line in lines:
        connections.add(line)
    assert connections.add(Line("192.0.2.1"))
    assert [line.was_closed for line in lines] == [False, False, True, False]


async def in_pieces(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(1000):  # the first few wait for the client to read
        await send({"type": "http.response.body", "body": b"a" * MIB, "more_body": True})


async def at_once(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(LONG))]})
    await send({"type": "http.response.body", "body": LONG})


@rule("Z6")
@pytest.mark.parametrize(
    ("app", "head"),
    [
        pytest.param(in_pieces, GET, id="in pieces"),
        pytest.param(at_once, GET, id="at once"),
        pytest.param(at_once, GET + b"Connection: close\r\n", id="at once and last"),
    ],
)
async def test_a_client_that_does_not_read_its_response_is_disconnected(
    app: Any, head: bytes, tmp_path: Path
) -> None:
    async with serving_app(app, tmp_path, HASTY) as served, await served.connect() as stream:
        await stream.send(head + b"\r\n")
        assert await stream.receive(1)
        await served.wait_until_empty()


@rule("Z6")
async def test_responses_that_clients_do_not_read_do_not_pile_up(tmp_path: Path) -> None:
    limits = replace(DEFAULT_LIMITS, max_unread_bytes=MIB)
    async with serving_app(at_once, tmp_path, limits) as served, AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(await served.connect()) for _ in range(3)]
        for stream in streams:
            await stream.send(GET + b"Connection: close\r\n\r\n")
            assert await stream.receive(1)
        received = [len(await wait_for_the_end(stream)) for stream in streams]
        assert [size >= len(LONG) for size in received] == [False, False, True]


@pytest.mark.parametrize(
    ("sizes", "ends"),
    [
        pytest.param((1, 20_000, 1, 40_000), False, id="in pieces"),
        pytest.param((60_000,), True, id="at once, to a client that sends no more"),
    ],
)
async def test_a_long_response_arrives_whole(sizes: tuple[int, ...], ends: bool, tmp_path: Path) -> None:
    bodies = [bytes(range(251)) * n for n in sizes]

    async def varied(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        for n, body in enumerate(bodies):
            await send({"type": "http.response.body", "body": body, "more_body": n < len(bodies) - 1})

    size = sum(map(len, bodies))
    async with serving_app(varied, tmp_path) as served, await served.connect() as stream:
        await stream.send(GET + b"Connection: close\r\n\r\n")
        begin = await stream.receive(1)
        if ends:
            await stream.send_eof()
        answer = begin + await wait_for_the_end(stream)
    assert answer.partition(b"\r\n\r\n")[2] == b"".join(bodies)


class Sink:
    """A connection whose client reads nothing."""

    def __init__(self) -> None:
        self.transport: Any = ChunkedTransport(cast("Any", self))
        self.size = 0

    def write(self, data: bytes) -> None:
        self.size += len(data)
        self.transport.is_full = True

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0  # as if the system had taken everything


@rule("Z6")
def test_a_response_counts_as_a_whole_until_its_last_piece_is_sent() -> None:
    """Otherwise a client that leaves the end of each response unread takes memory that is not counted."""
    sink = Sink()
    sink.transport.write(b"a" * MIB)
    held = [sink.transport.held()]
    while sink.size < MIB:
        sink.transport.resume()
        held.append(sink.transport.held())
    assert held == [MIB, MIB, MIB, 0]


@rule("Z6")
async def test_a_next_request_waits_until_its_client_has_read(tmp_path: Path) -> None:
    begun: list[str] = []

    async def counted(scope: Any, receive: Any, send: Any) -> None:
        begun.append(scope["path"])
        await at_once(scope, receive, send)

    async with serving_app(counted, tmp_path) as served, await served.connect() as stream:
        await stream.send(GET + b"\r\n")
        assert await stream.receive(1)
        await stream.send(GET + b"Connection: close\r\n\r\n")
        await anyio.wait_all_tasks_blocked()
        assert len(begun) == 1
        assert len(await wait_for_the_end(stream)) > 2 * len(LONG)
        assert len(begun) == 2


@rule("Z6")
def test_the_client_that_reads_nothing_for_longest_makes_room() -> None:
    connections: Any = Connections(FEW, limits=replace(DEFAULT_LIMITS, max_unread_bytes=2))
    lines = [Line("192.0.2.1", unsent_since=since) for since in (3.0, 1.0, 2.0)]
    for line in lines:
        connections.add_unread(line)
    assert [line.was_closed for line in lines] == [False, True, False]


@rule("Z6")
async def test_requests_that_wait_for_another_one_are_few(tmp_path: Path) -> None:
    """Each would take a kilobyte, and all of them together the time of everybody else."""
    begun: list[str] = []
    was_told = anyio.Event()

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        begun.append(scope["path"])
        while (await receive())["type"] != "http.disconnect":
            pass
        was_told.set()

    async with serving_app(endless, tmp_path) as served, await served.connect() as stream:
        await stream.send((GET + b"\r\n") * 10)
        with anyio.fail_after(20):
            await was_told.wait()
        await wait_for_the_end(stream)
    assert begun == ["/healthz"]


@rule("Z6")
async def test_requests_sent_at_once_are_all_answered(kind: str, tmp_path: Path) -> None:
    last = GET + b"Connection: close\r\n\r\n"
    async with serving(kind, tmp_path) as served, await served.connect() as stream:
        await stream.send((GET + b"\r\n") * 8 + last)
        assert (await wait_for_the_end(stream)).count(b"HTTP/1.1 %d " % answers(kind)) == 9


@rule("Z6")
@pytest.mark.parametrize("version", [b"", b"MCP-Protocol-Version: 2026-07-28\r\n"], ids=["handshake", "stateless"])
@pytest.mark.parametrize("kind", ["serve", "serve without replay"])
async def test_a_client_that_leaves_before_its_body_is_complete_is_no_error(
    kind: str, version: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    head = POST + version + b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    async with serving(kind, tmp_path) as server:
        async with await server.connect() as stream:
            await stream.send(head + b"Content-Length: 100\r\n\r\n{")
            while not server.connections:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        await server.wait_until_empty()
        assert await server.status(GET + b"\r\n") == 200  # the request before has ended
    assert "Traceback" not in capfd.readouterr().err
