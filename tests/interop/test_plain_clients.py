"""The bare SDK clients of both languages, which know nothing of skills: resources, completion, tools, prompts."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from anyio import to_thread

from interop.cells import NASTY, ONE_TRAIT, TREES
from interop.honest import by_path, hashes, path_of, samples, skills_of
from interop.running import VERSIONS
from interop.wire import connected, read_bytes
from rules import rule

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from interop.cells import Record
    from interop.running import Era, Node, Serve, Served, Transport

    Visit = Callable[[Served, Transport, Era], Awaitable[dict[str, Any]]]

pytestmark = pytest.mark.anyio

TOOLS = {"list_skills", "search_skills", "load_skill", "read_skill_file"}
CLIENTS = ["bare-python", "bare-typescript"]


def wanted(served: Served) -> dict[str, str]:
    """What is read, by path: everything, except for nine of ten files that are alike."""
    paths = samples(hashes(served.tree))
    return {path: digest for path, digest in hashes(served.tree).items() if path in paths}


def uris(served: Served) -> list[str]:
    """The URIs of what is read, with more encoded than must be: what counts is what it decodes to (U7)."""
    return [f"skill://{quote(path)}" for path in wanted(served)]


async def in_python(served: Served, transport: Transport, era: Era) -> dict[str, Any]:
    """The Python SDK's ``Client``."""
    async with connected(served, transport, era) as client:
        page = await client.list_resources()
        listed = [resource.uri for resource in page.resources]
        while page.next_cursor is not None:
            page = await client.list_resources(cursor=page.next_cursor)
            listed += [resource.uri for resource in page.resources]
        read = {uri: sha256(await read_bytes(client, uri)).hexdigest() for uri in uris(served)}
        templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        reference: Any = {"type": "ref/resource", "uri": templates[0]}
        completed = (await client.complete(reference, {"name": "path", "value": ""})).completion.values
        tools = [tool.name for tool in (await client.list_tools()).tools]
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
    return {
        "listed": listed,
        "read": read,
        "templates": templates,
        "completed": completed,
        "tools": tools,
        "prompts": prompts,
    }


@pytest.fixture
def visits(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Visit]:
    """``visits("bare-typescript")``: how that client looks at all that a server has."""

    async def in_typescript(served: Served, transport: Transport, era: Era) -> dict[str, Any]:
        node: Node = request.getfixturevalue("node")
        more = tmp_path / "uris.json"
        more.write_text(json.dumps(uris(served)))
        monkeypatch.setenv("READ", str(more))
        done = await to_thread.run_sync(node.run, "read_plain.mjs", era, transport, *served.target(transport))
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found.pop("version") == VERSIONS[era]
        return found

    return {"bare-python": in_python, "bare-typescript": in_typescript}.__getitem__


def check_everything(found: dict[str, Any], served: Served) -> None:
    """All manuals are listed, all that is wanted is read; what else is for hosts that know no skills is there."""
    skills = skills_of(served.tree)
    assert sorted(map(path_of, found["listed"])) == sorted(
        ["index.json", *(f"{skill}/SKILL.md" for skill in skills)]
    )
    assert by_path(found["read"]) == wanted(served)
    assert found["templates"] == ["skill://{+path}"]
    assert set(found["tools"]) == TOOLS


@rule("R1", "T1", "X1", "X2")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("transport", "era", "name"), TREES)
async def test_a_client_that_knows_no_skills_reads_them(
    cell: Record,
    visits: Callable[[str], Visit],
    serve: Serve,
    client: str,
    transport: Transport,
    era: Era,
    name: str,
) -> None:
    """As resources, by completing a template, and there are tools and prompts."""
    cell("server", client, transport, era, "skills", *(NASTY if name == "nasty" else ()))
    served = serve(name)
    found = await visits(client)(served, transport, era)
    check_everything(found, served)
    assert {path.removesuffix("/SKILL.md") for path in found["completed"]} == set(skills_of(served.tree))
    assert len(found["prompts"]) == len(skills_of(served.tree))


@rule("F5", "F6", "R1")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", ["marked-and-kept", "wide"])
async def test_a_mark_a_kept_block_and_230_skills_are_read(
    cell: Record, visits: Callable[[str], Visit], serve: Serve, client: str, name: str
) -> None:
    cell("server", client, "http", "modern", *ONE_TRAIT[name])
    served = serve(name)
    check_everything(await visits(client)(served, "http", "modern"), served)


@rule("E6")
@pytest.mark.parametrize("client", CLIENTS)
async def test_skills_as_large_as_they_may_be_are_read(
    cell: Record, visits: Callable[[str], Visit], serve: Serve, client: str
) -> None:
    cell("server", client, "http", "modern", "limits")
    served = serve("limits")
    check_everything(await visits(client)(served, "http", "modern"), served)
