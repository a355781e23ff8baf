"""One endpoint in front of many: addresses, bytes, provenance, one fetch for all."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import anyio
import pytest
from mcp import Client

from adversarial.adversary import HostileServer
from adversarial.speaking import Refusal
from gateway.stage import SECONDS, client_of, flat_skill, gateway_of, hostile, paths, small_catalog, source
from http_server import serving_http
from rules import rule
from skillwire import MemoryCatalog
from skillwire.catalog.verification import verify_catalog
from skillwire.catalog.visibility import VisibleCatalog
from skillwire.client.remote import RemoteCatalog
from skillwire.errors import FormatError, NotFoundError, UpstreamError, VerificationError
from skillwire.server.skills import Skills, build_server
from skillwire.skill import digest_of
from skillwire.skill.hidden import is_seen
from skillwire.wire.extension import EXTENSION_ID
from starting import skillwire_command
from trees import SMALL_TREE_SKILLS, UNSEEN, skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@rule("E2", "O1", "V1", "V4")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_each_upstream_is_under_its_label_with_its_own_digests(state: Path, mode: str) -> None:
    """Whatever the era downstream, everything that is claimed can be verified."""
    servers = {"one": small_catalog(), "two": MemoryCatalog([flat_skill()])}
    async with gateway_of(state, servers) as gateway, client_of(gateway, mode) as client:
        entries = [entry async for entry in client.list_skills()]
        assert [entry.path for entry in entries] == [*(f"one/{path}" for path in SMALL_TREE_SKILLS), "two/flat"]
        report = await verify_catalog(RemoteCatalog(client))
        assert report.failures == []
        assert report.skills == len(entries)
        promised = {unquote(file.uri): file.digest for entry in entries[:-1] for file in entry.files}
        assert promised == {f"skill://one/{path}": digest_of(data) for path, data in small_tree().items()}


@rule("N1", "O1")
@pytest.mark.slow  # a process
async def test_upstreams_of_every_kind_make_one_catalog(state: Path, tmp_path: Path) -> None:
    """The same skill of four upstreams is four skills."""
    root = write_tree(tmp_path / "tree", small_tree())
    command = [*skillwire_command(), "serve", str(root)]
    async with serving_http(build_server(Skills(small_catalog()))) as url:
        servers = {"web": url, "process": command, "memory": small_catalog()}
        async with gateway_of(state, servers, folders={"mine": root}) as gateway:
            labels = ("memory", "mine", "process", "web")
            expected = [f"{label}/{path}" for label in labels for path in SMALL_TREE_SKILLS]
            assert await paths(gateway.catalog) == expected
            report = await verify_catalog(gateway.catalog)
            assert report.failures == []
            assert report.skills == len(expected)


@rule("V1", "V5")
async def test_two_hundred_readers_make_one_fetch(state: Path) -> None:
    """Thousands of clients share one upstream request, and a file is fetched once (C1)."""
    server = hostile()
    asked, may_answer = anyio.Event(), anyio.Event()

    async def slowly(params: dict[str, str]) -> None:
        asked.set()
        await may_answer.wait()

    server.answers["resources/read"] = slowly
    async with gateway_of(state, {"acme": server}) as gateway:
        read: list[bytes] = []

        async def reader() -> None:
            read.append((await gateway.catalog.read_file("skill://acme/flat/notes.md")).data)

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as group:
                for _ in range(200):
                    group.start_soon(reader)
                await asked.wait()
                await anyio.wait_all_tasks_blocked()
                may_answer.set()
        assert read == [b"notes\n"] * 200
        assert server.read_uris() == ["skill://flat/notes.md"]
        await reader()
        assert server.read_uris() == ["skill://flat/notes.md"]


@rule("B4")
async def test_a_reader_who_hangs_up_takes_nothing_from_the_others(state: Path) -> None:
    """The request does not depend on any of its callers."""
    server = hostile()
    asked, may_answer = anyio.Event(), anyio.Event()

    async def slowly(params: dict[str, str]) -> None:
        asked.set()
        await may_answer.wait()

    server.answers["resources/read"] = slowly
    async with gateway_of(state, {"acme": server}) as gateway:
        read: list[bytes] = []

        async def reader(scope: anyio.CancelScope) -> None:
            with scope:
                read.append((await gateway.catalog.read_file("skill://acme/flat/notes.md")).data)

        first = anyio.CancelScope()
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(reader, first)
                await asked.wait()
                group.start_soon(reader, anyio.CancelScope())
                await anyio.wait_all_tasks_blocked()
                first.cancel()
                await anyio.wait_all_tasks_blocked()
                may_answer.set()
        assert read == [b"notes\n"]
        assert server.read_uris() == ["skill://flat/notes.md"]


@rule("O3", "V2")
async def test_a_read_never_crosses_origins(state: Path) -> None:
    """A file of one upstream is not read from another, and unlisted files are not requested."""
    one, two = hostile(), hostile()
    two.add("other", {"SKILL.md": b"---\nname: other\ndescription: x\n---\n", "key": b"secret\n"})
    one.files["skill://flat/unlisted"] = b"x"
    async with gateway_of(state, {"one": one, "two": two}) as gateway:
        for uri in (
            "skill://one/other/key",
            "skill://one/two/other/key",
            "skill://one/flat/unlisted",
            "skill://flat/notes.md",
        ):
            with pytest.raises(NotFoundError):
                await gateway.catalog.read_file(uri)
        assert one.read_uris() == two.read_uris() == []


@rule("O3", "U7")
@pytest.mark.parametrize("uri", ["skill://acme/FILE:/etc/passwd", "file:///etc/passwd"], ids=["path", "uri"])
async def test_no_address_means_a_file_of_the_machine(state: Path, uri: str) -> None:
    async with gateway_of(state, {"acme": hostile()}) as gateway:
        with pytest.raises((FormatError, NotFoundError)):
            await gateway.catalog.read_file(uri)


@rule("U5", "N1")
async def test_skills_of_any_scheme_are_served_and_none_hides_another(state: Path) -> None:
    server = hostile()
    entry = server.add("flat", {"SKILL.md": b"---\nname: flat\ndescription: another\n---\n"}, listed=False)
    for resource in entry["resources"]:
        resource["uri"] = resource["uri"].replace("skill://", "github://")
    entry["uri"] = "github://flat/SKILL.md"
    server.files["github://flat/SKILL.md"] = server.files["skill://flat/SKILL.md"]
    server.files["skill://flat/SKILL.md"] = hostile().files["skill://flat/SKILL.md"]
    server.entries.append(entry)
    async with gateway_of(state, {"acme": server}) as gateway:
        assert await paths(gateway.catalog) == ["acme/github:/flat", "acme/flat"]
        theirs = await gateway.catalog.get_skill("skill://acme/github:/flat/SKILL.md")
        assert theirs.description == "another"
        assert theirs.files[0].uri == "skill://acme/github:/flat/SKILL.md"
        read = await gateway.catalog.read_file("skill://acme/github:/flat/SKILL.md")
        assert (read.uri, digest_of(read.data)) == (theirs.uri, theirs.files[0].digest)
        assert (await verify_catalog(gateway.catalog)).failures == []
        for spelling in ("skill://acme/GitHub:/flat/SKILL.md", "skill://acme/skill:/flat/SKILL.md"):
            with pytest.raises(NotFoundError):
                await gateway.catalog.get_skill(spelling)


@rule("G1")
async def test_an_unlisted_skill_is_served_by_its_uri(state: Path) -> None:
    """The upstream is asked once; unknown skills are not requested again and again."""
    server = hostile()
    entry = server.add("hidden", {"SKILL.md": b"---\nname: hidden\ndescription: x\n---\n"}, listed=False)
    server.answers["skills/get"] = lambda params: {"skill": entry} if "hidden" in params["uri"] else None
    async with gateway_of(state, {"acme": server}) as gateway:
        assert await paths(gateway.catalog) == ["acme/flat"]
        assert (await gateway.catalog.get_skill("skill://acme/hidden/SKILL.md")).name == "hidden"
        assert (await gateway.catalog.read_file("skill://acme/hidden/SKILL.md")).data.startswith(b"---")
        for _ in range(3):
            with pytest.raises(NotFoundError):
                await gateway.catalog.get_skill("skill://acme/nothing/SKILL.md")
        assert server.methods().count("skills/get") < 4  # a miss is remembered for a moment only


@rule("V1", "V3")
async def test_a_lie_about_bytes_is_not_passed_on(state: Path) -> None:
    """A mismatch is never used, nor kept."""
    server = hostile()
    server.files["skill://flat/notes.md"] = b"other!"
    async with gateway_of(state, {"acme": server}) as gateway:
        for _ in range(2):
            with pytest.raises(VerificationError):
                await gateway.catalog.read_file("skill://acme/flat/notes.md")
        server.files["skill://flat/notes.md"] = b"notes\n"
        assert (await gateway.catalog.read_file("skill://acme/flat/notes.md")).data == b"notes\n"


@rule("V4", "C1")
async def test_a_lie_about_fields_is_noticed_also_when_the_bytes_are_in_the_cache(state: Path) -> None:
    server = hostile()
    async with gateway_of(state, {"acme": server}) as gateway:
        await gateway.catalog.read_file("skill://acme/flat/SKILL.md")
        server.entries[0]["frontmatter"]["description"] = "Something else."
        await source(gateway, "acme").refresh()
        with pytest.raises(VerificationError) as caught:
            await gateway.catalog.read_file("skill://acme/flat/SKILL.md")
        assert (caught.value.reference, caught.value.rule) == ("frontmatter-mismatch", "V4")


@rule("R2", "V3")
async def test_a_skill_that_changes_under_us_is_served_as_it_is_now(state: Path) -> None:
    """The entry is updated with the bytes, and listeners are notified (S1)."""
    catalog = MemoryCatalog([flat_skill()])
    async with gateway_of(state, {"acme": catalog}) as gateway:
        with gateway.catalog.changes() as changes, anyio.fail_after(SECONDS):
            catalog.put(flat_skill(description="Another."))
            change = await anext(changes)
            while "skill://acme/flat/SKILL.md" not in change.changed:
                change = await anext(changes)
        entry = await gateway.catalog.get_skill("skill://acme/flat/SKILL.md")
        assert entry.description == "Another."
        assert digest_of((await gateway.catalog.read_file(entry.uri)).data) == entry.resource(entry.uri).digest


async def test_error_messages_of_an_upstream_stay_in_the_log(
    state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Credentials and addresses never reach a client."""
    caplog.set_level("INFO", "skillwire.gateway")
    server = hostile()
    server.answers["resources/read"] = Refusal(-32603, "token sk-123 is not valid")
    async with gateway_of(state, {"acme": server}) as gateway, client_of(gateway) as client:
        with pytest.raises(UpstreamError) as caught:
            await client.read_resource(await anext(client.list_skills()), "skill://acme/flat/notes.md")
        assert "sk-123" not in str(caught.value)
        assert "'acme'" in str(caught.value)
        assert "sk-123" in caplog.text


