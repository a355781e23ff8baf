"""Three replicas behind HAProxy on one PostgreSQL, while clients of both eras read, listen and publish.

Replicas are killed and restarted, the database restarts, and connections are cut. No byte is wrong, no publication
is lost, no read fails after one retry, and no caller sees what is hidden.
"""

from __future__ import annotations

import json
import random
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import psycopg
import pytest
from mcp.shared.exceptions import MCPError

from registry.replicas import Relay, Replica, haproxy, until_all_up
from registry.stage import Running, bearer, operator, publish, refunds
from registry.test_streams import event_stream, updates
from rules import rule
from skillwire.errors import SkillwireError
from skillwire.registry.app import Registry
from skillwire.registry.schema import SCHEMA
from skillwire.registry.store import SqlRegistryStore
from skillwire.store.place import open_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from databases import RestartingServer
    from interaction.conftest import Wire
    from skillwire.registry.client import RegistryClient

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SKILLS = [f"{namespace}/skill-{number}" for namespace in ("open", "acme") for number in range(4)]
LAST = "open/last"
SECRETS = ("hidden", "guarded")
PATIENCE = 120
ELSEWHERE = "127.0.0.2"  # another client


class Story:
    """What happens in the test: what was published, what was read, and what went wrong."""

    def __init__(self) -> None:
        self.texts: dict[str, set[str]] = {path: set() for path in (*SKILLS, LAST)}  # of each attempt
        self.versions: dict[tuple[str, str], str] = {}  # of each publication that was confirmed
        self.reads = 0
        self.retries = 0
        self.heard: set[str] = set()
        self.is_over = False
        self.wrong: list[str] = []

    async def more(self, reads: int, publications: int) -> None:
        """Wait until so many more succeed."""
        reads, publications = self.reads + reads, len(self.versions) + publications
        with anyio.fail_after(PATIENCE):
            while self.reads < reads or len(self.versions) < publications:
                assert not self.wrong, self.wrong
                await anyio.sleep(0.01)


async def publishing(story: Story, client: RegistryClient, seed: int) -> None:
    """Publish versions of all skills, again and again. A failed publication is repeated, as its hint says."""
    chance = random.Random(seed)
    for number in range(10_000):
        if story.is_over:
            return
        path = chance.choice(SKILLS)
        await publish_until_confirmed(story, client, path, f"{path} {seed} {number}\n")
        await anyio.sleep(0.02)  # so that reading is most of the load


async def publish_until_confirmed(story: Story, client: RegistryClient, path: str, body: str) -> None:
    files = refunds(body, path.rpartition("/")[2])
    story.texts[path].add(files["SKILL.md"].decode())
    for _ in range(10):
        with suppress(SkillwireError):
            done = await publish(client, path, files)
            story.versions[path, done["version"]] = files["SKILL.md"].decode()
            return
    story.wrong.append(f"{path} could not be published")


