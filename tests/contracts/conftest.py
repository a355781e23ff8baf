"""Every catalog, each holding the same small tree; and every store, empty."""

from __future__ import annotations

import shutil
import sys
import zipfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest

from git_server import Repository
from model_store import ModelStore
from skillwire import ArchiveCatalog, CombinedCatalog, DirectoryCatalog, MemoryCatalog, Mount, Skill
from skillwire.catalog.files import FilesCatalog
from skillwire.catalog.git import GitCatalog
from skillwire.catalog.visibility import VisibleCatalog
from skillwire.client.connect import connect
from skillwire.client.link import ServerLink
from skillwire.client.remote import RemoteCatalog
from skillwire.gateway.approval_gate import Admission, ApprovalGate, ApprovalView
from skillwire.gateway.audit_log import AuditLog
from skillwire.gateway.config import Plan
from skillwire.gateway.federation import prepare_entry
from skillwire.host.approvals import Approvals, Policy, cannot_ask
from skillwire.lowlevel import GeneratedCatalog, package_catalog
from skillwire.registry.schema import SCHEMA
from skillwire.registry.store import SqlRegistryStore
from skillwire.server.skills import Skills, build_server
from skillwire.skill import digest_of
from skillwire.skill.archive import pack
from skillwire.store.content_cache import ContentCache
from skillwire.store.place import open_database
from skillwire.store.sqlite import SqliteDatabase
from skillwire.store.store import Store
from skillwire.testing import Sample
from trees import files_of, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from databases import TestDatabases
    from skillwire import Catalog
    from skillwire.registry.contract import RegistryStore

TOPMOST = ["acme/billing/refunds", "acme/release", "flat", "odd-names", "windows"]


def skills(paths: list[str] = TOPMOST, strip: str = "") -> list[Skill]:
    tree = small_tree()
    return [Skill(path.removeprefix(strip), files_of(tree, path)) for path in paths]


def of_memory(catalog: MemoryCatalog, around: Catalog | None = None) -> Sample:
    async def put(skill: Skill) -> None:
        catalog.put(skill)

    async def remove(path: str) -> None:
        catalog.remove(path)

    return Sample(around or catalog, put, remove)


def memory(tmp_path: Path, names: Iterator[str]) -> Sample:
    return of_memory(MemoryCatalog(skills()))


def directory(tmp_path: Path, names: Iterator[str]) -> Sample:
    root = write_tree(tmp_path / "skills", small_tree())
    catalog = DirectoryCatalog(root)

    async def put(skill: Skill) -> None:
        shutil.rmtree(root / skill.path, ignore_errors=True)
        write_tree(root, skill.tree())
        await catalog.refresh([skill.path])

    async def remove(path: str) -> None:
        shutil.rmtree(root / path)
        await catalog.refresh([path])

    return Sample(catalog, put, remove)


def package(tmp_path: Path, names: Iterator[str]) -> Sample:
    name = next(names)
    write_tree(tmp_path / name / "skills", small_tree())
    (tmp_path / name / "__init__.py").touch()
    sys.path.insert(0, str(tmp_path))
    return Sample(package_catalog(name))


def zipped_package(tmp_path: Path, names: Iterator[str]) -> Sample:
    name = next(names)
    archive = tmp_path / "wheel.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(f"{name}/__init__.py", "")
        for path, data in small_tree().items():
            file.writestr(f"{name}/skills/{path}", data)
    sys.path.insert(0, str(archive))
    return Sample(package_catalog(name))


def archives(tmp_path: Path, names: Iterator[str]) -> Sample:
    mounts: list[Mount] = []
    for skill in skills():
        file = tmp_path / f"{skill.path.replace('/', '-')}.zip"
        file.write_bytes(pack(files_of(small_tree(), skill.path), "zip"))
        mounts.append(Mount(ArchiveCatalog(file), file.name, skill.path.rpartition("/")[0]))
    return Sample(CombinedCatalog(mounts))


def git(tmp_path: Path, names: Iterator[str]) -> Sample:
    repository = Repository(tmp_path / "repository", small_tree())
    catalog = GitCatalog(f"{repository.folder}@main", tmp_path / "cache")

    async def put(skill: Skill) -> None:
        shutil.rmtree(repository.folder / skill.path, ignore_errors=True)
        repository.commit(skill.tree())
        await catalog.refresh()

    async def remove(path: str) -> None:
        shutil.rmtree(repository.folder / path)
        repository.commit()
        await catalog.refresh()

    return Sample(catalog, put, remove)


def files(tmp_path: Path, names: Iterator[str]) -> Sample:
    """A storage with two functions."""
    stored = small_tree()

    def list_files() -> dict[str, str]:
        return {path: digest_of(data) for path, data in stored.items()}

    async def read_file(path: str) -> bytes:
        return stored[path]

    catalog = FilesCatalog(list_files, read_file)

    async def put(skill: Skill) -> None:
        delete(skill.path)
        stored.update(skill.tree())
        await catalog.refresh()

    async def remove(path: str) -> None:
        delete(path)
        await catalog.refresh()

    def delete(path: str) -> None:
        for key in [key for key in stored if key.startswith(f"{path}/")]:
            del stored[key]

    return Sample(catalog, put, remove)


def generated(tmp_path: Path, names: Iterator[str]) -> Sample:
    catalog = GeneratedCatalog()
    for skill in skills():
        catalog.add(skill.path, lambda files=skill.files: files)

    async def put(skill: Skill) -> None:
        catalog.add(skill.path, lambda: skill.files)
        await catalog.regenerate(skill.path)

    async def remove(path: str) -> None:
        catalog.discard(path)

    return Sample(catalog, put, remove)


