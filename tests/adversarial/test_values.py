"""JSON that is small as bytes and large as objects: values are counted before anything is decoded (B1)."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import KIB, MIB, SMALL
from adversarial.expecting import listed, memory_below, only, refused
from adversarial.speaking import EVENTS, Raw, once
from rules import rule
from skillwire import Limits
from skillwire.client.bounds import ValueCounter
from skillwire.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

FEW = replace(SMALL, max_message_values=1000)
GZIP = (("Content-Encoding", "gzip"),)


async def many(request_id: Any) -> AsyncIterator[bytes]:
    yield b'{"jsonrpc": "2.0", "id": %d, "result": {"skills": [' % request_id
    yield b"{}," * 50_000 + b"{}]}}"


@rule("B1")
async def test_a_message_of_many_values_is_refused_before_it_is_decoded(server: HostileServer) -> None:
    """Over every transport; the next call is answered."""
    server.answers["skills/list"] = Raw(many)
    async with server.connect(dialect="extension", limits=FEW) as client:
        with memory_below(4 * MIB), refused(LimitError, "too-many-values", "B1"):
            await listed(client)
        del server.answers["skills/list"]
        assert await only(client)


@rule("B1")
async def test_a_few_kib_do_not_become_gigabytes(web: HostileServer) -> None:
    """With the limits that everybody has: 60 MB of empty objects in 58 KB."""
    packed = gzip.compress(b'{"jsonrpc": "2.0", "id": 2, "result": {"skills": [' + b"{}," * 20_000_000)
    assert len(packed) < 60 * KIB
    web.answers["skills/list"] = Raw(once(packed), headers=GZIP)
    async with web.connect(dialect="extension", limits=Limits()) as client:
        with memory_below(8 * MIB), refused(LimitError, "too-many-values", "B1"):
            await listed(client)


HEADS = {
    "one line": b"data: ",
    "a quote in a comment": b': "\ndata: ',
    "a quote in another field": b'event: "\r\nid: "\rdata: ',
    "events before it": b'data: {"jsonrpc": "2.0", "method": "notifications/message"}\n\n' * 3 + b"data: ",
}


@rule("B1")
@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
async def test_the_values_of_an_event_are_counted(web: HostileServer, head: bytes) -> None:
    async def event(request_id: Any) -> AsyncIterator[bytes]:
        yield head
        async for chunk in many(request_id):
            yield chunk
        yield b"\n\n"

    web.answers["skills/list"] = Raw(event, kind=EVENTS)
    async with web.connect(dialect="extension", limits=FEW) as client:
        with memory_below(4 * MIB), refused(LimitError, "too-many-values", "B1"):
            await listed(client)


@rule("B1")
async def test_a_charset_does_not_hide_the_values_of_an_event(web: HostileServer) -> None:
    """In UTF-7 no brace is a brace. A stream of events is UTF-8, whatever its head says."""

    async def event(request_id: Any) -> AsyncIterator[bytes]:
        whole = b"".join([chunk async for chunk in many(request_id)]).decode()
        yield b"data: " + whole.replace("{}", "+AHsAfQ-").encode() + b"\n\n"

    web.answers["skills/list"] = Raw(event, kind=f"{EVENTS}; charset=utf-7")
    async with web.connect(dialect="extension", limits=replace(FEW, max_message_values=60_000)) as client:
        with pytest.raises(Exception, match="message-invalid"):  # as UTF-8 it is no JSON, and nothing is decoded
            await listed(client)


@rule("B1", "R1")
async def test_a_file_of_commas_and_brackets_is_just_a_file(server: HostileServer) -> None:
    """What is inside a string is no value."""
    data = b'"\\,[{},\\\\"' * 5_000
    server.entries.clear()
    server.add("flat", {"SKILL.md": b"---\nname: flat\ndescription: D\n---\n", "data.json": data})
    async with server.connect(dialect="extension", limits=FEW) as client:
        assert (await client.read_resource(await only(client), "skill://flat/data.json")).data == data


@rule("B1", "I1")
async def test_an_index_of_many_values_is_refused_before_it_is_decoded(server: HostileServer) -> None:
    """It comes as text inside a message."""
    server.add_index()
    server.files["skill://index.json"] = b'{"skills": [' + b"{}," * 15_000 + b"{}]}"
    async with server.connect(dialect="index", limits=FEW) as client:
        with refused(LimitError, "too-many-values", "B1"):
            await listed(client)


@rule("B1")
async def test_a_manifest_of_many_values_is_refused_before_it_is_decoded(server: HostileServer) -> None:
    server.files["skill://flat/_manifest"] = b'{"files": [' + b"{}," * 15_000 + b"{}]}"
    async with server.connect(dialect="fallback", limits=FEW) as client:
        with refused(LimitError, "too-many-values", "B1"):
            await client.get_skill("skill://flat/SKILL.md")


@rule("B1")
async def test_a_page_of_a_listing_is_smaller_than_a_file(server: HostileServer) -> None:
    """A file of the same size is read."""
    server.entries[0]["x"] = "x" * 60 * KIB
    server.files["skill://flat/notes.md"] = b"x" * 60 * KIB
    async with server.connect(dialect="extension", limits=replace(SMALL, max_page_bytes=32 * KIB)) as client:
        assert len((await client.read_unverified("skill://flat/notes.md")).data) == 60 * KIB
        with refused(LimitError, "message-too-large", "B1") as caught:
            await listed(client)
    assert "max_page_bytes" in caught.value.hint


DOCUMENTS: dict[str, Any] = {
    "strings": ["a,b", "[{", 'quoted "," text', "back\\slash", '\\"', "\\"],
    "objects": {"a": {"b": [1, 2, 3]}, "c": [{}, [], [[]]]},
    "resources": [{"uri": "skill://a", "digest": "sha256:0", "size": 1}] * 3,
}


def counted(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(counted, value.values()))
    return 1 + sum(map(counted, value)) if isinstance(value, list) else 1


@rule("B1")
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_no_value_escapes_the_count_wherever_the_pieces_end(document: Any, size: int) -> None:
    """Strings are no values, whatever is in them; an empty list or object may count twice."""
    data = json.dumps(document).encode()

    def is_more_than(enough: int) -> bool:
        counter = ValueCounter(enough)
        return any(counter.add(data[start : start + size]) for start in range(0, len(data), size))

    assert is_more_than(counted(document) - 2)
    assert not is_more_than(2 * counted(document))
