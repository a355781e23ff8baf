"""Every read of a registry answers what a simple model answers, for random contents and callers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registries import ADA, ADMIN, NOW, RegistryBuilder, by
from skillwire.registry.model import ROLES, STABLE, Identity, Namespace, SkillRef, parse_version
from skillwire.registry.schema import SCHEMA
from skillwire.registry.store import SqlRegistryStore
from skillwire.store.place import open_database
from skillwire.store.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from databases import TestDatabases
    from skillwire.registry.contract import RegistryStore

NAMESPACES = ("a", "a-b", "b")
SKILLS = ("x", "x-y", "x0", "f/x", "f-g/z", "f/g/z")
VERSIONS = ("1.0.0", "1.1.0-rc.1", "1.1.0", "2.0.0")
PRINCIPALS = ("user:eve", "group:one", "group:two")
ACTIONS = ("read", "publish", "review", "manage")


@dataclass
class Version:
    approved: bool
    yanked: str | None = None


@dataclass
class Skill:
    listed: bool
    versions: dict[str, Version] = field(default_factory=dict)
    channels: dict[str, str] = field(default_factory=dict)


@dataclass
class Model:
    """What a registry contains, and what one caller may see of it."""

    settings: dict[str, Namespace]
    roles: dict[tuple[str, str], Any]
    skills: dict[str, Skill] = field(default_factory=dict)

    def actions(self, who: Identity, namespace: str) -> set[str]:
        if namespace not in self.settings:
            return set()
        roles = [self.roles[each, namespace] for each in who.principals if (each, namespace) in self.roles]
        granted = set(ACTIONS) if who.is_admin else {action for role in roles for action in ROLES[role]}
        if who.actions is not None:
            granted &= {*who.actions, "read"}
        if who.namespace not in (None, namespace):
            granted = set()
        return granted | ({"read"} if self.settings[namespace].public else set())

    def sees(self, who: Identity, path: str) -> bool:
        return bool(self.actions(who, path.partition("/")[0]))

    def shown(self, who: Identity, path: str) -> dict[str, Version]:
        """The versions of a skill that a caller may see."""
        if path not in self.skills or not self.sees(who, path):
            return {}
        works = self.actions(who, path.partition("/")[0]) - {"read"}
        return {at: each for at, each in self.skills[path].versions.items() if each.approved or works}

    def find(self, who: Identity, ref: SkillRef) -> str | None:
        shown = self.shown(who, ref.path)
        if not shown:
            return None
        at = ref.version or self.skills[ref.path].channels.get(ref.channel or STABLE)
        return at if at in shown else None

    def listed(self, who: Identity) -> list[str]:
        return sorted(
            path
            for path, skill in self.skills.items()
            if skill.listed and STABLE in skill.channels and self.sees(who, path)
        )

    def publish(self, path: str, version: str, channel: str | None, *, listed: bool) -> None:
        skill = self.skills.setdefault(path, Skill(listed))
        is_reviewed = self.settings[path.partition("/")[0]].reviewed
        if version in skill.versions:
            return
        skill.versions[version] = Version(approved=not is_reviewed)
        if channel is None or is_reviewed or (channel == STABLE and "-" in version):
            return
        current = skill.channels.get(channel)
        if current is None or parse_version(version) > parse_version(current):
            skill.channels[channel] = version

    def yank(self, path: str, version: str) -> None:
        skill = self.skills[path]
        skill.versions[version].yanked = "wrong"
        for channel in [name for name, at in skill.channels.items() if at == version]:
            below = [
                parse_version(at)
                for at, each in skill.versions.items()
                if parse_version(at) < parse_version(version) and each.yanked is None and each.approved
                and not (channel == STABLE and "-" in at)
            ]  # fmt: skip
            if below:
                skill.channels[channel] = str(max(below))
            else:
                del skill.channels[channel]


PATHS = st.builds("{}/{}".format, st.sampled_from(NAMESPACES), st.sampled_from(SKILLS))
STEPS = st.one_of(
    st.tuples(
        st.just("publish"), PATHS, st.sampled_from(VERSIONS), st.sampled_from([STABLE, STABLE, "beta", None]),
        st.booleans(),
    ),
    st.tuples(st.just("yank"), PATHS, st.sampled_from(VERSIONS)),
    st.tuples(st.just("public"), st.sampled_from(NAMESPACES), st.booleans()),
    st.tuples(
        st.just("role"), st.sampled_from(PRINCIPALS), st.sampled_from(NAMESPACES), st.sampled_from([*ROLES, None])
    ),
    st.tuples(st.just("listed"), PATHS, st.booleans()),
)  # fmt: skip
CALLERS = st.builds(
    Identity,
    st.just("caller"),
    st.frozensets(st.sampled_from(PRINCIPALS)),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([None, None, *NAMESPACES]),
    st.one_of(st.none(), st.frozensets(st.sampled_from(ACTIONS))),
)
SETTINGS = st.fixed_dictionaries(
    {name: st.builds(Namespace, st.just(name), st.booleans(), st.booleans()) for name in NAMESPACES}
)


async def make(store: RegistryStore, model: Model, steps: Iterable[tuple[Any, ...]]) -> None:
    """Do the same in the store and in the model."""
    build = RegistryBuilder(store)
    for each in model.settings.values():
        await build.namespace(each.name, public=each.public, reviewed=each.reviewed)
    for what, first, *rest in steps:
        known = model.skills.get(first)
        match what:
            case "publish":
                version, channel, listed = rest
                await build.publish(first, version, channel=channel, listed=listed)
                model.publish(first, version, channel, listed=listed)
            case "yank" if known is not None and rest[0] in known.versions:
                await store.yank(by(ADA), first, rest[0], "wrong")
                model.yank(first, rest[0])
            case "public":
                old = model.settings[first]
                model.settings[first] = Namespace(first, rest[0], old.reviewed)
                await store.change_namespace(by(ADA), model.settings[first])
            case "role":
                name, role = rest
                if role is None:
                    model.roles.pop((first, name), None)
                else:
                    model.roles[first, name] = role
                await store.grant(by(ADMIN), name, first, role)
            case "listed" if known is not None:
                await store.set_listed(by(ADA), first, listed=rest[0])
                known.listed = rest[0]
            case _:
                pass


async def compare(store: RegistryStore, model: Model, who: Identity) -> None:
    listed = model.listed(who)
    assert [each.path for each in await store.skills(who)] == listed
    after = listed[len(listed) // 2] if listed else "a"
    page = [each.path for each in await store.skills(who, after, 2)]
    assert page == [path for path in listed if path > after][:2]
    for below in ("a", "a/f", "b/x", "a-b/f-g"):
        expected = [path for path in listed if f"{path}/".startswith(f"{below}/")]
        assert [each.path for each in await store.skills(who, below=below)] == expected
    for folder in ("", "a", "a/f", "a-b/f", "b/x"):
        prefix = f"{folder}/" if folder else ""
        names = sorted({path[len(prefix) :].partition("/")[0] for path in listed if path.startswith(prefix)})
        assert await store.children(who, folder) == names
        assert await store.children(who, folder, "f", 2) == [name for name in names if name > "f"][:2]
    for text in ("", "a", "a/f", "b/x"):
        assert await store.beginning(who, text) == [path for path in listed if path.startswith(text)]
    by_name = {
        name: [path for path in listed if path.rpartition("/")[2] == name] for name in ("x", "x-y", "z", "q")
    }
    assert await store.named(who, list(by_name)) == {name: paths for name, paths in by_name.items() if paths}
    assert {match.path for match in await store.search(who, ["customers", "absent"], 100)} == set(listed)
    visible = sorted((name for name in NAMESPACES if model.actions(who, name)), key=lambda name: f"{name}/")
    assert [each.name for each in await store.namespaces(who)] == visible
    for name in NAMESPACES:
        assert await store.namespace(who, name) == (model.settings[name] if name in visible else None)
        assert await store.actions(who, name) == model.actions(who, name)
    for path in [f"{name}/{skill}" for name in NAMESPACES for skill in SKILLS]:
        await compare_skill(store, model, who, path)


async def compare_skill(store: RegistryStore, model: Model, who: Identity, path: str) -> None:
    shown = model.shown(who, path)
    history = await store.history(who, path)
    order = sorted(shown, key=parse_version, reverse=True)
    assert [(line.version, line.yanked) for line in history] == [(at, shown[at].yanked) for at in order]
    channels: Mapping[str, str] = model.skills[path].channels if shown else {}
    assert {name: line.version for line in history for name in line.channels} == channels
    refs = [SkillRef(path), SkillRef(path, channel="beta"), SkillRef(path, channel=STABLE)]
    for ref in [*refs, *(SkillRef(path, version) for version in VERSIONS)]:
        release, expected = await store.release(who, ref), model.find(who, ref)
        assert (release and release.version) == expected
        data = await store.read(who, ref, "SKILL.md")
        assert (data is not None) == (expected is not None)
        if release is not None and data is not None and expected is not None:
            assert f"Version {expected}.".encode() in data
            assert release.channels == tuple(sorted(name for name, at in channels.items() if at == expected))
            assert (release.yanked, release.listed) == (shown[expected].yanked, model.skills[path].listed)
    inside = await store.around(who, f"{path}/notes/reply.md")
    assert (inside and inside.path) == (path if model.find(who, SkillRef(path)) else None)


async def check(
    store: RegistryStore,
    kept: Mapping[str, Namespace],
    steps: Iterable[tuple[Any, ...]],
    callers: Iterable[Identity],
) -> None:
    try:
        model = Model(dict(kept), {})
        await make(store, model, steps)
        for who in callers:
            await compare(store, model, who)
        assert [fault async for fault in store.check()] == []
        assert await store.tidy(NOW) == 0
    finally:
        await store.close()


@given(SETTINGS, st.lists(STEPS, max_size=40), st.lists(CALLERS, min_size=1, max_size=3))
@settings(max_examples=15)
def test_every_read_answers_what_the_model_answers(
    kept: dict[str, Namespace], steps: list[tuple[Any, ...]], callers: list[Identity]
) -> None:
    async def run() -> None:
        await check(SqlRegistryStore(SqliteDatabase.memory(SCHEMA)), kept, steps, callers)

    anyio.run(run)


@pytest.mark.slow
@given(SETTINGS, st.lists(STEPS, min_size=15, max_size=40), st.lists(CALLERS, min_size=3, max_size=6))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_read_answers_what_the_model_answers_on_postgresql(
    postgres: TestDatabases, kept: dict[str, Namespace], steps: list[tuple[Any, ...]], callers: list[Identity]
) -> None:
    url = postgres.create(SCHEMA)

    async def run() -> None:
        await check(SqlRegistryStore(await open_database(url, SCHEMA)), kept, steps, callers)

    anyio.run(run)
    postgres.drop(url)