async def test_a_caller_sees_the_upstreams_that_they_may_see(state: Path) -> None:
    """Skills of other callers do not exist for this one; listing requests no single skills."""
    one, two = hostile(), hostile()
    async with gateway_of(state, {"one": one, "two": two}) as gateway:
        view = VisibleCatalog(gateway.catalog, ["one"])
        assert await paths(view) == ["one/flat"]
        assert (await view.read_file("skill://one/flat/notes.md")).data == b"notes\n"
        with pytest.raises(NotFoundError):
            await view.read_file("skill://two/flat/notes.md")
        assert "skills/get" not in one.methods()


@rule("T1")
async def test_names_are_completed(state: Path) -> None:
    async with gateway_of(state, {"one": small_catalog(), "two": hostile()}) as gateway:
        assert list(await gateway.catalog.suggest("one/acme/r")) == [
            "one/acme/release",
            "one/acme/release/changelog",
        ]
        assert list(await gateway.catalog.suggest("tw")) == ["two/flat"]


@rule("G1", "L2", "T1", "O3")
async def test_what_an_upstreams_template_makes_is_served_and_the_template_is_not_passed_on(state: Path) -> None:
    """To complete it, the input of a client would go to the upstream without passing the policy."""
    skills = Skills()

    @skills.template("docs/{product}", values={"product": ["alpha", "beta"]}, description="One for each product.")
    def docs(product: str) -> dict[str, bytes]:
        return {"SKILL.md": f"---\nname: {product}\ndescription: x\n---\n".encode()}

    async with gateway_of(state, {"acme": build_server(skills)}) as gateway, client_of(gateway) as client:
        assert await paths(gateway.catalog) == []
        entry = await client.get_skill("skill://acme/docs/alpha/SKILL.md")
        assert entry.name == "alpha"
        assert b"name: alpha" in (await client.read_unverified(entry.uri)).data
        [whole] = (await client.connection.request("resources/templates/list"))["resourceTemplates"]
        assert whole["uriTemplate"] == "skill://{+path}"


