"""Answers that are sent again are the ones that the SDK would give: the slow path is the oracle."""

from __future__ import annotations

import gzip
import json
import logging
import os
import random
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from interaction.replaying import FLAT, META, asking
from rotation import every_setting, settings
from rules import rule
from skillwire.catalog import safe_open
from skillwire.catalog.directory import DirectoryCatalog
from skillwire.server.access import Access, digest_token, new_token
from skillwire.server.http import access_log
from trees import replace_file, skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2

pytestmark = pytest.mark.anyio

ASKED: list[tuple[str, dict[str, Any]]] = [
    ("skills/list", {}),
    ("skills/get", {"uri": FLAT}),
    ("skills/get", {"uri": "skill://nowhere/SKILL.md"}),
    ("resources/read", {"uri": FLAT}),
    ("resources/read", {"uri": "skill://odd-names/assets/100%25.bin"}),
    ("resources/read", {"uri": "skill://nowhere/SKILL.md"}),
    ("resources/read", {"uri": "skill://index.json"}),
    ("resources/read", {"uri": 7}),
    ("resources/directory/read", {"uri": "skill://acme/release"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("server/discover", {}),
    ("nonsense", {}),
]


@pytest.fixture(autouse=True, params=settings([("parser",), ("application",)]))
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """From where an answer is sent again. Where requests are logged, each goes through the application."""
    access_log.setLevel(logging.INFO if request.param == ("application",) else logging.WARNING)
    yield
    access_log.setLevel(logging.NOTSET)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(safe_open, "_SETTLED_NS", 0)  # the files are new, and nobody writes one twice in a tick
    return write_tree(tmp_path / "skills", small_tree())


def shown(response: httpx2.Response) -> tuple[int, dict[str, str], Any]:
    headers = {name: value for name, value in response.headers.items() if name not in ("date", "content-length")}
    return response.status_code, headers, response.content


@every_setting
async def test_every_answer_is_the_one_the_sdk_gives(root: Path) -> None:
    """The same request to a server that replays, twice, and to one that does not."""
    async with asking(root) as ours, asking(root, replay=0) as oracle:
        for encoding in ("identity", "gzip"):
            for method, params in ASKED:
                headers = {"accept-encoding": encoding, "host": "127.0.0.1:1"}
                right = await oracle.ask(method, params, **headers)
                for _ in range(2):
                    assert shown(await ours.ask(method, params, **headers)) == shown(right), (method, params)
        assert await ours.replayed() == 3 * 6  # the six that are results about skills: but for the first time
        assert await oracle.replayed() == 0


@every_setting
async def test_an_answer_carries_the_id_of_its_request(root: Path) -> None:
    async with asking(root) as ours:
        await ours.ask("skills/get", {"uri": FLAT})
        for own_id in (0, 123456789012345, "a", "3f0c2d9e-1b7a-4a52-9d35-0c6e3c1a7f00", "id"):
            again = (await ours.ask("skills/get", {"uri": FLAT}, own_id=own_id)).json()
            assert again["id"] == own_id
            assert type(again["id"]) is type(own_id)
            assert again["result"]["skill"]["frontmatter"]["name"] == "flat"
        assert await ours.replayed() == 4  # all but "id", which stands in that body twice


@every_setting
async def test_an_id_that_could_be_written_otherwise_goes_to_the_sdk(root: Path) -> None:
    async with asking(root) as ours, asking(root, replay=0) as oracle:
        params = json.dumps({"_meta": META, "uri": FLAT})
        for own_id in ('"\\u0061"', '"a\\nb"', "1e3", '"é"', "1" * 40, '"' + "x" * 200 + '"', "-1"):
            body = f'{{"jsonrpc":"2.0","id":{own_id},"method":"skills/get","params":{params}}}'
            right = await oracle.send(body, "skills/get", {"uri": FLAT}, host="127.0.0.1:1")
            for _ in range(2):
                answer = await ours.send(body, "skills/get", {"uri": FLAT}, host="127.0.0.1:1")
                assert shown(answer) == shown(right), own_id
        assert await ours.replayed() == 0


@every_setting
async def test_bodies_that_only_look_alike_are_not_the_same(root: Path) -> None:
    """An ``id`` in the parameters is a parameter; two of them, a batch or a notification are no request."""
    async with asking(root) as ours, asking(root, replay=0) as oracle:
        inner = json.dumps({"_meta": META, "uri": FLAT})
        beside = json.dumps({"_meta": META, "uri": FLAT, "id": 1})
        bodies = [
            f'{{"jsonrpc":"2.0","id":1,"method":"skills/get","params":{inner}}}',
            f'{{"jsonrpc":"2.0","id":1,"method":"skills/get","params":{beside}}}',
            f'{{"jsonrpc":"2.0","method":"skills/get","params":{beside}}}',
            f'{{"jsonrpc":"2.0","id":1,"id":2,"method":"skills/get","params":{inner}}}',
            f'{{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"skills/get","params":{inner}}}',
            f'[{{"jsonrpc":"2.0","id":1,"method":"skills/get","params":{inner}}}]',
            '{"jsonrpc":"2.0","id":1,"method":"skills/get"',
            '{"jsonrpc":"2.0","id":1,"method":[],"params":{}}',
            '{"jsonrpc":"2.0","id":1,"method":{},"params":{}}',
            '{"jsonrpc":"2.0","id":1,"method":"skills/get","params":[]}',
            '{"jsonrpc":"2.0","id":1,"method":"skills/get","params":7}',
            "",
        ]
        for body in [*bodies, *bodies]:
            right = await oracle.send(body, "skills/get", {"uri": FLAT}, host="127.0.0.1:1")
            answer = await ours.send(body, "skills/get", {"uri": FLAT}, host="127.0.0.1:1")
            assert shown(answer) == shown(right), body


@every_setting
async def test_requests_with_a_query_or_in_a_session_are_not_those_without(root: Path) -> None:
    async with asking(root) as ours:
        await ours.ask("skills/get", {"uri": FLAT})
        await ours.ask("skills/get", {"uri": FLAT})
        assert (ours.through, await ours.replayed()) == (1, 1)
        for _ in range(2):
            await ours.ask("skills/get", {"uri": FLAT}, **{"mcp-session-id": "of-somebody"})
        assert await ours.replayed() == 1
        ours.url += "?of=somebody"
        await ours.ask("skills/get", {"uri": FLAT})
        ours.url = ours.url.partition("?")[0]
        assert await ours.replayed() == 1


@rule("R2")
async def test_a_changed_file_is_seen_by_the_next_read(root: Path) -> None:
    """Nobody watches, and still the bytes and the entry are the new ones."""
    async with asking(root) as ours:
        for text in ("One.", "Two.", "Three."):
            new = skill_md("flat", text)
            replace_file(root / "flat" / "SKILL.md", new)
            for _ in range(3):
                read = (await ours.ask("resources/read", {"uri": FLAT})).json()
                assert read["result"]["contents"][0]["text"] == new.decode()
            got = (await ours.ask("skills/get", {"uri": FLAT})).json()["result"]["skill"]
            assert got["frontmatter"]["description"] == text
            listed = (await ours.ask("skills/list", {})).json()["result"]["skills"]
            assert got in listed
        assert await ours.replayed() == 4  # two at first; then one, since a read that finds a change is not kept


async def test_a_file_that_is_replaced_or_gone_is_not_sent_again(root: Path) -> None:
    uri = "skill://acme/release/notes.md"
    async with asking(root) as ours:
        for _ in range(2):
            await ours.ask("resources/read", {"uri": uri})
        (root / "new").write_bytes(b"new ones\n")
        os.replace(root / "new", root / "acme/release/notes.md")
        text = (await ours.ask("resources/read", {"uri": uri})).json()["result"]["contents"][0]["text"]
        assert text == "new ones\n"
        (root / "acme/release/notes.md").unlink()
        assert (await ours.ask("resources/read", {"uri": uri})).json()["error"]["code"] == -32602


async def test_a_folder_that_became_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    """Links are never followed, though the file behind is the very same."""
    async with asking(root) as ours:
        for _ in range(2):
            assert (await ours.ask("resources/read", {"uri": FLAT})).status_code == 200
        (root / "flat").rename(tmp_path / "elsewhere")
        (root / "flat").symlink_to(tmp_path / "elsewhere")
        assert (await ours.ask("resources/read", {"uri": FLAT})).json()["error"]["code"] == -32602


async def test_a_listing_made_while_a_change_is_on_its_way_is_not_kept(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new picture is there a moment before who keeps a view of it hears so."""
    token = new_token()[0]
    access = Access(tokens={digest_token(token): "agent"}, see={"agent": ("acme", "fresh")})
    bearer = {"authorization": f"Bearer {token}"}

    def listed(answer: httpx2.Response) -> bool:
        return "skill://fresh/SKILL.md" in answer.text

    async with asking(root, access) as ours:
        await ours.ask("skills/list", {}, **bearer)
        write_tree(root, {"fresh/SKILL.md": skill_md("fresh")})
        catalog = ours.skills.catalog
        assert isinstance(catalog, DirectoryCatalog)
        change = catalog._refresh(("fresh",))
        await ours.ask("skills/list", {}, **bearer)
        catalog._feed.publish(change)
        assert listed(await ours.ask("skills/list", {}, **bearer))


async def test_skills_declared_while_serving_are_listed(root: Path) -> None:
    async with asking(root) as ours:
        for _ in range(2):
            await ours.ask("skills/list", {})

        @ours.skills.skill("late")
        def late() -> dict[str, bytes]:
            return {"SKILL.md": skill_md("late")}

        assert "skill://late/SKILL.md" in (await ours.ask("skills/list", {})).text


@every_setting
async def test_strangers_are_refused_before_they_send_anything(root: Path) -> None:
    access = Access(tokens={digest_token("right"): "all"}, see={"all": ("*",)})
    async with asking(root, access) as ours:
        host, _, port = ours.url.removeprefix("http://").partition("/")[0].partition(":")
        with anyio.fail_after(20):
            stream = await anyio.connect_tcp(host, int(port))
            async with stream:
                head = f"POST /mcp HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-length: 100\r\n\r\n"
                await stream.send(head.encode())
                assert (await stream.receive()).startswith(b"HTTP/1.1 401")


async def test_a_file_written_just_now_is_read_each_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one tick of the clock, its times would not tell that it was written again."""
    monkeypatch.setattr(safe_open, "_SETTLED_NS", 3600 * 10**9)
    async with asking(root) as ours:
        for _ in range(3):
            await ours.ask("resources/read", {"uri": FLAT})
        assert await ours.replayed() == 0


@every_setting
async def test_callers_get_only_what_they_may_see(root: Path) -> None:
    """What one caller was answered is never another's."""
    tokens = {"billing": new_token()[0], "all": new_token()[0]}
    access = Access(
        tokens={digest_token(token): subject for subject, token in tokens.items()},
        see={"billing": ("acme/billing",), "all": ("*",)},
    )
    async with asking(root, access) as ours:
        sees: dict[str, set[int]] = {"all": set(), "billing": set(), "nobody": set()}
        for _ in range(3):
            for subject in sees:
                token = tokens.get(subject, "wrong")
                answer = await ours.ask("resources/read", {"uri": FLAT}, authorization=f"Bearer {token}")
                sees[subject].add(answer.status_code)
        assert sees == {"all": {200}, "billing": {400}, "nobody": {401}}
        assert await ours.replayed() == 2


@every_setting
async def test_a_rebound_host_is_refused_although_the_answer_is_kept(root: Path) -> None:
    async with asking(root) as ours:
        for _ in range(2):
            assert (await ours.ask("skills/get", {"uri": FLAT})).status_code == 200
        evil = await ours.ask("skills/get", {"uri": FLAT}, host="evil.example")
        assert evil.status_code == 421


@every_setting
async def test_large_answers_are_compressed_once_and_right(root: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(3000))
    (root / "flat" / "long.txt").write_text(text)
    uri = "skill://flat/long.txt"
    async with asking(root) as ours:
        for own_id in (1, 22, "three"):
            async with ours.web.stream(
                "POST",
                ours.url,
                content=json.dumps(
                    {
                        "jsonrpc": "2.0",
                        "id": own_id,
                        "method": "resources/read",
                        "params": {"_meta": META, "uri": uri},
                    }
                ),
                headers={
                    "content-type": "application/json",
                    "accept": "application/json, text/event-stream",
                    "accept-encoding": "gzip",
                    "mcp-protocol-version": "2026-07-28",
                    "mcp-method": "resources/read",
                    "mcp-name": uri,
                },
            ) as response:
                raw = b"".join([chunk async for chunk in response.aiter_raw()])
            assert response.headers["content-encoding"] == "gzip"
            answer = json.loads(gzip.decompress(raw))
            assert answer["id"] == own_id
            assert answer["result"]["contents"][0]["text"] == text
        plain = await ours.ask("resources/read", {"uri": uri}, **{"accept-encoding": "identity"})
        assert plain.json()["result"]["contents"][0]["text"] == text
        assert await ours.replayed() == 3


async def test_memory_is_bounded(root: Path) -> None:
    """The answer that was asked for least recently goes first."""
    for name in "abcde":
        (root / "flat" / f"{name}.txt").write_text(name * 10_000)
    (root / "flat" / "large.txt").write_text("x" * 20_000)
    async with asking(root, replay=48_000) as ours:

        async def is_replayed(name: str) -> bool:
            before = await ours.replayed()
            await ours.ask("resources/read", {"uri": f"skill://flat/{name}.txt"})
            return await ours.replayed() > before

        assert [await is_replayed(name) for name in "abcd"] == [False] * 4
        assert [await is_replayed(name) for name in "abcd"] == [True] * 4
        assert not await is_replayed("e")  # takes the place of "a"
        assert [await is_replayed(name) for name in "bcde"] == [True] * 4
        assert not await is_replayed("a")
        assert [await is_replayed("large") for _ in range(2)] == [False, False]  # more than a quarter of the room


async def test_what_compressing_adds_counts_too(root: Path) -> None:
    for name in "abc":
        (root / "flat" / f"{name}.txt").write_text(random.Random(name).randbytes(5000).hex())
    async with asking(root, replay=48_000) as ours:

        async def is_replayed(name: str, encoding: str) -> bool:
            before = await ours.replayed()
            await ours.ask("resources/read", {"uri": f"skill://flat/{name}.txt"}, **{"accept-encoding": encoding})
            return await ours.replayed() > before

        assert [await is_replayed(name, "identity") for name in "abcabc"] == [False] * 3 + [True] * 3
        assert [await is_replayed(name, "gzip") for name in "abc"] == [True] * 3
        assert not await is_replayed("a", "identity")  # the third, compressed, took its place
