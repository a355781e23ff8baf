"""What a registry costs with 1,000 and with 100,000 skills, on SQLite and on PostgreSQL.

    python -m benchmarks.registry
    python -m benchmarks.registry --skills 200 1000 --rounds 5     # a quick look

The skills are generated (see ``requests_and_skills``), in namespaces of 100, half of which are public. The first
run publishes them to SQLite (minutes; kept below ``benchmarks/.cache``) and copies the rows to a server of
PostgreSQL, which the package ``pgserver`` starts. Both engines flush each commit to the disk.

- **Through the store**: by turns for both sizes, in one process. A *page* has 100 skills, from a random place on.
  The *reader* has a role in three private namespaces. Each figure stands beside a bare ``SELECT`` of the same
  bytes on a connection of its own, without decoding. Searched for are requests of the
  corpus, as people write them.
- **Publishing** a version with five new files: six transactions. Its floor makes the same changes in as many
  transactions on a copy of the database: the statements that changed rows, without those that looked.
- **Over HTTP**: ``skillwire registry`` as a process for each size, one connection, the stateless era; beside an
  empty answer of the same server. Memory is that of the process after all requests.
- **Visible**: three replicas on one PostgreSQL. A version is published at one of them. From its answer on: until
  a read at every replica has returned the new bytes, and until a subscriber at every replica was notified.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import random
import re
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2
import psycopg

from benchmarks.load import Wire, WrongAnswerError
from benchmarks.requests_and_skills import Writer, corpus_requests, corpus_skills
from benchmarks.scan import CACHE, MB
from benchmarks.server_process import running
from skillwire.catalog.cursor import encode_cursor
from skillwire.registry import administration, uploads, versions
from skillwire.registry.app import make_administrator
from skillwire.registry.client import RegistryClient
from skillwire.registry.contract import Draft
from skillwire.registry.model import Actor, Identity, ManifestFile, Namespace, SkillRef, build_manifest
from skillwire.registry.schema import SCHEMA
from skillwire.registry.store import SqlRegistryStore
from skillwire.search.text import parse_query
from skillwire.skill import digest_of
from skillwire.store.database import Session, storable
from skillwire.store.place import open_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence

    from skillwire.store.database import Database

Times = dict[str, list[float]]
ADMIN: Final = Identity("user:root", frozenset({"user:root"}), is_admin=True)
READER: Final = Identity("user:eve", frozenset({"user:eve"}))
OPERATOR: Final = Actor(ADMIN, "local", 1.8e9)
PAGE, NAMESPACE, AT_ONCE, FILES = 100, 100, 1_000, 5
PAGE_SQL: Final = (
    "SELECT document FROM served WHERE listed = 1 AND public = 1 AND path > ? ORDER BY path LIMIT 101"
)
GET_SQL: Final = "SELECT document FROM served WHERE path = ?"
READ_SQL: Final = "SELECT data FROM blob WHERE key = ? AND digest = ?"
_TABLES: Final = (
    "namespace", "role", "skill", "version", "blob", "version_file", "archive", "channel", "served",
    "served_words", "change", "clock",
)  # fmt: skip


# The same skills on both engines


async def sqlite_file(skills: int) -> Path:
    """A file with so many skills; made unless it is there."""
    path = CACHE / f"registry-{skills}.sqlite3"
    done = path.with_suffix(f".{len(SCHEMA.sqlite)}")
    if done.exists():
        return path
    path.unlink(missing_ok=True)
    CACHE.mkdir(exist_ok=True)
    CACHE.chmod(0o755)
    database, writer = await open_database(path, SCHEMA), Writer(corpus_skills())
    names = [f"team-{number:05d}" for number in range(max(10, skills // NAMESPACE))]

    def make_namespaces(session: Session) -> None:
        for number, name in enumerate(names):
            administration.create_namespace(session, OPERATOR, Namespace(name, public=number % 2 == 0))
        for name in names[1:7:2]:
            administration.grant(session, OPERATOR, name, "user:eve", "reader")

    def publish_some(session: Session, numbers: range) -> None:
        for number in numbers:
            skill, namespace = writer.skill(number), names[number % len(names)]
            name = re.sub("-+", "-", skill.name).strip("-")
            files = {
                "SKILL.md": skill._replace(name=name, body=skill.body[:800]).skill_md().encode(),
                "reference.md": f"{number}\n{skill.body[800:1800]}".encode(),
            }
            for data in sorted(files.values(), key=digest_of):
                uploads.put(session, OPERATOR, namespace, digest_of(data), data)
            versions.publish(session, OPERATOR, draft_of(f"{namespace}/{name}", skill.description, files))

    await database.write(make_namespaces)
    for start in range(0, skills, AT_ONCE):
        numbers = range(start, min(skills, start + AT_ONCE))
        await database.write(lambda session, numbers=numbers: publish_some(session, numbers))
    await database.close()
    done.touch()
    return path


def draft_of(path: str, description: str, files: dict[str, bytes]) -> Draft:
    rows = [ManifestFile(name, digest_of(data), len(data)) for name, data in files.items()]
    frontmatter = {"name": path.rpartition("/")[2], "description": description}
    return Draft(path, build_manifest(frontmatter, rows), None, "stable", listed=True)


@contextmanager
def postgres_server() -> Iterator[Callable[[str, str], str]]:
    """A server of PostgreSQL; a function that makes a database with a name, from a template."""
    import pgserver  # late: it imports much

    folder = Path(tempfile.mkdtemp(prefix="skillwire-benchmark-"))
    folder.chmod(0o755)  # as root, the server runs as another user
    server = pgserver.get_server(folder / "data", cleanup_mode="delete")
    address = server.get_uri().replace(":@", "@")

    def create(name: str, template: str = "template0") -> str:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(sql(f"DROP DATABASE IF EXISTS {name}"))
            connection.execute(sql(f"CREATE DATABASE {name} TEMPLATE {template}"))
        return address.replace("/postgres?", f"/{name}?")

    try:
        yield create
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


async def copy_rows(path: Path, url: str) -> None:
    """Copy the rows of a file to a new database."""
    await (await open_database(url, SCHEMA)).close()
    with sqlite3.connect(path) as source, psycopg.connect(url) as target:
        target.execute("SET session_replication_role = replica")  # without triggers: the clock has a row already
        target.execute("DELETE FROM clock")
        for table in _TABLES:
            is_index = table == "served_words"
            found = source.execute(f"SELECT {'rowid, words' if is_index else '*'} FROM {table}")
            columns = ", ".join(column[0] for column in found.description)
            with target.cursor().copy(sql(f"COPY {table} ({columns}) FROM STDIN")) as copy:
                for row in found:
                    copy.write_row((row[0], " ".join(f"'{word}'" for word in row[1].split())) if is_index else row)
        for table in ("skill", "version"):
            target.execute(sql(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"))
    with psycopg.connect(url, autocommit=True) as target:
        target.execute("VACUUM ANALYZE")


def sql(text: str) -> Any:
    return text


# Through the store


class Bare:
    """A connection of the engine, with nothing of ours around it."""

    def __init__(self, place: str) -> None:
        if "://" in place:
            self._connection: Any = psycopg.connect(place, autocommit=True)
            self._mark, self._begin, self._options = "%s", "BEGIN", {"binary": True}
        else:
            self._connection = sqlite3.connect(place, isolation_level=None)
            self._connection.execute("PRAGMA synchronous = FULL")
            self._mark, self._begin, self._options = "?", "BEGIN IMMEDIATE", {}

    def rows(self, statement: str, *values: Any) -> list[Any]:
        return self._connection.execute(statement.replace("?", self._mark), values, **self._options).fetchall()

    def write(self, statements: Iterable[tuple[str, Sequence[Sequence[Any]]]]) -> None:
        """Run statements with their rows of values, in one transaction."""
        self._connection.execute(self._begin)
        for statement, values in statements:
            if len(values) == 1:
                self._connection.execute(statement.replace("?", self._mark), values[0])
            else:
                self._connection.cursor().executemany(statement.replace("?", self._mark), values)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class Recorder(Session):
    """A session that notes which statements change rows."""

    def __init__(self, session: Session) -> None:
        self.dialect = session.dialect
        self.statements: list[tuple[str, list[tuple[Any, ...]]]] = []
        self._session = session

    def rows(self, sql: str, *values: Any) -> list[Any]:
        return self._session.rows(sql, *values)

    def run(self, sql: str, *values: Any) -> int:
        return self._noted(self._session.run(sql, *values), sql, [values])

    def run_each(self, sql: str, values: Iterable[Sequence[Any]]) -> int:
        rows = list(values)
        return self._noted(self._session.run_each(sql, rows), sql, rows)

    def _noted(self, changed: int, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        if changed:
            self.statements.append((sql, [tuple(map(storable, row)) for row in rows]))
        return changed


class Publisher:
    """Publishes new versions, and makes the same changes to a copy of the database."""

    def __init__(self, database: Database, copy: Bare, paths: Sequence[str]) -> None:
        self._database = database
        self._copy = copy
        self._paths = random.Random(2).sample(list(paths), len(paths))
        self._transactions: list[list[tuple[str, list[tuple[Any, ...]]]]] = []
        self._count = 0

    async def publish(self) -> None:
        """A version with five new files, as the HTTP API stores it."""
        path = self._paths[self._count % len(self._paths)]
        self._count += 1
        files = {
            f"part-{number}.md": f"{path} {self._count} {number}\n".encode() * 40 for number in range(FILES - 1)
        }
        files["SKILL.md"] = f"---\nname: x\n---\n{self._count}\n".encode()
        for data in files.values():
            await self._write(
                lambda session, data=data: uploads.put(
                    session, OPERATOR, path.partition("/")[0], digest_of(data), data
                ),
                concurrent=True,
            )
        draft = draft_of(path, "Changed by the benchmark.", files)
        await self._write(lambda session: versions.publish(session, OPERATOR, draft))

    async def repeat(self) -> None:
        """The changes of the last publication, on the copy."""
        for statements in self._transactions:
            self._copy.write(statements)
        self._transactions.clear()

    async def _write(self, work: Callable[[Session], object], *, concurrent: bool = False) -> None:
        def recorded(session: Session) -> Recorder:
            recorder = Recorder(session)
            work(recorder)
            session.changed += 1  # so that others are notified
            return recorder

        self._transactions.append((await self._database.write(recorded, concurrent=concurrent)).statements)


async def by_turns(rounds: int, kinds: dict[str, Callable[[], Awaitable[object]]]) -> tuple[Times, Times]:
    """Milliseconds of each kind, in each round; and those of the processor, in all threads of this process."""
    times: Times = {kind: [] for kind in kinds}
    busy: Times = {kind: [] for kind in kinds}
    warming = max(1, rounds // 10)
    for number in range(rounds + warming):
        for kind, work in kinds.items():
            begun, used = time.perf_counter(), time.process_time()
            await work()
            if number >= warming:
                busy[kind].append((time.process_time() - used) * 1000)
                times[kind].append((time.perf_counter() - begun) * 1000)
    return times, busy


def store_kinds(store: SqlRegistryStore, bare: Bare, publisher: Publisher) -> dict[str, Any]:
    """What is measured, by its name."""
    chance = random.Random(1)
    paths = [path for (path,) in bare.rows("SELECT path FROM served WHERE public = 1 ORDER BY path")]
    requests = [[term[0] for term in parse_query(each.text).terms] for each in corpus_requests()]
    blobs = dict(
        bare.rows(
            "SELECT s.path, f.digest FROM skill s JOIN version v ON v.skill_id = s.id"
            " JOIN version_file f ON f.version_id = v.id AND f.path = 'SKILL.md'"
        )
    )
    nobody = Identity("anonymous", frozenset())
    assert len(paths) > PAGE

    def key(path: str) -> str:
        return f"{path.partition('/')[0]}/"

    async def bare_rows(statement: str, *values: Any) -> None:
        bare.rows(statement, *values)

    def at() -> str:
        return chance.choice(paths[:-PAGE])  # so that a whole page comes after it

    async def read(*, plain: bool) -> None:
        path = at()
        if plain:
            bare.rows(READ_SQL, key(path), blobs[path])
        else:
            await store.read(nobody, SkillRef(path, version="0.1.0"), "SKILL.md")

    return {
        "clock": store.clock,
        "page": lambda: store.skills(nobody, at(), PAGE),
        "page of the reader": lambda: store.skills(READER, at(), PAGE),
        "bare page": lambda: bare_rows(PAGE_SQL, at()),
        "get": lambda: store.release(nobody, SkillRef(at())),
        "bare get": lambda: bare_rows(GET_SQL, at()),
        "read": lambda: read(plain=False),
        "bare read": lambda: read(plain=True),
        "search": lambda: store.search(READER, chance.choice(requests), 10),
        "publish": publisher.publish,
        "bare publish": publisher.repeat,
    }


# Over HTTP


def resident(pid: int) -> float:
    """Megabytes of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024 / MB


