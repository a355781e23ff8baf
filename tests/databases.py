"""PostgreSQL for tests: one server for all workers of a run, and a new database for each test that wants one.

The server is that of the package ``pgserver``, or an existing one that ``SKILLWIRE_TEST_DATABASE`` names: the URL
of a database whose user may create others. The first test that needs the server starts it, and the end of the run
stops it. A server that a killed run left behind is stopped by the next one.

Where PostgreSQL cannot run, its tests are skipped; where ``CI`` is set, they fail.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import anyio
import pytest

from skillwire.store.place import open_database
from skillwire.store.schema import HOST_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from psycopg import Connection

    from skillwire.store.database import Schema

EXISTING = "SKILLWIRE_TEST_DATABASE"
_FOLDER = "SKILLWIRE_TEST_POSTGRES"
_SERVERS = Path(tempfile.gettempdir()) / f"skillwire-postgres-{os.getuid()}"
_START = "import pgserver, sys; print(pgserver.get_server(sys.argv[1], cleanup_mode=None).get_uri())"
# Tests kill processes, but no machine.
_QUICK = ("fsync = off", "synchronous_commit = off", "full_page_writes = off")
_owned: list[Path] = []


class TestDatabases:
    """Makes databases on a server. The tables of a schema are made once, in a template."""

    __test__ = False

    def __init__(self, server: str, worker: str) -> None:
        self.server = server
        self._prefix = f"t{os.getpid()}_{worker}_"
        self._numbers = count()
        self._templates: dict[str, str] = {}
        self._admin = _connection(server)

    def create(self, schema: Schema | None = None) -> str:
        """The URL of a new database: an empty one, or one with the tables of a schema."""
        template = "template0"
        if schema is not None:
            if schema.name not in self._templates:
                self._templates[schema.name] = self._migrated(schema)
            template = self._templates[schema.name]
        name = f"{self._prefix}{next(self._numbers)}"
        self._admin.execute(_sql(f"CREATE DATABASE {name} TEMPLATE {template}"))
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, also if it has connections."""
        self._admin.execute(_sql(f"DROP DATABASE IF EXISTS {urlsplit(url).path[1:]} WITH (FORCE)"))

    def url(self, name: str) -> str:
        """The URL of a database on the server."""
        return urlunsplit(urlsplit(self.server)._replace(path=f"/{name}"))

    def close(self) -> None:
        """Remove the databases of this worker."""
        query = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
        for (name,) in self._admin.execute(query, (self._prefix,)).fetchall():
            self.drop(self.url(name))
        self._admin.close()

    def _migrated(self, schema: Schema) -> str:
        url = self.create()

        async def migrate() -> None:
            await (await open_database(url, schema)).close()

        with ThreadPoolExecutor(1) as thread:  # a fixture may be called in an event loop
            thread.submit(anyio.run, migrate).result()
        return urlsplit(url).path[1:]


@pytest.fixture(scope="session")
def postgres(worker_id: str) -> Iterator[TestDatabases]:
    """A server of PostgreSQL."""
    databases = TestDatabases(os.environ.get(EXISTING) or _started(), worker_id)
    yield databases
    databases.close()


@pytest.fixture
def postgres_url(postgres: TestDatabases) -> Iterator[str]:
    """A new, empty database."""
    url = postgres.create()
    yield url
    postgres.drop(url)


@pytest.fixture
def postgres_store(postgres: TestDatabases) -> Iterator[str]:
    """A new database with the tables of a host's store."""
    url = postgres.create(HOST_SCHEMA)
    yield url
    postgres.drop(url)


class RestartingServer:
    """A server of one test, which may stop it and start it again. It keeps what was committed."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = _start(folder, settings=("fsync = off",))

    def restart(self) -> None:
        """Stop it without any care, and start it again."""
        _kill(self._folder)
        _start(self._folder, settings=())

    @property
    def socket(self) -> str:
        """The path of its socket."""
        return f"{parse_qs(urlsplit(self.url).query)['host'][0]}/.s.PGSQL.5432"


@contextmanager
def restarting_server() -> Generator[RestartingServer]:
    """A server that no other test uses."""
    _SERVERS.mkdir(mode=0o755, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=_SERVERS))
    folder.chmod(0o755)
    try:
        yield RestartingServer(folder)
    finally:
        _stop(folder)


@pytest.fixture
def restarting_postgres() -> Iterator[RestartingServer]:
    """A server of this test alone."""
    with restarting_server() as server:
        yield server


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    """Choose the folder of the server, once for all workers. They inherit the environment."""
    if not hasattr(config, "workerinput") and _FOLDER not in os.environ:
        _owned.append(_SERVERS / str(os.getpid()))
        os.environ[_FOLDER] = str(_owned[0])


@pytest.hookimpl
def pytest_unconfigure() -> None:
    """Stop the server, in the process that began the run."""
    for folder in _owned:
        _stop(folder)
        del os.environ[_FOLDER]
    _owned.clear()


def _started() -> str:
    """Start the server of this run, if no other worker did; its URL."""
    folder = Path(os.environ[_FOLDER])
    _SERVERS.mkdir(mode=0o755, exist_ok=True)
    with (_SERVERS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for other in _SERVERS.iterdir():
            owner = other.name.partition("-")[0]
            if owner.isdigit() and not _lives(int(owner)):
                _stop(other)
        url = folder / "url"
        if not url.exists():
            folder.mkdir()
            url.write_text(_start(folder))
        return url.read_text()


def _start(folder: Path, settings: Sequence[str] = _QUICK) -> str:
    command = [sys.executable, "-W", "ignore", "-c", _START, str(folder / "data")]
    started = subprocess.run(command, env={**os.environ, "XDG_RUNTIME_DIR": str(folder)}, capture_output=True)
    if started.returncode:
        reason = f"pgserver cannot run here: {started.stderr.decode(errors='replace')[-300:]}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        shutil.rmtree(folder)
        pytest.skip(reason)
    url = started.stdout.decode().split()[-1].replace(":@", "@")  # it has an empty password
    with _connection(url) as connection:
        for setting in settings:
            connection.execute(_sql(f"ALTER SYSTEM SET {setting}"))
        connection.execute("SELECT pg_reload_conf()")
    return url


def _stop(folder: Path) -> None:
    _kill(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _kill(folder: Path) -> None:
    with suppress(OSError, ValueError, IndexError):
        server = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(server, signal.SIGQUIT)  # at once: nothing of it is needed
        deadline = time.monotonic() + 30
        while _lives(server) and time.monotonic() < deadline:
            time.sleep(0.01)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _connection(url: str) -> Connection[Any]:
    import psycopg  # late: every run imports this file, and few tests need a server

    return psycopg.connect(url, autocommit=True)


def _sql(text: str) -> Any:
    return text