@rule("B6", "X1", "X2")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_and_prompts_show_a_model_no_character_that_people_do_not_see(state: Path, mode: str) -> None:
    """Also in the names of files, which can be read as they are shown."""
    hidden = UNSEEN.replace("\x07", "").replace("\x9b", "")  # not allowed in a URI
    text = skill_md("flat", description=f'"Does{hidden} it."', extra=f'title: "Fl{hidden}at"\n')
    server = HostileServer()
    server.add("flat", {"SKILL.md": text, f"no{hidden}tes.md": b"notes\n"})
    async with gateway_of(state, {"acme": server}) as gateway:
        upstream = build_server(Skills(gateway.catalog, watch=False))
        async with Client(upstream, mode=mode) as client:
            listed = await client.call_tool("list_skills", {})
            found = await client.call_tool("search_skills", {"query": "does it"})
            loaded = await client.call_tool("load_skill", {"skill": "flat"})
            folder = await client.call_tool("read_skill_file", {"skill": "flat", "path": "."})
            unknown = await client.call_tool("read_skill_file", {"skill": "flat", "path": f"no{hidden}te.md"})
            for result in (listed, found, loaded, folder, unknown):
                assert is_seen(result.content[0].text)
            [skill] = listed.structured_content["skills"]
            assert (skill["name"], skill["description"]) == ("flat", "Does it.")
            [prompt] = (await client.list_prompts()).prompts
            assert (prompt.title, prompt.description) == ("Flat", "Does it.")
            path = folder.content[0].text.rpartition("- no")[2].partition(" ")[0]
            read = await client.call_tool("read_skill_file", {"skill": "flat", "path": f"no{path}"})
            assert is_seen(read.content[0].text)
            assert read.content[1].text == "notes\n"


