"""The short way to a file posts what the SDK posts, hears what the SDK hears, and leaves the rest to the SDK."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from opentelemetry import trace

from adversarial.adversary import MIB, SMALL, HostileServer
from adversarial.expecting import hasty, only
from adversarial.speaking import EVENTS, Raw, Refusal, once, to_message
from rules import rule
from skillwire import SkillwireError, connect
from skillwire.client.posting import FIRST_ID
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from adversarial.speaking import Answer, Asked
    from skillwire import SkillsClient

pytestmark = pytest.mark.anyio

PATHS = ["flat", "with space/spaced", "naïve/日本/odd"]


@pytest.fixture
def web() -> HostileServer:
    server = HostileServer()
    for path in PATHS:
        name = path.rpartition("/")[2]
        server.add(path, {"SKILL.md": skill_md(name), "notes.md": b"notes\n"})
    return server


def reads(server: HostileServer) -> list[Asked]:
    return [ask for ask in server.asked if ask.method == "resources/read"]


def is_short(ask: Asked) -> bool:
    return ask.id >= FIRST_ID


async def read_all(client: SkillsClient) -> list[bytes]:
    """Every file of every skill."""
    return [
        (await client.read_resource(entry, file.uri)).data
        async for entry in client.list_skills()
        for file in entry.files
    ]


async def test_what_is_posted_is_what_the_sdk_posts(web: HostileServer) -> None:
    """All of ``params`` and of the headers; only the id is another, and with it the length."""
    found: list[list[tuple[Any, ...]]] = []
    for short in (False, True):
        web.asked.clear()
        async with web.connect(short_reads=short, headers={"X-Team": "blue"}) as client:
            assert len(await read_all(client)) == 2 * len(PATHS)
        assert {is_short(ask) for ask in reads(web)} == {short}
        found.append([(ask.params, _said(ask.headers)) for ask in reads(web)])
    assert found[0] == found[1]


def _said(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in ("content-length", "host")}


async def test_a_server_that_answers_in_events_is_not_asked_twice_for_long(web: HostileServer) -> None:
    async def events(params: dict[str, Any]) -> Raw:
        result = web.honest("resources/read", params)
        assert isinstance(result, dict)

        async def body(request_id: Any) -> AsyncIterator[bytes]:
            yield b"data: " + to_message(request_id, {"resultType": "complete", **result}) + b"\n\n"

        return Raw(body, kind=EVENTS)

    web.answers["resources/read"] = events
    async with web.connect(short_reads=True) as client:
        assert len(await read_all(client)) == 2 * len(PATHS)
    assert [is_short(ask) for ask in reads(web)] == [True] + [False] * 2 * len(PATHS)


async def test_a_server_that_redirects_is_left_to_the_sdk(web: HostileServer) -> None:
    """It would do so every time."""
    moved = iter([Raw(once(b""), status=307, kind="text/plain", headers=(("Location", "/mcp"),))])
    web.answers["resources/read"] = lambda _: next(moved, None)
    async with web.connect(short_reads=True) as client:
        assert len(await read_all(client)) == 2 * len(PATHS)
    assert [is_short(ask) for ask in reads(web)] == [True] + [False] * 2 * len(PATHS)


@pytest.mark.parametrize("method", ["server/discover", "resources/read"])
async def test_a_cookie_comes_back(web: HostileServer, method: str) -> None:
    """Behind a balancer it says which server it is."""

    async def with_cookie(params: dict[str, Any]) -> Raw:
        result = web.honest(method, params)
        assert isinstance(result, dict)
        stamp = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        return web.raw({**stamp, **result}, headers=(("Set-Cookie", "LB=A; Path=/"),))

    web.answers[method] = with_cookie
    sent: list[list[str | None]] = []
    for short in (False, True):
        web.asked.clear()
        async with web.connect(short_reads=short) as client:
            await read_all(client)
        sent.append([ask.headers.get("cookie") for ask in reads(web)])
        assert {is_short(ask) for ask in reads(web)} == {short}
    assert sent[0] == sent[1]
    assert sent[1][-1] == "LB=A"


@rule("B1")
async def test_many_answers_that_are_too_large_lose_no_connection(web: HostileServer) -> None:
    """The refusal is final, and nobody else's."""
    web.answers["resources/read"] = Raw(once(b"m" * (SMALL.max_message_bytes + 1)))
    async with web.connect(short_reads=True, limits=replace(SMALL, max_server_bytes=64 * MIB)) as client:
        entry = await client.get_skill("skill://flat/SKILL.md")
        said: list[str] = []

        async def read() -> None:
            with pytest.raises(SkillwireError) as caught:
                await client.read_skill(entry)
            said.append(caught.value.reference)

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(read)
        assert said == ["message-too-large"] * 8
        assert client.connection.opened == 1
    assert len(reads(web)) == 8


