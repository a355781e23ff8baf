"""The load client: one process, one loop over sockets, requests prepared as bytes; the same for every server.

    python -m benchmarks.peers.load < plan.json

A plan says which server, which requests, over how many connections and for how long; the report says how many
were answered, how long each took, and how busy this process was (a client near 100 % has measured itself).
Every answer must be a result; a sample is decoded afterwards and compared with what is on disk.
"""

from __future__ import annotations

import gc
import hashlib
import json
import select
import socket
import statistics
import sys
import time
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.peers.messages import (
    FIRST_ID,
    Answer,
    BadAnswerError,
    Line,
    Speaking,
    content,
    message,
    next_cursor,
    shake_hands,
)

_SAMPLED = 53  # one answer in so many is compared with the tree
_MAX_SAMPLES = 200
_WALKS = 10  # of a listing that takes less than such a part of our patience the second counts, not the first


@dataclass(slots=True)
class Plan:
    """What to ask, of whom, for how long."""

    port: int
    method: str
    uris: list[str] = field(default_factory=list)  # asked for in turn; empty: the listing, page by page
    digests: dict[str, str] = field(default_factory=dict)  # what a read of a URI has to give
    connections: int = 1
    seconds: float = 1.0
    warm_seconds: float = 0.2
    patience: float = 60.0
    modern: bool = True
    pause: float = 0.0  # between the requests of a connection: for latency under a light load


@dataclass(slots=True)
class Report:
    """What was measured; times in seconds."""

    count: int
    per_second: float
    p50: float
    p90: float
    p99: float
    worst: float
    client_cpu: float  # of one core
    asked: int = 0  # with the warm-up, for what a request costs the server
    skills: int = 0
    pages: int = 0
    size: int = 0
    page_p50: float = 0.0


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    answer: Answer
    number: int = 0
    sent: float = 0.0


class Load:
    """Requests over several connections, each sent as soon as the one before was answered."""

    def __init__(self, plan: Plan, speaking: Speaking) -> None:
        self._plan = plan
        self._requests = [speaking.request(plan.method, uri=uri) for uri in plan.uris]
        self._next = 0
        self._times: list[float] = []
        self._samples: list[tuple[int, bytes]] = []
        self._poll = select.epoll()
        self._connections = dict(self._connect() for _ in range(plan.connections))

    def run(self) -> Report:
        """Warm up, measure, and check the sample."""
        try:
            found = self._measure()
        finally:
            for connection in self._connections.values():
                connection.socket.close()
            self._poll.close()
        self._check()
        return found

    def _measure(self) -> Report:
        for connection in self._connections.values():
            self._send(connection)
        self._until(time.perf_counter() + self._plan.warm_seconds)
        self._times.clear()
        begun, busy = time.perf_counter(), time.process_time()
        self._until(begun + self._plan.seconds)
        wall, busy = time.perf_counter() - begun, time.process_time() - busy
        found = report(self._times, wall, busy)
        found.asked = self._next
        return found

    def _connect(self) -> tuple[int, _Connection]:
        made = socket.create_connection(("127.0.0.1", self._plan.port), timeout=self._plan.patience)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll.register(made, select.EPOLLIN)
        return made.fileno(), _Connection(made, Answer())

    def _send(self, connection: _Connection) -> None:
        connection.number = self._next
        self._next += 1
        head, tail = self._requests[connection.number % len(self._requests)]
        connection.answer = Answer()
        connection.sent = time.perf_counter()
        connection.socket.sendall(b"%b%d%b" % (head, FIRST_ID + connection.number, tail))

    def _until(self, deadline: float) -> None:
        """Answer after answer, at least one, until the time is over."""
        answered, too_late = False, deadline + self._plan.patience
        while (now := time.perf_counter()) < deadline or not answered:
            ready = self._poll.poll(self._plan.patience)
            if not ready or now > too_late:
                raise BadAnswerError(f"no answer within {self._plan.patience:.0f} seconds")
            for number, _ in ready:
                answered |= self._hear(self._connections[number])

    def _hear(self, connection: _Connection) -> bool:
        data = connection.socket.recv(262_144)
        if not data:
            raise BadAnswerError("the server closed the connection")
        if not connection.answer.add(data):
            return False
        self._times.append(time.perf_counter() - connection.sent)
        body = connection.answer.body()
        if connection.number % _SAMPLED == 0 and len(self._samples) < _MAX_SAMPLES:
            self._samples.append((connection.number, body))
        if self._plan.pause:
            time.sleep(self._plan.pause)
        self._send(connection)
        return True

    def _check(self) -> None:
        for number, body in self._samples:
            uri, answer = self._plan.uris[number % len(self._plan.uris)], message(body)
            if answer["id"] != FIRST_ID + number:
                raise BadAnswerError(f"the answer to another request: {answer['id']}")
            if self._plan.method == "skills/get" and answer["result"]["skill"]["uri"] != uri:
                raise BadAnswerError(f"not the skill that was asked for: {uri}")
            expected = self._plan.digests.get(uri)
            if expected is not None and hashlib.sha256(content(answer)).hexdigest() != expected:
                raise BadAnswerError(f"not the bytes on disk: {uri}")


def walk(plan: Plan, speaking: Speaking) -> Report:
    """List everything, page by page, as often as time allows; the first is a warm-up unless it takes very long."""
    with closing(Line(speaking, plan.patience)) as line:
        times: list[float] = []
        busy, begun = time.process_time(), time.perf_counter()
        pages = _pages(line, plan, times)
        walks = [time.perf_counter() - begun]
        warms_up = walks[0] < plan.patience / _WALKS
        if warms_up:
            times.clear()
            busy, begun, walks = time.process_time(), time.perf_counter(), []
        while not walks or time.perf_counter() < begun + plan.seconds:
            at = time.perf_counter()
            again = _pages(line, plan, times)
            walks.append(time.perf_counter() - at)
            if len(again) != len(pages):
                raise BadAnswerError(f"{len(pages)} pages, then {len(again)}")
        found = report(walks, time.perf_counter() - begun, time.process_time() - busy)
    found.asked = len(walks) + warms_up
    found.page_p50 = statistics.median(times)
    found.pages, found.size = len(pages), sum(len(page) for page in pages)
    found.skills = sum(len(message(page)["result"]["skills"]) for page in pages)
    return found


def _pages(line: Line, plan: Plan, times: list[float]) -> list[bytes]:
    pages: list[bytes] = []
    cursor: str | None = None
    deadline = time.perf_counter() + plan.patience
    while not pages or cursor is not None:
        begun = time.perf_counter()
        if begun > deadline:
            raise BadAnswerError(f"{len(pages)} pages within {plan.patience:.0f} seconds, and more to come")
        pages.append(line.ask(plan.method, **({} if cursor is None else {"cursor": cursor})))
        times.append(time.perf_counter() - begun)
        cursor = next_cursor(pages[-1])
    return pages


def report(times: list[float], wall: float, busy: float) -> Report:
    """The figures of what was measured."""
    ordered = sorted(times)

    def at(share: float) -> float:
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)]

    return Report(len(times), len(times) / wall, at(0.5), at(0.9), at(0.99), ordered[-1], busy / wall)


def main() -> None:
    plan = Plan(**json.load(sys.stdin))
    gc.disable()
    found: dict[str, Any]
    try:
        speaking = Speaking(plan.port) if plan.modern else shake_hands(plan.port)
        found = asdict(Load(plan, speaking).run() if plan.uris else walk(plan, speaking))
    except (BadAnswerError, OSError) as error:
        found = {"error": str(error) or type(error).__name__}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