def port_of(url: str) -> int:
    return urlsplit(url).port or 80


async def http_kinds(url: str, paths: Sequence[str]) -> dict[str, Any]:
    chance = random.Random(3)
    wire, plain = Wire(port_of(url), "stateless"), http.client.HTTPConnection("127.0.0.1", port_of(url))
    await wire.open()

    def uri() -> dict[str, str]:
        return {"uri": f"skill://{chance.choice(paths)}/SKILL.md"}

    async def empty() -> None:
        plain.request("GET", "/healthz")
        assert plain.getresponse().read()

    async def page() -> None:
        cursor = encode_cursor("registry", chance.choice(paths[:-PAGE]))
        found = await wire.ask("skills/list", {"cursor": cursor})
        assert found["skills"]

    return {
        "empty": empty,
        "page": page,
        "get": lambda: wire.ask("skills/get", uri()),
        "read": lambda: wire.ask("resources/read", uri()),
    }


# Several replicas


@asynccontextmanager
async def listening(url: str, token: str, uri: str) -> AsyncIterator[asyncio.Queue[float]]:
    """The times at which a subscriber is told that a file was updated."""
    key, heard = "io.modelcontextprotocol", asyncio.Queue[float]()
    meta = {f"{key}/protocolVersion": "2026-07-28", f"{key}/clientInfo": {"name": "benchmark", "version": "1"}}
    params = {
        "_meta": {**meta, f"{key}/clientCapabilities": {}},
        "notifications": {"resourceSubscriptions": [uri]},
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {token}",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "subscriptions/listen",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    begun = asyncio.Event()

    async def listen() -> None:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=None) as web,
            web.stream("POST", f"{url}/mcp", json=body) as response,
        ):
            async for line in response.aiter_lines():
                begun.set()  # the first event acknowledges the subscription
                if "notifications/resources/updated" in line:
                    heard.put_nowait(time.perf_counter())

    task = asyncio.create_task(listen())
    await begun.wait()
    try:
        yield heard
    finally:
        task.cancel()


