"""The well-known index of a skill, over HTTP: versions, channels, archives, caches, and the search."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import pytest

from registry.stage import publish, refunds, running_registry
from skillwire.skill import digest_of
from skillwire.skill.archive import pack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from registry.stage import Running

pytestmark = pytest.mark.anyio

INDEX = "/acme/refunds/.well-known/agent-skills/index.json"
LONG = "notes/" + "long-" * 40 + "ä.md"  # no plain tar header has room for it


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    """A registry with two versions in the public namespace ``acme``: 0.1.0 is stable, 0.2.0 is in beta."""
    async with running_registry() as running:
        await running.namespace("acme", public=True)
        async with running.api(await running.token("user:operator")) as ada:
            await publish(ada, "acme/refunds", refunds("One.\n", **{LONG: b"hello"}))
            await publish(ada, "acme/refunds", refunds("Two.\n"), version="0.2.0", channel="beta")
        yield running


async def entry_at(web: httpx2.AsyncClient, place: str) -> dict[str, Any]:
    response = await web.get(f"/{place}/.well-known/agent-skills/index.json")
    assert response.status_code == 200, place
    [entry] = response.json()["skills"]
    return entry


async def archive_of(web: httpx2.AsyncClient, index: str, entry: dict[str, Any]) -> httpx2.Response:
    return await web.get(urljoin(str(web.base_url.join(index)), entry["url"]))


async def test_an_index_names_the_archive_of_the_version_at_its_address(running: Running) -> None:
    async with running.raw() as web:
        document = (await web.get(INDEX)).json()
        assert document["$schema"] == "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
        [entry] = document["skills"]
        assert (entry["name"], entry["type"], entry["version"]) == ("refunds", "archive", "0.1.0")
        archive = await archive_of(web, INDEX, entry)
        assert archive.headers["content-type"] == "application/zip"
        assert digest_of(archive.content) == entry["digest"]
        with zipfile.ZipFile(io.BytesIO(archive.content)) as packed:
            assert packed.namelist() == ["SKILL.md", LONG]
        for place in ("acme/refunds@0.1.0", "acme/@0.1.0/refunds", "acme/refunds@stable", "acme/refunds@refunds"):
            assert await entry_at(web, place) == entry
        for place in ("acme/refunds@0.2.0", "acme/@0.2.0/refunds", "acme/refunds@beta", "acme/@beta/refunds"):
            other = await entry_at(web, place)
            assert other["version"] == "0.2.0"
            at = f"/{place}/.well-known/agent-skills/index.json"
            assert (await archive_of(web, at, other)).content == pack(refunds("Two.\n"), "zip")
        older = INDEX.replace("agent-skills", "skills")
        assert (await web.get(older)).json() == document
        assert (await archive_of(web, older, entry)).content == archive.content


async def test_what_is_not_there_has_one_answer(running: Running) -> None:
    async with running.raw() as web:
        for path in (
            "/.well-known/agent-skills/index.json",
            "/acme/.well-known/agent-skills/index.json",
            "/acme/other/.well-known/agent-skills/index.json",
            "/acme/refunds@9.9.9/.well-known/agent-skills/index.json",
            "/acme/refunds@gamma/.well-known/agent-skills/index.json",
            "/acme/Refunds%00/.well-known/agent-skills/index.json",
            f"/{'a/' * 2000}b/.well-known/agent-skills/index.json",
            f"/acme/refunds/.well-known/agent-skills/{'0' * 64}.zip",
            "/acme/refunds/.well-known/agent-skills/SKILL.md",
        ):
            assert (await web.get(path)).status_code == 404, path


async def test_caches_keep_an_archive_and_ask_again_for_an_index(running: Running) -> None:
    async with running.raw() as web:
        index = await web.get(INDEX)
        archive = await archive_of(web, INDEX, index.json()["skills"][0])
        assert index.headers["cache-control"] == "public, no-cache"
        assert archive.headers["cache-control"] == "public, max-age=86400, immutable"
        assert archive.headers["etag"] == f'"{digest_of(archive.content)}"'
        assert "access-control-allow-origin" not in archive.headers
        for response in (index, archive):
            again = await web.get(str(response.url), headers={"If-None-Match": response.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
            head = await web.head(str(response.url))
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-length"] == str(len(response.content))
        assert (await web.get(INDEX, headers={"If-None-Match": '"other"'})).status_code == 200
        assert (await web.post(INDEX)).status_code == 405


async def test_a_private_namespace_answers_those_who_may_read_it(running: Running) -> None:
    await running.namespace("hidden", roles={"user:eve": "reader"})
    async with running.api(await running.token("user:operator")) as ada:
        await publish(ada, "hidden/refunds", refunds())
    where = "/hidden/refunds/.well-known/agent-skills/index.json"
    async with running.raw() as web, running.raw(await running.token("user:eve")) as eve:
        assert (await web.get(where)).status_code == 404
        index = await eve.get(where)
        archive = await archive_of(eve, where, index.json()["skills"][0])
        assert archive.content == pack(refunds(), "zip")
        assert {each.headers["cache-control"].partition(",")[0] for each in (index, archive)} == {"private"}
        assert (await web.get(str(archive.url))).status_code == 404
        assert (await eve.get("/api/search?q=refunds")).json()["skills"][1:] != []
        assert [each["id"] for each in (await web.get("/api/search?q=refunds")).json()["skills"]] == [
            "acme/refunds"
        ]


async def test_a_yanked_version_keeps_its_address_and_the_index_goes_back(running: Running) -> None:
    admin = await running.token("user:operator", is_admin=True)
    async with running.raw() as web, running.api(admin) as ada:
        await ada.call("PUT", "skills/acme/refunds/-/channels/stable", {"version": "0.2.0"})
        newer = await entry_at(web, "acme/refunds")
        await ada.call("POST", "skills/acme/refunds/-/versions/0.2.0/yank", {"reason": "refunds twice"})
        await ada.call("PUT", "skills/acme/refunds/-/deprecation", {"message": "moved", "instead": "acme/other"})
        now = await entry_at(web, "acme/refunds")
        assert (now["version"], now["deprecated"], now["instead"]) == ("0.1.0", "moved", "acme/other")
        pinned = await entry_at(web, "acme/refunds@0.2.0")
        assert (pinned["yanked"], pinned["digest"]) == ("refunds twice", newer["digest"])
        assert (await archive_of(web, INDEX, pinned)).status_code == 200
        body = {"reason": "has a password in it"}
        await ada.call("DELETE", "skills/acme/refunds/-/versions/0.2.0", body)
        assert (await archive_of(web, INDEX, pinned)).status_code == 404


async def test_the_search_gives_addresses_that_can_be_added(running: Running) -> None:
    async with running.raw() as web:
        found = (await web.get("/api/search", params={"q": "refunds", "limit": "20"})).json()
        [skill] = found["skills"]
        assert skill == {
            "id": "acme/refunds",
            "name": "refunds",
            "source": f"{running.url}/acme/refunds",
            "installs": 0,
        }
        assert (await web.get(f"{skill['source']}/.well-known/agent-skills/index.json")).status_code == 200
        assert (await web.get("/api/search?q=")).json() == {"skills": []}
        assert (await web.get("/api/search?q=x&limit=0")).status_code == 400