@rule("D1")
async def test_an_empty_directory_of_an_upstream_is_empty_and_a_missing_one_unknown(
    state: Path, tmp_path: Path
) -> None:
    root = write_tree(tmp_path / "skills", {"flat/SKILL.md": skill_md("flat")})
    (root / "flat/empty/inner").mkdir(parents=True)
    servers = {"acme": build_server(Skills(root))}
    async with gateway_of(state, servers) as gateway, client_of(gateway) as client:
        assert await client.read_directory("skill://acme/flat/empty/inner") == []
        assert [child.name for child in await client.read_directory("skill://acme/flat/empty")] == ["inner"]
        for missing in ("gone", "SKILL.md"):
            with pytest.raises(NotFoundError):
                await client.read_directory(f"skill://acme/flat/{missing}")


@rule("D1", "W3")
async def test_a_directory_of_an_upstream_adds_no_file_to_a_complete_list(state: Path) -> None:
    server = hostile()
    server.capabilities["extensions"][EXTENSION_ID] = {"directoryRead": True}
    child = {"uri": "skill://flat/new/evil.md", "name": "evil.md"}
    server.answers["resources/directory/read"] = lambda params: {"resources": [child]}
    async with gateway_of(state, {"acme": server}) as gateway, client_of(gateway) as client:
        assert await client.read_directory("skill://acme/flat/new") == []
        names = [child.name for child in await client.read_directory("skill://acme/flat")]
        assert names == ["SKILL.md", "notes.md"]