async def test_reads_use_a_connection_again(web: HostileServer) -> None:
    async with web.connect(short_reads=True) as client:
        entry = await client.get_skill("skill://flat/SKILL.md")
        for _ in range(20):
            await client.read_skill(entry)
        assert len(web.tasks) <= 3


CONTENT: dict[str, Any] = {"contents": [{"uri": "skill://flat/SKILL.md", "text": "hello"}]}
REFUSED = b'{"jsonrpc": "2.0", "id": 5, "error": {"code": -32602, "message": "no"}}'


def saying(result: dict[str, Any], **options: Any) -> Raw:
    """A result as it is, without anything that the era wants."""

    async def body(request_id: Any) -> AsyncIterator[bytes]:
        yield to_message(request_id, result)

    return Raw(body, **options)


ODD: dict[str, Answer] = {
    "a refusal": Refusal(-32602, "no such thing"),
    "a failure": Refusal(-32603, "oops"),
    "no contents": {"contents": []},
    "contents that are none": {"contents": "hello"},
    "no JSON": Raw(once(b"{")),
    "a list": Raw(once(b"[]")),
    "somebody else's refusal": Raw(once(REFUSED)),
    "another id": Raw(once(b'{"jsonrpc": "2.0", "id": "other", "result": {}}')),
    "deep": Raw(once(b'{"jsonrpc": "2.0", "id": 1, "result": ' + b"[" * 100_000)),
    "an empty body": Raw(once(b"")),
    "accepted": Raw(once(b""), status=202),
    "not let in": Raw(once(b""), status=401, kind="text/plain"),
    "another kind": Raw(once(b"hello"), kind="text/plain"),
    "nobody is there": Raw(once(b""), status=0),
    "torn": Raw(once(b'{"jsonrpc": "2.0", '), headers=(("Content-Length", "1000"),)),
    "broken gzip": Raw(once(b"this is none"), headers=(("Content-Encoding", "gzip"),)),
    "no resultType": saying(CONTENT),
    "a result and a failure": saying({"resultType": "complete", **CONTENT}, status=500),
    "a negative time to live": saying({"resultType": "complete", "ttlMs": -1, "cacheScope": "private", **CONTENT}),
    "too many": Raw(once(b"slow down"), status=429, kind="text/plain", headers=(("Retry-After", "60"),)),
    "not here": Raw(once(b"<!doctype html>"), status=404, kind="text/html"),
    "moved": Raw(once(b"<!doctype html>"), status=302, kind="text/html"),
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
async def test_what_is_odd_ends_as_it_does_with_the_sdk_alone(web: HostileServer, answer: Answer) -> None:
    web.answers["resources/read"] = answer
    said: list[tuple[str, str, int]] = []
    for short in (False, True):
        async with web.connect(short_reads=short) as client:
            entry = await client.get_skill("skill://flat/SKILL.md")
            never = answer in (ODD["somebody else's refusal"], ODD["another id"])
            with hasty(client) if never else nullcontext(), pytest.raises(SkillwireError) as caught:
                await client.read_skill(entry)
            said.append((caught.value.reference, caught.value.message, client.connection.opened))
    assert said[0] == said[1]


async def test_what_belongs_to_a_trace_goes_on_with_it(web: HostileServer) -> None:
    """The SDK's client sends it along; the short way would end it here."""
    span = trace.NonRecordingSpan(trace.SpanContext(1, 2, is_remote=False, trace_flags=trace.TraceFlags(1)))
    async with web.connect(short_reads=True) as client:
        entry = await client.get_skill("skill://flat/SKILL.md")
        with trace.use_span(span):
            await client.read_skill(entry)
        await client.read_skill(entry)
    within, after = reads(web)
    assert not is_short(within)
    assert within.params["_meta"]["traceparent"].split("-")[1] == f"{1:032x}"
    assert is_short(after)


async def test_a_proxy_is_the_sdks_to_find(web: HostileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with web.connect(short_reads=True) as client:
        await client.read_skill(await client.get_skill("skill://flat/SKILL.md"))
    assert [is_short(ask) for ask in reads(web)] == [False]


async def test_a_password_in_the_url_is_the_sdks_to_send() -> None:
    web = HostileServer()
    web.add("flat", {"SKILL.md": skill_md("flat")})
    async with web.serving() as url:
        named = str(url).replace("127.0.0.1", "ada:secret@127.0.0.1")
        async with connect(named, short_reads=True) as client:
            await client.read_skill(await only(client))
    [ask] = reads(web)
    assert ask.headers["authorization"].startswith("Basic ")