async def until_visible(place: str, replicas: int, rounds: int) -> Times:
    """Milliseconds from the answer to a publication until every replica has it, and has told a subscriber."""
    store = SqlRegistryStore(await open_database(place, SCHEMA))
    token = str(await make_administrator(store, only_first=False))
    await store.create_namespace(OPERATOR, Namespace("visible", public=True))
    await store.close()
    path, uri = "visible/refunds", "skill://visible/refunds/SKILL.md"
    times: Times = {"read": [], "heard": []}
    async with AsyncExitStack() as stack:
        urls = [
            stack.enter_context(running("registry", "--database", place)).url.rstrip("/") for _ in range(replicas)
        ]
        client = await stack.enter_async_context(RegistryClient.open(urls[0], token))
        wires = [Wire(port_of(url), "stateless") for url in urls]
        for wire in wires:
            await wire.open()

        async def seen(wire: Wire, text: str) -> float:
            while True:
                try:
                    found = await wire.ask("resources/read", {"uri": uri})
                except WrongAnswerError:
                    continue  # not published yet
                if found["contents"][0]["text"] == text:
                    return time.perf_counter()

        async def publish(number: int) -> str:
            text = f"---\nname: refunds\ndescription: Refunds.\n---\nRound {number}.\n"
            digest = digest_of(text.encode())
            await client.upload("visible", digest, text.encode())
            files = [{"path": "SKILL.md", "digest": digest, "size": len(text.encode())}]
            await client.call("POST", f"skills/{path}/-/versions", {"files": files})
            return text

        await publish(-1)
        ears = [await stack.enter_async_context(listening(url, token, uri)) for url in urls]
        for number in range(rounds + 3):
            text = await publish(number)
            answered = time.perf_counter()
            read = await asyncio.gather(*(seen(wire, text) for wire in wires))
            heard = await asyncio.gather(*(each.get() for each in ears))
            if number >= 3:
                times["read"].append((max(read) - answered) * 1000)
                times["heard"].append(max(0.0, max(heard) - answered) * 1000)
        for wire in wires:
            wire.drop()
    return times