def combined_of_one(tmp_path: Path, names: Iterator[str]) -> Sample:
    inner = MemoryCatalog(skills())
    return of_memory(inner, CombinedCatalog([Mount(inner, "only")]))


def combined_with_prefix(tmp_path: Path, names: Iterator[str]) -> Sample:
    acme = MemoryCatalog(skills(["acme/billing/refunds", "acme/release"], "acme/"))
    rest = MemoryCatalog(skills(["flat", "odd-names", "windows"]))
    return of_memory(rest, CombinedCatalog([Mount(acme, "company", prefix="acme"), Mount(rest, "own")]))


def seen_by_a_caller(tmp_path: Path, names: Iterator[str]) -> Sample:
    inner = MemoryCatalog(skills())
    prefixes = ["acme", "flat", "odd-names", "windows", "aaa", "zzz", "fresh"]
    return of_memory(inner, VisibleCatalog(inner, prefixes))


async def of_server(mode: str) -> AsyncIterator[Sample]:
    inner = MemoryCatalog(skills())
    async with connect(build_server(Skills(inner)), mode=mode) as client:
        remote = RemoteCatalog(client)

        async def put(skill: Skill) -> None:
            inner.put(skill)
            await remote.refresh()

        async def remove(path: str) -> None:
            inner.remove(path)
            await remote.refresh()

        yield Sample(remote, put, remove)


def remote_modern(tmp_path: Path, names: Iterator[str]) -> AsyncIterator[Sample]:
    return of_server("auto")


def remote_legacy(tmp_path: Path, names: Iterator[str]) -> AsyncIterator[Sample]:
    return of_server("legacy")


async def of_upstream(
    tmp_path: Path, around: Callable[[RemoteCatalog], Catalog] = lambda catalog: catalog
) -> AsyncIterator[Sample]:
    inner = MemoryCatalog(skills())
    cache = ContentCache(tmp_path / "cache", forbidden=[])
    link = ServerLink("acme", build_server(Skills(inner)))
    catalog = RemoteCatalog(link, store=Store.memory(), cache=cache, allow_unverified=True, prepare=prepare_entry)
    outer = around(catalog)

    async def put(skill: Skill) -> None:
        inner.put(skill)
        await catalog.refresh()

    async def remove(path: str) -> None:
        inner.remove(path)
        await catalog.refresh()

    async with anyio.create_task_group() as group:
        group.start_soon(outer.follow)
        await catalog.settle(60)
        yield Sample(outer, put, remove)
        group.cancel_scope.cancel()


def upstream(tmp_path: Path, names: Iterator[str]) -> AsyncIterator[Sample]:
    return of_upstream(tmp_path)


def guarded_upstream(tmp_path: Path, names: Iterator[str]) -> AsyncIterator[Sample]:
    """The chain of a gateway, before its URIs are mapped below a label."""

    def around(catalog: RemoteCatalog) -> Catalog:
        store = Store.memory()

        approvals = Approvals(store, Policy(), cannot_ask)
        admission = Admission("acme", Plan(), ApprovalView(store), approvals, catalog)
        return ApprovalGate(catalog, admission, AuditLog(store))

    return of_upstream(tmp_path, around)


CHANGEABLE = [
    memory,
    directory,
    git,
    files,
    generated,
    combined_of_one,
    combined_with_prefix,
    seen_by_a_caller,
    remote_modern,
    pytest.param(remote_legacy, marks=pytest.mark.slow),  # the same catalog; tests/interaction has both eras
    upstream,
    guarded_upstream,
]
KINDS = [*CHANGEABLE, package, zipped_package, archives]


def named(kind: Callable[..., object]) -> str:
    return kind.__name__


@pytest.fixture
def package_names(request: pytest.FixtureRequest) -> Iterator[str]:
    """Package names no other test uses, and ``sys.path`` as it was, afterwards."""
    before = list(sys.path)
    base = "".join(c if c.isalnum() else "_" for c in request.node.nodeid)
    yield (f"pkg_{base}_{index}" for index in range(9))
    sys.path[:] = before


@asynccontextmanager
async def opened(sample: Sample | AsyncIterator[Sample]) -> AsyncIterator[Sample]:
    """A sample that is there, or that lives as long as a connection."""
    if isinstance(sample, Sample):
        yield sample
    else:
        async with asynccontextmanager(lambda: sample)() as connected:
            yield connected


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store that holds nothing. A copy is quicker than a new one."""
    path = tmp_path_factory.mktemp("store") / "empty.db"

    async def make() -> None:
        await (await Store.open(path, patience=60)).close()

    anyio.run(make)
    return path


@pytest.fixture(params=["memory", "model", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, empty_store: Path) -> AsyncIterator[Store]:
    if request.param == "memory":
        store: Store = Store.memory()
    elif request.param == "model":
        store = ModelStore()
    elif request.param == "postgres":
        store = await Store.open(request.getfixturevalue("postgres_store"))
    else:
        store = await Store.open(shutil.copy(empty_store, tmp_path / "store.db"), patience=60)
    yield store
    await store.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
async def registry(request: pytest.FixtureRequest) -> AsyncIterator[RegistryStore]:
    if request.param == "sqlite":
        yield SqlRegistryStore(SqliteDatabase.memory(SCHEMA))
        return
    postgres: TestDatabases = request.getfixturevalue("postgres")
    url = postgres.create(SCHEMA)
    store = SqlRegistryStore(await open_database(url, SCHEMA))
    yield store
    await store.close()
    postgres.drop(url)
