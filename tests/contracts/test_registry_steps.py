"""A read takes the same steps for what is hidden and for what is absent, so its time tells nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from registries import ADA, EVE, RegistryBuilder, by, small_skill
from rules import rule
from skillwire.registry import administration, lookup, projection, uploads
from skillwire.registry.model import ANONYMOUS, SkillRef
from skillwire.registry.schema import SCHEMA
from skillwire.registry.store import SqlRegistryStore
from skillwire.skill import digest_of
from skillwire.store.database import Session
from skillwire.store.place import open_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from databases import TestDatabases
    from skillwire.registry.model import Identity
    from skillwire.store.database import Database, Row

pytestmark = pytest.mark.anyio

READS: dict[str, Callable[[Session, Identity, str], object]] = {
    "skills": lambda session, who, name: lookup.skills(session, who, "", 9, name),
    "stable": lambda session, who, name: lookup.release(session, who, SkillRef(f"{name}/layoffs")),
    "pin": lambda session, who, name: lookup.release(session, who, SkillRef(f"{name}/layoffs", version="1.0.0")),
    "channel": lambda session, who, name: lookup.release(
        session, who, SkillRef(f"{name}/layoffs", channel="beta")
    ),
    "read": lambda session, who, name: lookup.read(session, who, SkillRef(f"{name}/layoffs"), "SKILL.md"),
    "archive": lambda session, who, name: lookup.archive(session, who, f"{name}/layoffs", f"sha256:{'0' * 64}"),
    "around": lambda session, who, name: lookup.around(session, who, f"{name}/layoffs/SKILL.md"),
    "history": lambda session, who, name: lookup.history(session, who, f"{name}/layoffs"),
    "children": lambda session, who, name: lookup.children(session, who, name, "", 9),
    "beginning": lambda session, who, name: lookup.beginning(session, who, name, 9),
    "counts": lambda session, who, name: lookup.counts(session, who, [name], 9),
    "namespace": lambda session, who, name: administration.namespace(session, who, name),
    "named": lambda session, who, name: lookup.named(session, who, ["layoffs" if name == "hidden" else "nothing"]),
    "search": lambda session, who, name: projection.search(
        session, who, ["layoffs" if name == "hidden" else "nothing", "customers"], 9
    ),
}


class Recorder(Session):
    """A session that notes each statement, and how many rows it found."""

    def __init__(self, session: Session) -> None:
        self.dialect = session.dialect
        self.steps: list[tuple[str, int]] = []
        self._session = session

    def rows(self, sql: str, *values: Any) -> list[Row]:
        found = self._session.rows(sql, *values)
        self.steps.append((sql, len(found)))
        return found

    def run(self, sql: str, *values: Any) -> int:
        raise AssertionError

    def run_each(self, sql: str, values: Iterable[Sequence[Any]]) -> int:
        raise AssertionError


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
async def database(request: pytest.FixtureRequest, tmp_path: Any) -> AsyncIterator[Database]:
    """A public namespace, and a hidden one."""
    place = str(tmp_path / "registry.db")
    if request.param == "postgres":
        postgres: TestDatabases = request.getfixturevalue("postgres")
        place = postgres.create(SCHEMA)
    database = await open_database(place, SCHEMA)
    build = RegistryBuilder(SqlRegistryStore(database))
    await build.namespace("open", public=True)
    await build.publish("open/refunds", "1.0.0")
    await build.namespace("hidden")
    await build.publish("hidden/layoffs", "1.0.0")
    await build.namespace("mine", eve="publisher")
    yield database
    await database.close()


@rule("G1", "R1", "M2")
@pytest.mark.parametrize("who", [ANONYMOUS, EVE], ids=["anonymous", "eve"])
@pytest.mark.parametrize("kind", READS)
async def test_the_steps_for_what_is_hidden_are_those_for_what_is_absent(
    database: Database, kind: str, who: Identity
) -> None:
    async def steps(who: Identity, name: str) -> tuple[str, list[tuple[str, int]]]:
        def work(session: Session) -> tuple[str, list[tuple[str, int]]]:
            recorder = Recorder(session)
            return repr(READS[kind](recorder, who, name)), recorder.steps

        return await database.read(work)

    absent = await steps(who, "absent")
    assert await steps(who, "hidden") == absent
    # So the comparison can fail: the owner's answers differ.
    assert kind in ("archive", "channel") or await steps(ADA, "hidden") != await steps(ADA, "absent")


@rule("M2")
async def test_a_search_looks_only_for_words_of_what_its_caller_may_see(database: Database) -> None:
    """The index itself would take longer for a word that is in many hidden skills."""
    plain = await database.read(lambda session: projection.search(session, ADA, ["layoffs"], 9))
    assert [match.path for match in plain] == ["hidden/layoffs"]
    asked: list[object] = []

    class Values(Recorder):
        def rows(self, sql: str, *values: Any) -> list[Row]:
            asked.extend(value for value in values if "layoff" in str(value))
            return super().rows(sql, *values)

    await database.read(lambda session: projection.search(Values(session), EVE, ["layoffs"], 9))
    assert len(asked) == 1
    terms = str(asked[0]).replace("(", " ").replace(")", " ").replace('"', "").replace("'", "").split()
    assert {term for term in terms if "layoff" in term} == {"@layoff", "mine@layoff"}


@rule("R1")
async def test_an_upload_stores_its_bytes_whatever_other_namespaces_have(database: Database) -> None:
    """Otherwise it would be quicker for bytes that a hidden namespace has."""
    data = small_skill("layoffs", "Version 1.0.0.\n")["SKILL.md"]
    done: list[int] = []
    for each in (data, b"new"):

        def work(session: Session, each: bytes = each) -> None:
            uploads.put(session, by(EVE), "mine", digest_of(each), each)
            done.append(session.changed)

        await database.write(work)
    assert done == [2, 2]  # the bytes, and the size of the namespace
    [(copies,)] = await database.rows("SELECT count(*) FROM blob WHERE digest = ?", digest_of(data))
    assert copies == 2