# The report


def spread(times: Sequence[float]) -> str:
    return f"{statistics.median(times):.2f} / {statistics.quantiles(times, n=20)[-1]:.2f}"


def ratio(one: Sequence[float], other: Sequence[float]) -> str:
    """The median of the ratios within each round."""
    return f"{statistics.median(a / b for a, b in zip(one, other, strict=True)):.2f}"


def report(title: str, sizes: Sequence[int], times: Times, busy: Times, beside: dict[str, str]) -> None:
    """``busy``: processor time, or nothing if another process does the work."""
    small, large = sizes
    print(f"\n{title}: p50 / p95 in ms{' (p50 of processor time)' if busy else ''}\n")
    print(f"| | {small:,} skills | {large:,} skills | large / small | at {large:,}, beside |")
    print("|---|---|---|---|---|")
    for kind in [key.partition(" ")[2] for key in times if key.startswith(f"{small} ")]:
        few, many = f"{small} {kind}", f"{large} {kind}"
        cells = [spread(times[few]), spread(times[many]), ratio(times[many], times[few]), ""]
        if busy:
            extra = [*(f"{statistics.median(busy[key]):.2f}" for key in (few, many)), ratio(busy[many], busy[few])]
            cells = [f"{cell} ({more})" for cell, more in zip(cells[:3], extra, strict=True)] + [""]
        if kind in beside:
            cells[3] = f"{beside[kind]}: {ratio(times[many], times[f'{large} {beside[kind]}'])}"
        print(f"| {kind} | {' | '.join(cells)} |")
    sys.stdout.flush()


