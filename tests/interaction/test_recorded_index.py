"""Our client and servers of earlier days, as they were recorded: two generations of the index, FastMCP's manifests
and a native prototype, with every error that they answered.

``tests/recorded`` says where each came from. What they could not promise must show, what they did promise must be
checked, and what they get wrong must not be used.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import replay
from http_server import serving_app
from rules import rule
from skillwire.client.connect import connect
from skillwire.client.remote import RemoteCatalog
from skillwire.errors import NotFoundError, ProtocolError, UpstreamError, VerificationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from replay import Recording
    from skillwire.catalog.contract import Change
    from skillwire.client.dialects import DialectName
    from skillwire.client.skills import SkillsClient
    from skillwire.skill import SkillEntry

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # as interop: programs of others, recorded

FOLDER = Path(__file__).parents[1] / "recorded"
EXTENSION = "io.modelcontextprotocol/skills"
DIRECTORY_READ = "resources/directory/read"

# What is not promised.
NOTHING = {"manifest", "digest", "size", "frontmatter"}
ONLY_PACKED = {"manifest", "digest", "size"}
ONLY_SKILL_MD = {"manifest", "size"}
UNSIGNED_ARCHIVE = {"manifest", "digest", "frontmatter"}
COMPLETE: set[str] = set()


@dataclass(frozen=True)
class Facts:
    """What a recording holds: the gaps of each skill as it is listed, and as it is got where that is another."""

    dialect: DialectName
    listed: dict[str, set[str]]
    got: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    template: str | None = None
    nobody: str = "skill://nobody/SKILL.md"


TEMPLATE = "skill://docs/{product}/SKILL.md"
PLAIN, WORDS, LINE, REPORT, TEAM_REPORT, PACKED, ZIPPED, PIRATE = (
    f"skill://{path}/SKILL.md"
    for path in (
        "plain-notes", "quoted-words", "quoted-line", "report-kit", "team/report-kit", "packed-kit",
        "team/zipped-kit", "pirate",
    )
)  # fmt: skip
ARCHIVED = {
    PACKED: ("skill://packed-kit/references/more.md", b"# More\n"),
    ZIPPED: ("skill://team/zipped-kit/notes/a.txt", b"a\n"),
}
WEATHER = "named://weather-forecaster/SKILL.md"

NEWER, SKYBRIDGE, OLDER = (
    "index-newer-ext-skills-f5bd62ad",
    "index-newer-skybridge",
    "index-older-ext-skills-fd5070eb",
)
DEMO, HANDMADE = "index-older-fast-agent-demo", "index-older-skills-over-mcp-5dfbc827"
MANIFESTS = [
    f"manifest-fastmcp-4.1.2-{files}-{era}" for files in ("resources", "template") for era in ("auto", "legacy")
]
NATIVE = "native-prototype-e736d06e"

FACTS = {
    NEWER: Facts(
        "index",
        {
            **dict.fromkeys([PLAIN, WORDS, TEAM_REPORT], ONLY_SKILL_MD),
            **dict.fromkeys([PACKED, ZIPPED], ONLY_PACKED),
        },
        got=dict.fromkeys([PACKED, ZIPPED], COMPLETE),
    ),
    SKYBRIDGE: Facts("index", dict.fromkeys([PLAIN, LINE, REPORT], ONLY_SKILL_MD)),
    OLDER: Facts(
        "index",
        dict.fromkeys([PLAIN, WORDS, TEAM_REPORT, PACKED, ZIPPED], NOTHING),
        got=dict.fromkeys([PACKED, ZIPPED], UNSIGNED_ARCHIVE),
        template=TEMPLATE,
    ),
    DEMO: Facts("index", {PIRATE: NOTHING}, template=TEMPLATE, nobody="skill://nobody/x.md"),
    HANDMADE: Facts("index", dict.fromkeys([PLAIN, WORDS, TEAM_REPORT], NOTHING)),
    **{name: Facts("fallback", dict.fromkeys([PLAIN, LINE, REPORT], NOTHING)) for name in MANIFESTS},
    NATIVE: Facts("native", {WEATHER: NOTHING}, nobody="named://nobody/SKILL.md"),
}
DRAFTS = [NEWER, SKYBRIDGE, OLDER]  # which declare the extension and know none of its methods
INDEXES = [*DRAFTS, DEMO, HANDMADE]

every_recording = pytest.mark.parametrize("name", FACTS)


def recorded(name: str) -> Recording:
    return json.loads((FOLDER / f"{name}.json").read_text())


def sent(recording: Recording, uri: str) -> bytes:
    """The bytes that the recorded server sent for ``uri``."""
    [content] = recording["reads"][uri]["contents"]
    return content["text"].encode() if "text" in content else b64decode(content["blob"])


def index_of(recording: Recording) -> list[dict[str, Any]]:
    return json.loads(sent(recording, "skill://index.json"))["skills"]


async def listing(client: SkillsClient) -> list[SkillEntry]:
    return [entry async for entry in client.list_skills()]


@asynccontextmanager
async def connected(recording: Recording, **options: Any) -> AsyncIterator[SkillsClient]:
    """A client of the recorded server, over HTTP; ``options`` are those of ``connect``."""
    async with serving_app(replay.app(recording)) as address, connect(f"{address}/mcp", **options) as client:
        yield client


def test_every_recording_is_described_here() -> None:
    assert sorted(FACTS) == sorted(path.stem for path in FOLDER.glob("*.json"))


@rule("K1", "I1", "I4", "M1", "P1")
@every_recording
async def test_the_dialect_is_found(name: str) -> None:
    """A draft's server that declares the extension without its methods has an index.

    The native prototype declares ``skills`` as ``sep-2076`` does; it has no ``skills/get``, which tells.
    """
    recording = recorded(name)
    async with connected(recording) as client:
        await check_dialect(client, name, recording)


@pytest.mark.slow
@pytest.mark.parametrize("name", [NEWER, MANIFESTS[0], NATIVE])
async def test_the_dialect_is_found_over_stdio_too(name: str) -> None:
    async with connect([sys.executable, replay.__file__, str(FOLDER / f"{name}.json")]) as client:
        await check_dialect(client, name, recorded(name))
        assert [entry.uri for entry in await listing(client)] == list(FACTS[name].listed)


async def check_dialect(client: SkillsClient, name: str, recording: Recording) -> None:
    assert await client.dialect() == FACTS[name].dialect
    assert client.supports_skills == (EXTENSION in recording["capabilities"].get("extensions", {}))
    assert client.supports_skills == (name in DRAFTS)
    assert client.connection.is_modern == ("discover" in recording)


@rule("I1", "K1")
async def test_what_a_draft_declares_does_not_matter() -> None:
    """Without the declaration, or with the dialect named, the skills are the same."""
    recording = recorded(NEWER)
    async with connected(recording) as client:
        found = await listing(client)
    async with connected(recording, dialect="index") as client:
        assert await listing(client) == found
    del recording["capabilities"]["extensions"]
    async with connected(recording) as client:
        assert await client.dialect() == "index"
        assert await listing(client) == found


@rule("I1", "I4", "L2", "M1", "E2b")
@every_recording
async def test_every_skill_is_listed_with_what_was_not_promised(name: str) -> None:
    """Nothing is made up for what a generation did not know."""
    facts = FACTS[name]
    async with connected(recorded(name)) as client:
        entries = await listing(client)
        assert {entry.uri: set(entry.gaps) for entry in entries} == facts.listed
        assert [(problem.reference, problem.file) for problem in client.problems] == (
            [("entry-template", facts.template)] if facts.template else []
        )
        assert not any(entry.is_complete or entry.is_dynamic for entry in entries)
        await client.catalog.refresh()
        assert not await client.catalog.refresh()


@rule("I1")
@pytest.mark.parametrize("name", INDEXES)
async def test_what_an_index_says_is_what_is_listed(name: str) -> None:
    """All fields of the newer generation; name and description of the older one, where it has them."""
    recording = recorded(name)
    said = [item for item in index_of(recording) if item.get("type") != "mcp-resource-template"]
    async with connected(recording) as client:
        entries = await listing(client)
    for entry, item in zip(entries, said, strict=True):
        if "frontmatter" in item:
            assert entry.frontmatter == item["frontmatter"]
        else:
            folder = entry.path.rpartition("/")[2]
            assert entry.frontmatter == {
                "name": item.get("name", folder),
                "description": item.get("description", ""),
            }
        assert [file.digest for file in entry.files] == [item.get("digest")]


@rule("I1", "V1", "V4", "V7")
@pytest.mark.parametrize("name", INDEXES)
async def test_a_skill_of_an_index_is_verified_as_far_as_its_digest_goes(name: str) -> None:
    """Without a digest it is read by choice only."""
    facts, recording = FACTS[name], recorded(name)
    async with connected(recording) as client:
        for uri, gaps in facts.listed.items():
            if uri in facts.got or uri == LINE:  # packed, or wrong: see below
                continue
            entry = await client.get_skill(uri)
            assert entry.gaps == gaps
            if "digest" in gaps:
                with pytest.raises(VerificationError) as caught:
                    await client.read_skill(entry)
                assert caught.value.reference == "digest-unpromised"
                assert (await client.read_unverified(uri)).data == sent(recording, uri)
            else:
                skill = await client.read_skill(entry)
                assert skill.data == sent(recording, uri)
                assert (await client.read_skill_uri(uri)).data == sent(recording, uri)


@rule("I2", "E2", "V1", "V4")
async def test_a_packed_skill_is_complete_if_its_archive_has_a_digest() -> None:
    """And what is in it is at the place of single files."""
    async with connected(recorded(NEWER)) as client:
        for uri, (file, content) in ARCHIVED.items():
            entry = await client.get_skill(uri)
            assert (entry.is_complete, entry.gaps) == (True, set())
            assert [resource.uri for resource in entry.files] == [uri, file]
            assert (await client.read_skill(entry)).uri == uri
            assert (await client.read_resource(entry, file)).data == content
            assert (await client.read_skill_uri(file)).data == content
            with pytest.raises(VerificationError) as caught:
                await client.read_resource(entry, f"{file}.bak")
            assert caught.value.reference == "file-unlisted"


@rule("I2", "V1")
async def test_an_archive_that_is_another_than_the_index_says_is_not_unpacked() -> None:
    """The same skill, packed at another second."""
    recording = recorded(NEWER)
    recording["reads"]["skill://packed-kit.tar.gz"] = recorded(OLDER)["reads"]["skill://packed-kit.tar.gz"]
    async with connected(recording) as client:
        with pytest.raises(VerificationError) as caught:
            await client.get_skill(PACKED)
        assert caught.value.reference == "digest-mismatch"


@rule("I2", "V7")
async def test_a_packed_skill_without_a_digest_is_read_by_choice_only() -> None:
    """The files are known, and nothing about them is promised."""
    async with connected(recorded(OLDER)) as client:
        for uri, (file, content) in ARCHIVED.items():
            entry = await client.get_skill(uri)
            assert (entry.is_complete, entry.gaps) == (False, UNSIGNED_ARCHIVE)
            assert [resource.uri for resource in entry.files] == [uri, file]
            for resource in entry.files:
                with pytest.raises(VerificationError) as caught:
                    await client.read_resource(entry, resource.uri)
                assert caught.value.reference == "digest-unpromised"
            assert (await client.read_unverified(file)).data == content
            with pytest.raises(NotFoundError):
                await client.read_unverified(f"{file}.bak")


@rule("I1", "G1")
@pytest.mark.parametrize(
    ("name", "uri", "description"),
    [
        pytest.param(OLDER, "skill://docs/widget-api/SKILL.md", "Widget API — endpoints", id="ext-skills"),
        pytest.param(
            DEMO, "skill://docs/alpha/SKILL.md", "Product documentation guidance for alpha.", id="fast-agent"
        ),
    ],
)
async def test_a_skill_from_a_template_is_got_by_its_uri(name: str, uri: str, description: str) -> None:
    """No index lists it. Its fields are its own; nothing else is promised."""
    async with connected(recorded(name)) as client:
        entry = await client.get_skill(uri)
        assert (entry.description, entry.gaps) == (description, {"manifest", "digest", "size"})
        with pytest.raises(VerificationError):
            await client.read_skill(entry)
        assert (await client.read_unverified(uri)).data == sent(recorded(name), uri)


@rule("I1", "G1")
async def test_prose_instead_of_a_skill_is_none() -> None:
    """Servers of the drafts answer any read."""
    async with connected(recorded(OLDER)) as client:
        for uri in ("skill://docs/nothing-api/SKILL.md", "skill://nobody/SKILL.md"):
            with pytest.raises(NotFoundError):
                await client.get_skill(uri)


@rule("I5")
@pytest.mark.parametrize("name", [NEWER, HANDMADE])  # it names a skill of its index, and one that it does not have
async def test_instructions_are_mined_if_asked_to(name: str) -> None:
    """What they name and the server does not have is no skill; what it has and lists comes once."""
    async with connected(recorded(name), instructions=True) as client:
        assert [entry.uri for entry in await listing(client)] == list(FACTS[name].listed)


@rule("I5")
async def test_an_extractor_finds_a_skill_that_no_index_lists() -> None:
    heard: list[str] = []

    def extract(instructions: str) -> list[str]:
        heard.append(instructions)
        return ["skill://docs/widget-api/SKILL.md", "skill://docs/nothing-api/SKILL.md", "no URI", PLAIN]

    recording = recorded(OLDER)
    async with connected(recording, instructions=extract) as client:
        uris = [entry.uri for entry in await listing(client)]
    assert uris == [*FACTS[OLDER].listed, "skill://docs/widget-api/SKILL.md"]
    assert heard == [recording["instructions"]]


@rule("V4", "F4")
async def test_fields_that_are_not_those_of_the_file_are_refused() -> None:
    """This server reads YAML by hand. The digest of the file is right, the fields beside it are not."""
    async with connected(recorded(SKYBRIDGE)) as client:
        for entry in (await client.get_skill(LINE), (await listing(client))[1]):
            with pytest.raises(VerificationError) as caught:
                await client.read_skill(entry)
            assert caught.value.reference == "frontmatter-mismatch"
            assert "description, metadata" in caught.value.message  # which fields


@rule("V2")
@pytest.mark.parametrize(
    ("name", "uri"),
    [
        pytest.param(NEWER, "skill://team/report-kit/assets/dot.png", id="there"),
        pytest.param(NEWER, "skill://team/report-kit/references/none.md", id="not-there"),
        pytest.param(OLDER, "skill://team/report-kit/references/deep/terms.md", id="without-digests"),
    ],
)
async def test_no_file_beside_an_indexed_skill_md_is_taken_for_verified(name: str, uri: str) -> None:
    """An index lists none of them."""
    async with connected(recorded(name)) as client:
        with pytest.raises(VerificationError) as caught:
            await client.read_skill_uri(uri)
        assert caught.value.reference == "file-unlisted"


@rule("D1", "K2")
@pytest.mark.parametrize("name", [NEWER, SKYBRIDGE])
async def test_directories_of_a_draft_are_read_where_declared(name: str) -> None:
    """A name that was not encoded is understood; what the server calls no directory is not found."""
    recording = recorded(name)
    asked = [call for call in recording["calls"] if call["method"] == DIRECTORY_READ]
    assert len(asked) >= 3
    async with connected(recording) as client:
        for call in asked:
            if "error" in call:
                with pytest.raises(NotFoundError):
                    await client.read_directory(call["params"]["uri"])
                continue
            children = await client.read_directory(call["params"]["uri"])
            said = {child["name"]: child for child in call["result"]["resources"]}
            assert [child.name for child in children] == sorted(said)
            for child in children:
                assert child.is_directory == (said[child.name]["mimeType"] == "inode/directory")
                assert child.size == said[child.name].get("size")
        assert not client.problems


@rule("K2")
@pytest.mark.parametrize("name", [OLDER, HANDMADE])  # with the extension, and without
async def test_directories_are_not_asked_for_where_not_declared(name: str) -> None:
    async with connected(recorded(name)) as client:
        with pytest.raises(ProtocolError) as caught:
            await client.read_directory("skill://report-kit")
        assert (caught.value.reference, caught.value.side) == ("directory-unsupported", "local")


@rule("G1")
@every_recording
async def test_what_is_not_there_is_not_found(name: str) -> None:
    """Whether the server says so with -32602, -32603, 0 or in prose, or has no such way of asking."""
    async with connected(recorded(name)) as client:
        with pytest.raises(NotFoundError):
            await client.read_skill_uri(FACTS[name].nobody)
        with pytest.raises(NotFoundError):
            await client.get_skill("skill://report-kit/data.json")


@rule("I4", "E2", "E3", "V1", "V2", "V4")
@pytest.mark.parametrize("name", [MANIFESTS[0], MANIFESTS[3]])
async def test_a_manifest_promises_every_file(name: str) -> None:
    """The listing promises nothing, the skill that is got everything."""
    recording = recorded(name)
    manifest = json.loads(sent(recording, "skill://report-kit/_manifest"))
    async with connected(recording) as client:
        entry = await client.get_skill(REPORT)
        assert (entry.is_complete, entry.gaps) == (True, set())
        assert {(file.digest, file.size) for file in entry.files} == {
            (file["hash"], file["size"]) for file in manifest["files"]
        }
        assert (await client.read_skill(entry)).data == sent(recording, REPORT)
        files = [file.uri for file in entry.files if file.uri in recording["reads"]]
        assert len(files) == 5  # text, base64, and a name with a space in it
        for uri in files:
            assert (await client.read_resource(entry, uri)).data == sent(recording, uri)
            assert (await client.read_skill_uri(uri)).data == sent(recording, uri)
        for uri in ("skill://report-kit/references/none.md", "skill://report-kit/_manifest"):
            with pytest.raises(VerificationError) as caught:
                await client.read_resource(entry, uri)
            assert caught.value.reference == "file-unlisted"


@rule("M1", "M2", "M3")
async def test_a_native_skill_is_activated_and_its_tool_called() -> None:
    """The prototype keeps definitions one level down, and cannot deactivate."""
    async with connected(recorded(NATIVE)) as client:
        [entry] = await listing(client)
        assert (entry.name, entry.description) == ("weather-forecaster", "A skill for resolving weather metrics.")
        assert await client.get_skill(WEATHER) == entry
        with pytest.raises(VerificationError):
            await client.read_skill(entry)
        activation = await client.activate("weather-forecaster")
        assert activation.instructions.startswith("# Weather Forecaster\n")
        assert (await client.read_unverified(WEATHER)).data == activation.instructions.encode()
        [tool] = activation.tools
        assert (tool["name"], tool["inputSchema"]["required"]) == ("get_weather", ["city"])
        answer = await activation.call_tool("get_weather", {"city": "Turin"})
        assert answer["content"] == [{"type": "text", "text": "The weather in Turin is sunny."}]
        with pytest.raises(NotFoundError):
            await activation.call_tool("another")
        with pytest.raises(UpstreamError, match="Skill not found: nobody"):  # the recorded server's words
            await client.activate("nobody")
        with pytest.raises(ProtocolError) as caught:
            await client.deactivate("weather-forecaster")
        assert caught.value.reference == "method-unknown"


@rule("L2", "N1")
@every_recording
async def test_a_catalog_lists_what_the_client_lists(name: str) -> None:
    """In the order of URIs, and nothing has changed for having been read."""
    async with connected(recorded(name)) as client:
        catalog = RemoteCatalog(client)
        entries = [entry async for entry in catalog.entries()]
        assert entries == sorted(await listing(client), key=lambda entry: entry.uri)
        assert len(await catalog.problems()) == (FACTS[name].template is not None)
        told: list[Change] = []
        with catalog.changes() as changes:
            changes.forward(told.append)
            for uri in FACTS[name].got:
                assert (await catalog.get_skill(uri)).gaps == FACTS[name].got[uri]
            assert [entry async for entry in catalog.entries()] == entries
        assert told == []


@rule("R2", "V1")
@pytest.mark.parametrize("name", [NEWER, MANIFESTS[0]])
async def test_a_catalog_reads_what_is_promised_however_short_the_listing(name: str) -> None:
    """It asks for the skill, whose manifest or archive may promise more."""
    recording = recorded(name)
    promised = TEAM_REPORT if name == NEWER else REPORT
    async with connected(recording) as client:
        catalog = RemoteCatalog(client)
        assert [entry async for entry in catalog.entries()]
        assert (await catalog.read_file(promised)).data == sent(recording, promised)
        if name == NEWER:
            file, content = ARCHIVED[PACKED]
            assert (await catalog.read_file(file)).data == content
        else:
            image = "skill://report-kit/assets/dot.png"
            assert (await catalog.read_file(image)).data == sent(recording, image)
            with pytest.raises(NotFoundError):
                await catalog.read_file("skill://report-kit/references/none.md")


@rule("V2", "V7")
@pytest.mark.parametrize(
    ("name", "file"),
    [
        pytest.param(NEWER, "skill://team/report-kit/references/deep/terms.md", id="beside-a-promised-one"),
        pytest.param(OLDER, PLAIN, id="without-digests"),
        pytest.param(OLDER, "skill://team/zipped-kit/notes/a.txt", id="packed"),
    ],
)
async def test_a_catalog_reads_what_is_not_promised_by_choice_only(name: str, file: str) -> None:
    """Also where some files of a skill are promised and this one is not."""
    recording = recorded(name)
    async with connected(recording) as client:
        with pytest.raises(VerificationError):
            await RemoteCatalog(client).read_file(file)
        data = (await RemoteCatalog(client, allow_unverified=True).read_file(file)).data
        assert data == (sent(recording, file) if file in recording["reads"] else ARCHIVED[ZIPPED][1])


@rule("I2", "D1")
async def test_a_catalog_shows_the_directories_of_packed_skills_too() -> None:
    """Which are no directories to the server; those of the others it reads itself."""
    recording = recorded(NEWER)
    refusal = next(call["error"] for call in recording["calls"] if "error" in call)
    asked = {"uri": "skill://packed-kit"}
    recording["calls"].append({"method": DIRECTORY_READ, "params": asked, "error": refusal})
    async with connected(recording) as client:
        catalog = RemoteCatalog(client)
        packed = (await catalog.read_directory("skill://packed-kit")).items
        assert {child.name: child.is_directory for child in packed} == {"SKILL.md": False, "references": True}
        single = (await catalog.read_directory("skill://team/report-kit")).items
        assert [child.name for child in single] == ["SKILL.md", "assets", "references", "scripts"]
