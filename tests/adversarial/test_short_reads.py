"""The short way to a file posts what the SDK posts, hears what the SDK hears, and leaves the rest to the SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace

from adversarial.adversary import HostileServer
from adversarial.expecting import only
from adversarial.speaking import EVENTS, Raw, Refusal, once, to_message
from skillwire import SkillwireError, connect
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from adversarial.speaking import Answer, Asked
    from skillwire import SkillsClient

pytestmark = pytest.mark.anyio

PATHS = ["flat", "with space", "naïve/日本"]


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
    return str(ask.id).startswith("read-")


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
        result = web._honest("resources/read", params)
        assert isinstance(result, dict)

        async def body(request_id: Any) -> AsyncIterator[bytes]:
            yield b"data: " + to_message(request_id, {"resultType": "complete", **result}) + b"\n\n"

        return Raw(body, kind=EVENTS)

    web.answers["resources/read"] = events
    async with web.connect(short_reads=True) as client:
        assert len(await read_all(client)) == 2 * len(PATHS)
    assert [is_short(ask) for ask in reads(web)] == [True] + [False] * 2 * len(PATHS)


@pytest.mark.parametrize("status", [302, 404, 500, 503])
async def test_a_page_instead_of_an_answer_is_nothing_that_lasts(web: HostileServer, status: int) -> None:
    """The SDK's client asks again at once; the next file is read the short way again."""
    pages = iter([Raw(once(b"<!doctype html>"), status=status, kind="text/html")])
    web.answers["resources/read"] = lambda _: next(pages, None)
    async with web.connect(short_reads=True) as client:
        assert len(await read_all(client)) == 2 * len(PATHS)
    assert [is_short(ask) for ask in reads(web)] == [True, False] + [True] * (2 * len(PATHS) - 1)


ODD: dict[str, Answer] = {
    "a refusal": Refusal(-32602, "no such thing"),
    "an older refusal": Refusal(-32002, "no such resource"),
    "a failure": Refusal(-32603, "oops"),
    "nothing": {},
    "no contents": {"contents": []},
    "contents that are none": {"contents": "hello"},
    "no JSON": Raw(once(b"{")),
    "a list": Raw(once(b"[]")),
    "another id": Raw(once(b'{"jsonrpc": "2.0", "id": "other", "result": {}}')),
    "deep": Raw(once(b'{"jsonrpc": "2.0", "id": 1, "result": ' + b"[" * 100_000)),
    "an empty body": Raw(once(b"")),
    "accepted": Raw(once(b""), status=202),
    "not let in": Raw(once(b""), status=401, kind="text/plain"),
    "another kind": Raw(once(b"hello"), kind="text/plain"),
    "a number": Raw(once(b'{"jsonrpc": "2.0", "id": 1, "result": 5}')),
    "nobody is there": Raw(once(b""), status=0),
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
async def test_what_is_odd_ends_as_it_does_with_the_sdk_alone(web: HostileServer, answer: Answer) -> None:
    web.answers["resources/read"] = answer
    said: list[tuple[str, str]] = []
    for short in (False, True):
        async with web.connect(short_reads=short) as client:
            entry = await client.get_skill("skill://flat/SKILL.md")
            with pytest.raises(SkillwireError) as caught:
                await client.read_skill(entry)
            said.append((caught.value.reference, caught.value.message))
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