class Reader:
    """A client of one era, that reads for ever and checks all that it gets."""

    def __init__(self, story: Story, running: Running, token: str | None, mode: str, seed: int) -> None:
        self._story = story
        self._running = running
        self._token = token
        self._mode = mode
        self._chance = random.Random(seed)
        self._allowed = ("open",) if token is None else ("open", "acme")
        self._failed: Callable[[Wire], Awaitable[None]] | None = None  # what is tried once more

    async def run(self) -> None:
        """Read until the story is over, on a new connection after each failure."""
        while not self._story.is_over:
            connected = False
            try:
                async with self._running.mcp(self._token, self._mode) as wire:
                    connected = True
                    await self._read_until_it_fails(wire)
            except Exception as error:
                if not connected:
                    self._note(self._failed or self._list, error)

    async def _read_until_it_fails(self, wire: Wire) -> None:
        kinds = (self._list, self._read, self._read, self._read_version, self._read_version, self._ask_for_secrets)
        while not self._story.is_over:
            work = self._failed or self._chance.choice(kinds)
            try:
                await work(wire)
            except Exception as error:
                self._note(work, error)
                return
            self._failed = None
            self._story.reads += 1

    def _note(self, work: Callable[[Wire], Awaitable[None]], error: Exception) -> None:
        if self._failed is None:
            self._failed = work
            self._story.retries += 1
        else:
            self._story.wrong.append(f"{self._mode} {work.__name__} failed twice: {error!r}")
            self._failed = None

    async def _call(self, wire: Wire, method: str, **params: Any) -> dict[str, Any]:
        with anyio.fail_after(30):
            result = await wire.call(method, **params)
        text = json.dumps(result)
        if any(secret in text for secret in SECRETS) or ("acme" in text and "acme" not in self._allowed):
            self._story.wrong.append(f"{method} {params} shows what is hidden: {text[:500]}")
        return result

    async def _list(self, wire: Wire) -> None:
        found = await self._call(wire, "skills/list")
        paths = {entry["uri"].removeprefix("skill://").removesuffix("/SKILL.md") for entry in found["skills"]}
        if paths - {path for path in (*SKILLS, LAST) if path.startswith(self._allowed)}:
            self._story.wrong.append(f"listed: {paths}")

    async def _read(self, wire: Wire) -> None:
        path = self._chance.choice([path for path in SKILLS if path.startswith(self._allowed)])
        uri = f"skill://{path}/SKILL.md"
        found = await self._call(wire, "resources/read", uri=uri)
        if found["contents"][0]["text"] not in self._story.texts[path]:
            self._story.wrong.append(f"{uri} has other bytes: {found}")

    async def _read_version(self, wire: Wire) -> None:
        known = [key for key in self._story.versions if key[0].startswith(self._allowed)]
        path, version = self._chance.choice(known)
        namespace, _, name = path.partition("/")
        uri = f"skill://{namespace}/@{version}/{name}/SKILL.md"
        found = await self._call(wire, "resources/read", uri=uri)
        if found["contents"][0]["text"] != self._story.versions[path, version]:
            self._story.wrong.append(f"{uri} has other bytes: {found}")

    async def _ask_for_secrets(self, wire: Wire) -> None:
        for path in (*(f"{secret}/refunds" for secret in SECRETS), "guarded/@0.1.0/refunds"):
            try:
                with anyio.fail_after(30):
                    found = await wire.call("resources/read", uri=f"skill://{path}/SKILL.md")
                self._story.wrong.append(f"{path} is readable: {found}")
            except MCPError as error:
                if "[file-unknown]" not in error.error.message:
                    raise


async def listening(story: Story, running: Running, token: str, mode: str, number: int) -> None:
    """Listen, and listen again when the stream ends."""
    while not story.is_over:
        with suppress(httpx2.HTTPError, AssertionError, KeyError):
            async with event_stream(running, token, mode, [f"skill://{LAST}/SKILL.md"]) as response:
                async for uri in updates(response):
                    if not uri.startswith("skill://open/"):
                        story.wrong.append(f"heard of {uri}")
                    story.heard.add(f"{number} {uri}")
        await anyio.sleep(0.05)


@asynccontextmanager
async def three_replicas(
    restarting_postgres: RestartingServer, folder: Path
) -> AsyncIterator[tuple[Running, list[Replica], Relay]]:
    """Three replicas behind the proxy. The third one reaches the database through a relay."""
    store = SqlRegistryStore(await open_database(restarting_postgres.url, SCHEMA, patience=30))
    async with Relay(restarting_postgres.socket).running() as relay:
        through = f"postgresql://postgres@127.0.0.1:{relay.port}/postgres"
        replicas = [Replica(restarting_postgres.url, folder) for _ in range(2)] + [Replica(through, folder)]
        try:
            for replica in replicas:
                replica.start()
            for replica in replicas:
                await replica.until_ready()
            assert len([replica for replica in replicas if replica.token]) == 1
            with haproxy(replicas, folder) as url:
                await until_all_up(url, len(replicas))
                yield Running(Registry(store), url), replicas, relay
        finally:
            for replica in replicas:
                replica.kill()
            await store.close()