async def measure(title: str, sizes: Sequence[int], places: dict[int, tuple[str, str]], rounds: int) -> None:
    """``places``: a database of each size, and its copy."""
    kinds: dict[str, Any] = {}
    paths: dict[int, list[str]] = {}
    async with AsyncExitStack() as stack:
        for size in sizes:
            database, bare, copy = await open_database(places[size][0], SCHEMA), *map(Bare, places[size])
            stack.push_async_callback(database.close)
            stack.callback(bare.close)
            stack.callback(copy.close)
            found = bare.rows("SELECT path FROM served WHERE public = 1 ORDER BY path")
            paths[size] = [path for (path,) in found]
            store = SqlRegistryStore(database)
            own = store_kinds(store, bare, Publisher(database, copy, paths[size]))
            kinds |= {f"{size} {kind}": work for kind, work in own.items()}
        times, busy = await by_turns(rounds, kinds)
    beside = {kind: f"bare {kind}" for kind in ("page", "get", "read", "publish")}
    report(f"{title}, through the store", sizes, times, busy, beside)
    with ExitStack() as stack:
        kinds, servers = {}, {}
        for size in sizes:
            place = places[size][0]
            words = ("--database", place) if "://" in place else ("--state", str(Path(place).parent))
            servers[size] = stack.enter_context(running("registry", *words))
        for size in sizes:  # both serve now: a connection that sends nothing for seconds is ended
            own = await http_kinds(servers[size].url, paths[size])
            kinds |= {f"{size} {kind}": work for kind, work in own.items()}
        times, _ = await by_turns(rounds, kinds)
        memory = [f"{resident(servers[size].pid):.0f} MB" for size in sizes]
    report(f"{title}, over HTTP", sizes, times, {}, dict.fromkeys(("page", "get", "read"), "empty"))
    print(f"\nMemory of the process: {' and '.join(memory)}", flush=True)


async def run(arguments: argparse.Namespace) -> None:
    sizes, rounds = arguments.skills, arguments.rounds
    files = {size: await sqlite_file(size) for size in sizes}
    if "sqlite" in arguments.engine:
        with tempfile.TemporaryDirectory(prefix="skillwire-benchmark-") as folder:
            places: dict[int, tuple[str, str]] = {}
            for size in sizes:
                copies = [Path(folder, f"{size}-{kind}", "registry.sqlite3") for kind in ("own", "copy")]
                for copy in copies:
                    copy.parent.mkdir(mode=0o700)
                    shutil.copy(files[size], copy)
                places[size] = (str(copies[0]), str(copies[1]))
            await measure("SQLite", sizes, places, rounds)
    if "postgres" in arguments.engine:
        with postgres_server() as create:
            places = {}
            for size in sizes:
                own = create(f"own_{size}")
                await copy_rows(files[size], own)
                places[size] = (own, create(f"copy_{size}", f"own_{size}"))
            await measure("PostgreSQL 16", sizes, places, rounds)
            times = await until_visible(places[sizes[-1]][0], 3, rounds)
        print("\nFrom the answer to a publication, 3 replicas on PostgreSQL: p50 / p95 in ms\n\n| | |\n|---|---|")
        print(f"| every replica has returned the new bytes | {spread(times['read'])} |")
        print(f"| a subscriber at every replica was told | {spread(times['heard'])} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skills", type=int, nargs=2, default=[1_000, 100_000], metavar=("FEW", "MANY"))
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--engine", nargs="+", choices=("sqlite", "postgres"), default=["sqlite", "postgres"])
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
