"""Mirroring into a registry that really serves: verified, only missing files, in quarantine, repeatable."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from registry.stage import publish, refunds, running_registry
from rules import rule
from skillwire import DirectoryCatalog, MemoryCatalog, Skill
from skillwire.catalog.contract import SkillFile
from skillwire.client.connect import connect
from skillwire.client.remote import RemoteCatalog
from skillwire.client.servers import UrlServer
from skillwire.errors import UpstreamError
from skillwire.registry.mirror import Mirror, Mirrored, MirrorSource
from skillwire.skill import digest_of
from trees import skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from registry.stage import Running
    from skillwire.catalog.contract import Catalog
    from skillwire.registry.client import RegistryClient

pytestmark = pytest.mark.anyio

UPSTREAM = MirrorSource("https://skills.example.com/mcp")


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    """A registry with the private namespace ``vendor``: ben publishes, rita reviews, eve reads."""
    async with running_registry() as running:
        roles = {"user:ben": "publisher", "user:rita": "reviewer", "user:eve": "reader"}
        await running.namespace("vendor", roles=roles)
        yield running


@pytest.fixture
async def ben(running: Running) -> AsyncIterator[RegistryClient]:
    async with running.api(await running.token("user:ben")) as client:
        yield client


async def mirrored(client: RegistryClient, catalog: Catalog, **more: Any) -> dict[str, Mirrored]:
    """Copy everything, and look for what is gone."""
    mirror = Mirror(client, "vendor", UPSTREAM, **more)
    done = await mirror.copy(catalog, catalog.entries())
    done += await mirror.gone({each.path for each in done})
    return {each.path: each for each in done}


async def approve(running: Running) -> None:
    """Rita approves all open reviews."""
    async with running.api(await running.token("user:rita")) as rita:
        for review in (await rita.call("GET", "reviews"))["reviews"]:
            body = {"verdict": "approved", "digest": review["digest"]}
            await rita.call("POST", f"reviews/{review['number']}", body)


class Counting(MemoryCatalog):
    """Counts the reads of each file, and can fail or lie."""

    def __init__(self, *skills: Skill) -> None:
        super().__init__(skills)
        self.reads = Counter[str]()
        self.lies: dict[str, bytes] = {}
        self.fails_at: str | None = None

    async def read_file(self, uri: str) -> SkillFile:
        self.reads[uri.rpartition("/")[2]] += 1
        if self.fails_at is not None and self.fails_at in uri:
            raise UpstreamError("connection-lost", "gone", "try again")
        return SkillFile(uri, self.lies[uri]) if uri in self.lies else await super().read_file(uri)


async def test_readers_see_a_mirrored_version_after_another_person_approved_it(
    running: Running, ben: RegistryClient
) -> None:
    skill = Skill("team/refunds", refunds("One.\n", **{"notes.md": b"hello"}))
    done = await mirrored(ben, MemoryCatalog([skill]))
    assert [(path, each.outcome, each.version) for path, each in done.items()] == [
        ("vendor/team/refunds", "waits", "0.1.0")
    ]
    async with running.api(await running.token("user:eve")) as eve:
        assert await eve.find("skills/vendor/team/refunds") is None
        await approve(running)
        found = await eve.call("GET", "skills/vendor/team/refunds")
        assert found["channels"] == {"stable": "0.1.0"}
        [line] = found["versions"]
        assert line["source"] == {"mirror": UPSTREAM.address, "uri": "skill://team/refunds/SKILL.md"}
        data = await eve.file("vendor/team/refunds", "0.1.0", "notes.md", digest_of(b"hello"))
        assert data == b"hello"


async def test_a_repeat_reads_nothing_and_changes_nothing(running: Running, ben: RegistryClient) -> None:
    catalog = Counting(Skill("refunds", refunds("One.\n")), Skill("other", refunds(name="other")))
    await mirrored(ben, catalog)
    clock = await running.registry.store.clock()
    catalog.reads.clear()
    again = await mirrored(ben, catalog)
    assert {each.outcome for each in again.values()} == {"unchanged"}
    assert {each.note for each in again.values()} == {"not approved"}
    assert catalog.reads == {}
    assert await running.registry.store.clock() == clock
    await approve(running)
    assert {each.note for each in (await mirrored(ben, catalog)).values()} == {""}


async def test_only_missing_files_are_read(ben: RegistryClient) -> None:
    large = {f"part-{number}.bin": bytes([number]) * 1000 for number in range(5)}
    await mirrored(ben, Counting(Skill("refunds", refunds("One.\n", **large))))
    changed = Counting(Skill("refunds", refunds("Two.\n", **{**large, "part-3.bin": b"new"})))
    done = await mirrored(ben, changed)
    assert done["vendor/refunds"].version == "0.1.1"
    assert changed.reads == {"SKILL.md": 1, "part-3.bin": 1}


@rule("V1", "V4")
async def test_what_is_not_what_it_claims_is_refused_and_the_others_are_copied(ben: RegistryClient) -> None:
    catalog = Counting(Skill("liar", refunds(name="liar")), Skill("refunds", refunds()))
    catalog.lies["skill://liar/SKILL.md"] = refunds("Other.\n", name="liar")["SKILL.md"]
    done = await mirrored(ben, catalog)
    assert {path: each.outcome for path, each in done.items()} == {
        "vendor/liar": "refused",
        "vendor/refunds": "waits",
    }
    error = done["vendor/liar"].error
    assert error is not None
    assert error.rule == "V1"
    assert await ben.find("skills/vendor/liar") is None


async def test_an_interruption_leaves_whole_skills_and_a_repeat_finishes(ben: RegistryClient) -> None:
    names = ("a", "b", "c")
    catalog = Counting(*(Skill(name, refunds(name=name, **{"notes.md": name.encode()})) for name in names))
    catalog.fails_at = "skill://b/notes.md"
    with pytest.raises(UpstreamError):
        await mirrored(ben, catalog)
    assert [await ben.find(f"skills/vendor/{name}") is not None for name in names] == [True, False, False]
    catalog.fails_at = None
    catalog.reads.clear()
    done = await mirrored(ben, catalog)
    assert [each.outcome for each in done.values()] == ["unchanged", "waits", "waits"]


async def test_a_path_or_a_number_that_a_registry_does_not_take_is_reported(ben: RegistryClient) -> None:
    numbered = refunds(extra="metadata:\n  version: 1.0.0\n")
    done = await mirrored(ben, MemoryCatalog([Skill("Été/refunds", refunds()), Skill("refunds", numbered)]))
    assert done["vendor/Été/refunds"].outcome == "refused"
    assert done["vendor/refunds"].version == "1.0.0"
    other = refunds("Other.\n", extra="metadata:\n  version: 1.0.0\n")
    refused = (await mirrored(ben, MemoryCatalog([Skill("refunds", other)])))["vendor/refunds"]
    assert refused.error is not None
    assert refused.error.reference == "version-taken"


async def test_what_the_upstream_no_longer_has_is_reported_and_stays(
    running: Running, ben: RegistryClient
) -> None:
    both = [Skill("refunds", refunds()), Skill("other", refunds(name="other"))]
    await mirrored(ben, MemoryCatalog(both))
    elsewhere = Mirror(ben, "vendor", MirrorSource("https://other.example.com"))
    catalog = MemoryCatalog([Skill("third", refunds(name="third"))])
    await elsewhere.copy(catalog, catalog.entries())
    done = await mirrored(ben, MemoryCatalog(both[:1]))
    assert {path: each.outcome for path, each in done.items()} == {
        "vendor/refunds": "unchanged",
        "vendor/other": "gone",
    }
    assert await ben.find("skills/vendor/other") is not None


async def test_what_was_deleted_or_declined_is_not_published_again(running: Running, ben: RegistryClient) -> None:
    catalog = MemoryCatalog([Skill("refunds", refunds()), Skill("other", refunds(name="other"))])
    await mirrored(ben, catalog)
    async with running.api(await running.token("user:rita")) as rita:
        [review, _] = (await rita.call("GET", "reviews"))["reviews"]
        body = {"verdict": "declined", "digest": review["digest"]}
        await rita.call("POST", f"reviews/{review['number']}", body)
    async with running.api(await running.token("user:operator", is_admin=True)) as admin:
        await admin.call("DELETE", "skills/vendor/other/-/versions/0.1.0", {"reason": "harmful"})
    clock = await running.registry.store.clock()
    done = await mirrored(ben, catalog)
    assert done["vendor/other"].note == "deleted here: harmful"
    assert {each.outcome for each in done.values()} == {"unchanged"}
    assert await running.registry.store.clock() == clock


async def test_without_a_review_a_version_is_published_unless_the_namespace_demands_one(
    running: Running, ben: RegistryClient
) -> None:
    catalog = MemoryCatalog([Skill("refunds", refunds())])
    assert (await mirrored(ben, catalog, quarantine=False))["vendor/refunds"].outcome == "published"
    async with running.api(await running.token("user:operator", is_admin=True)) as admin:
        await admin.call("PATCH", "namespaces/vendor", {"reviewed": True})
    changed = MemoryCatalog([Skill("refunds", refunds("Two.\n"))])
    assert (await mirrored(ben, changed, quarantine=False))["vendor/refunds"].outcome == "waits"


async def test_executable_bits_of_a_folder_are_kept(tmp_path: Path, ben: RegistryClient) -> None:
    root = write_tree(tmp_path / "skills", {"tool/SKILL.md": skill_md("tool"), "tool/run.sh": b"#!/bin/sh\n"})
    (root / "tool/run.sh").chmod(0o755)
    catalog = DirectoryCatalog(root)
    await mirrored(ben, catalog)
    version = await ben.call("GET", "skills/vendor/tool/-/versions/0.1.0")
    assert {file["path"]: file["executable"] for file in version["files"]} == {"SKILL.md": False, "run.sh": True}
    assert (await mirrored(ben, catalog))["vendor/tool"].outcome == "unchanged"


async def test_another_registry_is_mirrored_over_mcp(running: Running, ben: RegistryClient) -> None:
    async with running_registry() as upstream:
        await upstream.namespace("acme", public=True)
        async with upstream.api(await upstream.token("user:operator")) as ada:
            tree = small_tree()
            files = {path.partition("/")[2]: data for path, data in tree.items() if path.startswith("flat/")}
            await publish(ada, "acme/flat", files)
        async with connect(UrlServer(f"{upstream.url}/mcp")) as client:
            done = await mirrored(ben, RemoteCatalog(client))
            assert done["vendor/acme/flat"].outcome == "waits"
            version = await ben.call("GET", "skills/vendor/acme/flat/-/versions/0.1.0")
            assert {file["path"]: file["digest"] for file in version["files"]} == {
                path: digest_of(data) for path, data in files.items()
            }