def cut_connections(url: str) -> None:
    """End all connections to the database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid != pg_backend_pid()"
        )


@rule("G1", "L1", "R1", "S1", "V1")
async def test_with_failures_everywhere_every_answer_is_right(
    restarting_postgres: RestartingServer, tmp_path: Path
) -> None:
    story = Story()
    async with (
        three_replicas(restarting_postgres, tmp_path) as (running, replicas, relay),
        AsyncExitStack() as stack,
    ):
        await running.namespace("open", public=True)
        await running.namespace("acme", roles={"user:eve": "reader"})
        await running.namespace("hidden")
        await running.namespace("guarded", public=True, reviewed=True)
        eve, root = await running.token("user:eve"), await running.token("user:operator")
        ada, ben = [await stack.enter_async_context(running.api(root)) for _ in range(2)]
        for namespace in SECRETS:
            await publish(ada, f"{namespace}/refunds", refunds(f"{namespace}\n"))
        for path in (*SKILLS, LAST):
            await publish_until_confirmed(story, ada, path, f"{path} first\n")

        async with anyio.create_task_group() as group:
            for seed, client in enumerate((ada, ben)):
                group.start_soon(publishing, story, client, seed)
            for seed in range(6):
                mode, token = ("auto", "legacy")[seed % 2], (None, eve)[seed // 2 % 2]
                group.start_soon(Reader(story, running, token, mode, seed).run)
            for number, mode in enumerate(("auto", "legacy")):
                group.start_soon(listening, story, running, eve, mode, number)
            await story.more(100, 10)

            for replica in replicas:
                replica.kill()
                await story.more(60, 5)
                replica.start()
                await replica.until_ready()
                await until_all_up(running.url, len(replicas))
            for replica in replicas:  # as the page for operators says
                await anyio.to_thread.run_sync(replica.stop)
                await story.more(30, 3)
                replica.start()
                await replica.until_ready()
                await until_all_up(running.url, len(replicas))
            for _ in range(5):
                cut_connections(restarting_postgres.url)
                await story.more(30, 3)
            for _ in range(5):
                relay.reset()
                await story.more(30, 3)
            for _ in range(2):
                await anyio.to_thread.run_sync(restarting_postgres.restart)
                await story.more(60, 5)
            replicas[0].kill()  # a replica and connections at once
            cut_connections(restarting_postgres.url)
            relay.reset()
            await story.more(60, 5)

            story.heard.clear()
            with anyio.fail_after(PATIENCE):
                expected = {f"{number} skill://{LAST}/SKILL.md" for number in range(2)}
                while not expected <= story.heard:  # listeners connect again, and hear again
                    await publish_until_confirmed(story, ada, LAST, f"{time.time_ns()}\n")
                    await anyio.sleep(0.1)
            story.is_over = True
            group.cancel_scope.cancel()
        print(f"\n{story.reads} reads, {story.retries} retries, {len(story.versions)} publications")
        assert story.wrong == []
        await check_address(running, root)
        await check_everything(story, running, ada)
        for replica in replicas:
            assert "Traceback" not in replica.words


async def check_address(running: Running, token: str) -> None:
    """The log has the address of the client, and not that of the proxy."""
    transport = httpx2.AsyncHTTPTransport(local_address=ELSEWHERE)
    async with httpx2.AsyncClient(transport=transport, headers=bearer(token)) as web:
        url = f"{running.url}/v1/namespaces/acme"
        assert (await web.patch(url, json={"public": True}, headers={"X-Forwarded-For": "192.0.2.7"})).is_success
    [newest] = await running.registry.store.audit(operator(), namespace="acme", limit=1)
    assert (newest.what, newest.address) == ("namespace-changed", ELSEWHERE)


async def check_everything(story: Story, running: Running, client: RegistryClient) -> None:
    """Every confirmed publication is there with its bytes, every attempt is whole, and fsck finds nothing."""
    for (path, version), text in story.versions.items():
        digest = (await client.call("GET", f"skills/{path}/-/versions/{version}"))["files"][0]["digest"]
        assert (await client.file(path, version, "SKILL.md", digest)).decode() == text
    for path, texts in story.texts.items():
        history = await running.registry.store.history(operator().identity, path)
        assert len(history) <= len(texts)  # a repeated publication is not a second version
        assert {line.version for line in history} >= {version for at, version in story.versions if at == path}
    assert [fault async for fault in running.registry.store.check()] == []
